//! `MeanSquaredError`: the squared difference; large errors count more.

use estimand_graph::Tensor;

use super::{Loss, Reduction, matched, reduction_setter};

/// The loss `(prediction - label)^2` of each element.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MeanSquaredError {
    reduction: Reduction,
}

impl MeanSquaredError {
    /// Reduces to the mean over all elements.
    pub fn new() -> MeanSquaredError {
        MeanSquaredError::default()
    }
}

reduction_setter!(MeanSquaredError);

impl Loss for MeanSquaredError {
    fn name(&self) -> &'static str {
        "mean_squared_error"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        predictions.squared_difference(&labels)
    }
}
