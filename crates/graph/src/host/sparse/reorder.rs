//! Sorts a sparse tensor into row-major order.

use estimand_tensor::{Array, DType, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::elements::reordered;
use super::{Sparse, expect_sparse, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::spelling::{Spelling, typed};

/// (indices, values, dense shape) -> (indices, values), in row-major order. Equal indices keep
/// their order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseReorder;

impl HostRules for SparseReorder {
    fn name(&self) -> &'static str {
        "SparseReorder"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        expect_sparse(x[0], x[1], x[2])?;
        Ok(smallvec![spec(DType::I64, x[0].shape.clone()), x[1].clone()])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let sparse = Sparse::new(x[0], x[1].len(), x[2])?;
        let mut order: Vec<usize> = (0..sparse.len()).collect();
        order.sort_by_key(|&i| sparse.index(i));
        let indices: Vec<i64> = order.iter().flat_map(|&i| sparse.index(i)).copied().collect();
        Ok(vec![Array::from_vec(x[0].dims(), indices)?, reordered(x[1], &order)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 1)))
    }
}
