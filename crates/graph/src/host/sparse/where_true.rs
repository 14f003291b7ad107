//! The indices of true elements.

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec};
use estimand_wire::NodeDef;
use smallvec::smallvec;

use super::spec;
use crate::body::Node;
use crate::host::{HostRules, Inference, Said, Specs};
use crate::op::expect::accepts;
use crate::op::spelling::{Spelling, typed};

/// The indices of the elements that are not 0, in order: i64 `[n, rank]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Where;

impl HostRules for Where {
    fn name(&self) -> &'static str {
        "Where"
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        accepts(x[0].dtype != DType::Str, x[0].dtype)?;
        if x[0].shape.rank() == 0 {
            return Err(Error::shape("the input is a single number; expected at least one axis"));
        }
        let shape = Shape::from([inference.axis(0, 0), Dim::Known(x[0].shape.rank())]);
        Ok(smallvec![spec(DType::I64, shape)])
    }

    fn run(&self, x: &[&Array]) -> Result<Vec<Array>> {
        let dims = x[0].dims();
        let mut indices = Vec::new();
        let mut n = 0;
        let numbers = match x[0].dtype() {
            DType::Bool => None,
            _ => Some(x[0].to_f64_vec()?),
        };
        let holds = |i: usize| match &numbers {
            None => x[0].bytes()[i] != 0,
            Some(numbers) => numbers[i] != 0.0,
        };
        for i in (0..x[0].len()).filter(|&i| holds(i)) {
            n += 1;
            let first = indices.len();
            indices.resize(first + dims.len(), 0);
            let mut rest = i;
            for (place, &size) in indices[first..].iter_mut().zip(dims).rev() {
                *place = (rest % size) as i64;
                rest /= size;
            }
        }
        Ok(vec![Array::from_vec([n, dims.len()], indices)?])
    }

    fn meaning(&self) -> Vec<Said> {
        Vec::new()
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        Ok(typed(def, "T", writer.dtype(node, 0)))
    }
}
