//! Reshapes a sparse tensor.

use estimand_tensor::{Array, DType, Error, Result, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::{Sparse, integers, size_list, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_dtype, expect_rank};
use crate::op::spelling::Spelling;

/// (indices, dense shape, new shape with at most one -1) -> (indices, dense shape).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseReshape;

impl HostRules for SparseReshape {
    fn name(&self) -> &'static str {
        "SparseReshape"
    }

    fn infer(&self, x: &[&TensorSpec], _inference: &mut Inference<'_>) -> Result<Specs> {
        for (spec, rank, what) in [(x[0], 2, "list of indices"), (x[1], 1, "dense shape"), (x[2], 1, "new shape")] {
            expect_dtype(DType::I64, spec, what)?;
            expect_rank(rank, spec, what)?;
        }
        let (n, rank) = (x[0].shape.dims()[0], x[2].shape.dims()[0]);
        Ok(smallvec![spec(DType::I64, [n, rank]), spec(DType::I64, [rank])])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let sparse = Sparse::new(x[0], x[0].dims()[0], x[1])?;
        let sizes = target(&sparse.sizes, &integers(x[2])?)?;
        let mut indices = vec![0i64; sparse.len() * sizes.len()];
        for i in 0..sparse.len() {
            let index = sparse.checked(i)?.iter().zip(&sparse.sizes);
            let mut place = index.fold(0, |place: usize, (&k, &size)| place * size + k as usize);
            for (k, &size) in indices[i * sizes.len()..(i + 1) * sizes.len()].iter_mut().zip(&sizes).rev() {
                // If a size is 0, there are no indices, so this division is safe.
                *k = (place % size) as i64;
                place /= size;
            }
        }
        Ok(vec![Array::from_vec([sparse.len(), sizes.len()], indices)?, size_list(&sizes)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, _node: &Node, _writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(def)
    }
}

/// Returns the sizes of the new shape, with -1 resolved.
fn target(from: &[usize], to: &[i64]) -> Result<Vec<usize>> {
    let cannot = |why: &str| Error::shape(format!("cannot reshape a sparse tensor of {from:?} to {to:?}: {why}"));
    // TF: a dense shape may have more elements than memory could hold, as long as they can be
    // counted.
    let count = |sizes: &[usize]| {
        let n = sizes.iter().try_fold(1usize, |n, &size| n.checked_mul(size));
        n.filter(|&n| n <= i64::MAX as usize).ok_or_else(|| cannot("it is too large"))
    };
    let total = count(from)?;
    let mut sizes = Vec::with_capacity(to.len());
    let mut free = None;
    for (axis, &size) in to.iter().enumerate() {
        match usize::try_from(size) {
            Ok(size) => sizes.push(size),
            Err(_) if size == -1 && free.is_none() => {
                free = Some(axis);
                sizes.push(1);
            }
            Err(_) => return Err(cannot("sizes must be 0 or more; one of them may be -1")),
        }
    }
    let product = count(&sizes)?;
    if let Some(axis) = free {
        // TF: -1 beside a size of 0 cannot be resolved, unless the tensor has no elements.
        sizes[axis] = match (total, product) {
            (0, _) => 0,
            (_, 0) => return Err(cannot("-1 can have any value if another size is 0")),
            (total, product) if total % product == 0 => total / product,
            _ => return Err(cannot("the other sizes do not divide the number of elements")),
        };
    } else if product != total {
        return Err(cannot(&format!("the first has {total} elements, the second {product}")));
    }
    Ok(sizes)
}
