//! Metrics of evaluation: sums that add up over batches, and a value of the sums. Both are parts of a graph.
//!
//! The sums of a batch are computed with the model. Whoever evaluates adds them up, in f64, and computes the value once, at the
//! end: so a metric has no state, and its value does not depend on how rows were batched, up to rounding.

mod accuracy;
mod mean;

pub use accuracy::{accuracy, binary_accuracy, sparse_categorical_accuracy};
pub use mean::{mean, mean_absolute_error, mean_squared_error, root_mean_squared_error};

use std::fmt;
use std::rc::Rc;

use estimand_graph::Tensor;

type ValueFn = dyn Fn(&[Tensor]) -> Tensor;

/// One metric of a model.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric::Metric;
/// use estimand_tensor::{DType, Dim};
///
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
/// // The largest share: the sum of what is positive over the sum of all.
/// let share = Metric::new([x.relu().sum(), x.abs().sum()], |sums| sums[0].div_no_nan(&sums[1]));
/// assert_eq!(share.sums().len(), 2);
/// ```
#[derive(Clone)]
pub struct Metric {
    sums: Vec<Tensor>,
    value: Rc<ValueFn>,
}

impl Metric {
    /// A metric of sums over a batch, of any known shape, and a function from the sums of all batches to one number. The function is
    /// given f64 tensors of another graph.
    pub fn new(sums: impl IntoIterator<Item = Tensor>, value: impl Fn(&[Tensor]) -> Tensor + 'static) -> Metric {
        Metric { sums: sums.into_iter().collect(), value: Rc::new(value) }
    }

    /// What is summed over batches.
    pub fn sums(&self) -> &[Tensor] {
        &self.sums
    }

    /// The value of sums over all batches.
    pub fn value(&self, sums: &[Tensor]) -> Tensor {
        (self.value)(sums)
    }
}

impl fmt::Debug for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metric").field("sums", &self.sums).finish_non_exhaustive()
    }
}
