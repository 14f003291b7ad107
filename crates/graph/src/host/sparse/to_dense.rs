//! Converts sparse tensors to dense ones.

use estimand_tensor::{Array, Dim, Error, Result, Shape, TensorSpec, element_count};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::elements::picked;
use super::{integers, sizes, spec};
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::{expect_rank, integer_ids, same_dtype};
use crate::op::spelling::{Spelling, typed};

/// (indices `[]`, `[n]` or `[n, rank]`; dense shape; values `[n]` or one for all; default) -> a
/// dense tensor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SparseToDense {
    /// The dense shape; `None` for an unknown size.
    pub shape: Vec<Option<Dim>>,
    /// Whether indices must be sorted and distinct.
    pub validate: bool,
}

/// The largest number of elements. A larger dense shape is taken to be damaged or hostile.
const MAX_ELEMENTS: usize = 1 << 28;

impl HostRules for SparseToDense {
    fn name(&self) -> &'static str {
        "SparseToDense"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        integer_ids(x[0], "indices")?;
        integer_ids(x[1], "sizes of the dense shape")?;
        expect_rank(1, x[1], "dense shape")?;
        same_dtype(x[2], x[3])?;
        expect_rank(0, x[3], "default")?;
        if x[0].shape.rank() > 2 || x[2].shape.rank() > 1 {
            return Err(Error::shape(format!(
                "the indices are {} and the values {}; expected at most two axes and one axis",
                x[0].shape, x[2].shape
            )));
        }
        let size = |(axis, size): (usize, &Option<Dim>)| size.unwrap_or_else(|| inference.axis(0, axis));
        let shape: Shape = self.shape.iter().enumerate().map(size).collect();
        Ok(smallvec![spec(x[2].dtype, shape)])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let (indices, sizes) = (integers(x[0])?, sizes(x[1])?);
        let total = element_count(&sizes)?;
        if total > MAX_ELEMENTS {
            return Err(Error::shape(format!(
                "the dense tensor is {sizes:?}; at most {MAX_ELEMENTS} elements are supported"
            )));
        }
        let rank = sizes.len();
        let n = x[0].dims().first().copied().unwrap_or(1);
        let width = x[0].dims().get(1).copied().unwrap_or(1);
        if width != rank || (x[2].rank() == 1 && x[2].len() != n) {
            return Err(Error::shape(format!(
                "the indices {:?} and values {:?} do not fit a dense shape of {rank} axes",
                x[0].dims(),
                x[2].dims()
            )));
        }
        // The index of each element's value, from 1; 0 for the default.
        let mut source = vec![0u32; total];
        let mut last: Option<usize> = None;
        for i in 0..n {
            let index = &indices[i * rank..(i + 1) * rank];
            let mut place = 0;
            for (&k, &size) in index.iter().zip(&sizes) {
                let k = usize::try_from(k).ok().filter(|&k| k < size).ok_or_else(|| {
                    Error::index(format!("index {i}, {index:?}, is outside the dense shape {sizes:?}"))
                })?;
                place = place * size + k;
            }
            if self.validate && last.is_some_and(|last| last >= place) {
                let what = if last == Some(place) { "repeated" } else { "out of order" };
                return Err(Error::index(format!("index {i}, {index:?}, is {what}")));
            }
            last = Some(place);
            source[place] = if x[2].rank() == 0 { 1 } else { i as u32 + 1 };
        }
        let source = source.into_iter().map(|n| n.checked_sub(1).map(|i| i as usize));
        Ok(vec![picked(x[2], &sizes, source, x[3])?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        let def = typed(typed(def, "Tindices", writer.dtype(node, 0)), "T", writer.dtype(node, 2));
        Ok(def.attr("validate_indices", self.validate))
    }
}
