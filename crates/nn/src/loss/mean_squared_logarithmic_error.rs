//! `MeanSquaredLogarithmicError`: how far off by factors, for labels of many sizes.

use estimand_graph::Tensor;

use super::{EPSILON, Loss, Reduction, matched, reduction_setter};

/// `(ln(1 + prediction) - ln(1 + label))^2` of elements; whatever is below 1e-7 counts as that.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MeanSquaredLogarithmicError {
    reduction: Reduction,
}

impl MeanSquaredLogarithmicError {
    /// The mean over all elements.
    pub fn new() -> MeanSquaredLogarithmicError {
        MeanSquaredLogarithmicError::default()
    }
}

reduction_setter!(MeanSquaredLogarithmicError);

impl Loss for MeanSquaredLogarithmicError {
    fn name(&self) -> &'static str {
        "mean_squared_logarithmic_error"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        let logarithm = |x: &Tensor| (x.maximum(EPSILON) + 1.0).log();
        (logarithm(predictions) - logarithm(&labels)).square()
    }
}
