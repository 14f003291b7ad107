//! Converts ragged tensors to sparse ones.

use estimand_tensor::{Array, DType, Dim, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{index_shape, size_list, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_dtype, expect_rank};
use crate::op::spelling::{Spelling, typed};

/// (row_splits `[b + 1]`, values `[n]`) -> (indices `[n, 2]`, values, dense shape: the number of
/// rows and the length of the longest).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaggedToSparse;

impl HostRules for RaggedToSparse {
    fn name(&self) -> &'static str {
        "RaggedTensorToSparse"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_dtype(DType::I64, x[0], "list of row_splits")?;
        expect_rank(1, x[0], "list of row_splits")?;
        expect_rank(1, x[1], "list of values")?;
        let indices = index_shape(x[1].shape.dims()[0], 2);
        Ok(smallvec![spec(DType::I64, indices), x[1].clone(), spec(DType::I64, [Dim::Known(2)])])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (splits, n) = (x[0].as_slice::<i64>()?, x[1].len());
        let bad = |what: String| Error::shape(format!("invalid row_splits: {what}"));
        if splits.first() != Some(&0) || splits.last() != Some(&(n as i64)) {
            return Err(bad(format!("they must begin at 0 and end at {n}, the number of values")));
        }
        let mut indices = Vec::with_capacity(2 * n);
        let mut longest = 0;
        for (row, ends) in splits.windows(2).enumerate() {
            if ends[0] > ends[1] {
                return Err(bad(format!("they fall from {} to {} at row {row}", ends[0], ends[1])));
            }
            indices.extend((0..ends[1] - ends[0]).flat_map(|column| [row as i64, column]));
            longest = longest.max(ends[1] - ends[0]);
        }
        let shape = size_list(&[splits.len() - 1, longest as usize]);
        Ok(vec![Array::from_vec([n, 2], indices)?, x[1].clone(), shape])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let def = typed(typed(def, "T", writer.dtype(node, 1)), "Tsplits", DType::I64);
        Ok(def.attr("RAGGED_RANK", 1i64))
    }
}
