//! Concatenates sparse tensors along an axis.

use estimand_tensor::{Array, DType, Error, Result, Strings, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::elements::reordered;
use super::{Sparse, expect_sparse, index_shape, size_list, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::same_dtype;
use crate::op::spelling::{Spelling, typed};

/// (all indices, all values, all dense shapes) -> (indices, values, dense shape), in row-major
/// order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseConcat {
    /// The axis; counted from the end if negative.
    pub axis: i64,
}

impl HostRules for SparseConcat {
    fn name(&self) -> &'static str {
        "SparseConcat"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        let n = x.len() / 3;
        if n == 0 || x.len() != 3 * n {
            return Err(Error::config(format!("there are {} inputs; expected three for each sparse tensor", x.len())));
        }
        let mut rank = 0;
        for i in 0..n {
            rank = expect_sparse(x[i], x[n + i], x[2 * n + i])?;
            same_dtype(x[n], x[n + i])?;
        }
        self.resolved(rank)?;
        let total = inference.axis(0, 0);
        Ok(smallvec![spec(DType::I64, index_shape(total, rank)), spec(x[n].dtype, [total]), spec(DType::I64, [rank])])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let n = x.len() / 3;
        let parts = (0..n).map(|i| Sparse::new(x[i], x[n + i].len(), x[2 * n + i])).collect::<Result<Vec<_>>>()?;
        let mut sizes = parts[0].sizes.clone();
        let axis = self.resolved(sizes.len())?;
        sizes[axis] = 0;
        let mut indices: Vec<Vec<i64>> = Vec::new();
        for part in &parts {
            let same = |(i, (a, b)): (usize, (&usize, &usize))| i == axis || a == b;
            if part.rank != sizes.len() || !part.sizes.iter().zip(&sizes).enumerate().all(same) {
                return Err(Error::shape(format!(
                    "the sparse tensors {:?} and {:?} differ in another axis than the joined axis {axis}",
                    parts[0].sizes, part.sizes
                )));
            }
            for i in 0..part.len() {
                let mut index = part.checked(i)?.to_vec();
                index[axis] += sizes[axis] as i64;
                indices.push(index);
            }
            sizes[axis] = sizes[axis]
                .checked_add(part.sizes[axis])
                .ok_or_else(|| Error::shape("the joined axis is too large"))?;
        }
        let mut order: Vec<usize> = (0..indices.len()).collect();
        order.sort_by_key(|&i| &indices[i]);
        let sorted: Vec<i64> = order.iter().flat_map(|&i| &indices[i]).copied().collect();
        let values = reordered(&joined(&x[n..2 * n])?, &order)?;
        Ok(vec![Array::from_vec([order.len(), sizes.len()], sorted)?, values, size_list(&sizes)])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let n = node.inputs.len() / 3;
        let def = def.attr("concat_dim", self.axis).attr("N", n as i64);
        Ok(typed(def, "T", writer.dtype(node, n)))
    }
}

impl SparseConcat {
    fn resolved(&self, rank: usize) -> Result<usize> {
        let axis = if self.axis < 0 { self.axis + rank as i64 } else { self.axis };
        usize::try_from(axis).ok().filter(|&a| a < rank).ok_or_else(|| {
            Error::shape(format!("axis {} is out of range for a sparse tensor with {rank} axes", self.axis))
        })
    }
}

/// Concatenates lists.
fn joined(lists: &[&Array]) -> Result<Array> {
    let n = lists.iter().map(|list| list.len()).sum::<usize>();
    if lists[0].dtype() == DType::Str {
        let mut all = Strings::with_capacity(n);
        for list in lists {
            list.strings()?.for_each(|s| all.push(s));
        }
        return Array::from_string_list([n], all);
    }
    let bytes: Vec<u8> = lists.iter().flat_map(|list| list.bytes()).copied().collect();
    Array::from_bytes(lists[0].dtype(), [n], &bytes)
}
