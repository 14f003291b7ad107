//! The row id of each value of a ragged tensor.

use estimand_tensor::{Array, DType, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{expect_splits, splits};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::spelling::{Spelling, typed};

/// (row_splits `[b + 1]`, values `[n, ...]`) -> `[n]` i64.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RowIds;

impl HostRules for RowIds {
    fn name(&self) -> &'static str {
        "RowIds"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_splits(x[0])?;
        Ok(smallvec![TensorSpec { dtype: DType::I64, shape: x[1].shape.dims().iter().take(1).copied().collect() }])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let n = x[1].dims().first().copied().unwrap_or(0);
        let mut ids = Vec::with_capacity(n);
        for (row, ends) in splits(x[0], n)?.windows(2).enumerate() {
            ids.resize(ends[1] as usize, row as i64);
        }
        Ok(vec![Array::from_vec([n], ids)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let [splits, values] = [def.input[0].clone(), def.input[1].clone()];
        let ids = writer.row_ids(&def.name, splits, values, writer.dtype(node, 1))?;
        Ok(typed(NodeDef { op: "Identity".into(), input: vec![ids], ..def }, "T", DType::I64))
    }
}
