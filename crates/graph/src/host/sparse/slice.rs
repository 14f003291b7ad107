//! Slices a sparse tensor.

use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::elements::reordered;
use super::{Sparse, expect_sparse, index_shape, size_list, sizes, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_dtype, expect_rank};
use crate::op::spelling::{Spelling, typed};

/// (indices, values, dense shape, start, size) -> (indices, values, dense shape) of the slice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseSlice;

impl HostRules for SparseSlice {
    fn name(&self) -> &'static str {
        "SparseSlice"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let rank = expect_sparse(x[0], x[1], x[2])?;
        for (spec, what) in [(x[3], "start"), (x[4], "size")] {
            expect_dtype(DType::I64, spec, what)?;
            expect_rank(1, spec, what)?;
        }
        let n = inference.axis(0, 0);
        Ok(smallvec![spec(DType::I64, index_shape(n, rank)), spec(x[1].dtype, [n]), spec(DType::I64, [rank])])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let sparse = Sparse::new(x[0], x[1].len(), x[2])?;
        let (start, size) = (sizes(x[3])?, sizes(x[4])?);
        if start.len() != sparse.rank || size.len() != sparse.rank {
            return Err(Error::shape(format!(
                "the slice begins at {start:?} and has the size {size:?}; expected one number for each of the {} axes",
                sparse.rank
            )));
        }
        // The slice is cut off at the end of the tensor.
        let kept: Vec<usize> =
            (0..sparse.rank).map(|axis| size[axis].min(sparse.sizes[axis].saturating_sub(start[axis]))).collect();
        let inside = |i: &usize| {
            (sparse.index(*i).iter().zip(&start).zip(&kept))
                .all(|((&k, &first), &n)| usize::try_from(k).is_ok_and(|k| k >= first && k - first < n))
        };
        let order: Vec<usize> = (0..sparse.len()).filter(inside).collect();
        let moved = |i: &usize| sparse.index(*i).iter().zip(&start).map(|(&k, &first)| k - first as i64);
        let indices: Vec<i64> = order.iter().flat_map(moved).collect();
        Ok(vec![Array::from_vec([order.len(), sparse.rank], indices)?, reordered(x[1], &order)?, size_list(&kept)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 1)))
    }
}
