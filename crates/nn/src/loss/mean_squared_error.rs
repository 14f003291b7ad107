//! `MeanSquaredError`: the squared difference; large errors count more.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{Loss, MODULE, Reduction, described_by_reduction, matched, reduction_setter};
use crate::config::{self, Json};

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
described_by_reduction!(MeanSquaredError, "MeanSquaredError", of_elements);

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

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
