//! The length of strings.

use estimand_tensor::{Array, DType, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use crate::graph::Node;
use crate::graph_def::Writer;
use crate::host::{Fresh, HostRules, Specs};
use crate::infer::expect::expect_dtype;

/// Bytes of each string, as i32.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StringLength;

impl HostRules for StringLength {
    fn name(&self) -> &'static str {
        "StringLength"
    }

    fn infer(&self, x: &[&TensorSpec], _fresh: &mut Fresh<'_>) -> Result<Specs> {
        expect_dtype(DType::Str, x[0], "input")?;
        Ok(smallvec![TensorSpec { dtype: DType::I32, shape: x[0].shape.clone() }])
    }

    fn run(&self, x: &[Array]) -> Result<Vec<Array>> {
        let lengths: Vec<i32> = x[0].strings()?.map(|s| s.len() as i32).collect();
        Ok(vec![Array::from_vec(x[0].dims(), lengths)?])
    }

    fn spell(&self, def: NodeDef, _node: &Node, _writer: &mut Writer<'_>) -> Result<NodeDef> {
        Ok(def.attr("unit", "BYTE"))
    }
}
