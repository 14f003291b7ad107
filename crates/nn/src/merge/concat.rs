//! `Concat`: concatenates inputs along an axis.

use estimand_graph::Tensor;
use estimand_tensor::Error;

use super::{Merge, described};
use crate::layer::resolve_axis;

/// Concatenates the inputs along an axis. Their other sizes must be equal.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Concat {
    axis: i64,
}

impl Concat {
    /// Concatenates along the last axis.
    pub fn new() -> Concat {
        Concat { axis: -1 }
    }

    /// The axis along which inputs are concatenated. By default the last, -1.
    pub fn axis(mut self, axis: i64) -> Concat {
        self.axis = axis;
        self
    }
}

impl Default for Concat {
    fn default() -> Concat {
        Concat::new()
    }
}

impl Merge for Concat {
    fn kind(&self) -> &'static str {
        "concatenate"
    }

    fn call(&self, inputs: &[&Tensor]) -> Tensor {
        let axis = resolve_axis(inputs[0], self.axis);
        let fits = |x: &&Tensor| {
            let sizes = x.shape().dims().iter().zip(inputs[0].shape().dims()).enumerate();
            let differ = |a: Option<usize>, b: Option<usize>| a.zip(b).is_some_and(|(a, b)| a != b);
            x.rank() == inputs[0].rank()
                && !sizes.into_iter().any(|(i, (a, b))| Some(i) != axis && differ(a.known(), b.known()))
        };
        if axis.is_none() || !inputs.iter().all(fits) {
            let text = format!("{} cannot join {} along axis {}", self.kind(), described(inputs), self.axis);
            return inputs[0].graph().error(Error::shape(text).help("make all sizes equal except that of the axis"));
        }
        Tensor::concat(inputs, self.axis)
    }
}
