//! `MeanAbsolutePercentageError`: the absolute difference in percent of the label.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{EPSILON, Loss, MODULE, Reduction, described_by_reduction, matched, reduction_setter};
use crate::config::{self, Json};

/// The loss `100 * |prediction - label| / max(|label|, 1e-7)` of each element.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MeanAbsolutePercentageError {
    reduction: Reduction,
}

impl MeanAbsolutePercentageError {
    /// Reduces to the mean over all elements.
    pub fn new() -> MeanAbsolutePercentageError {
        MeanAbsolutePercentageError::default()
    }
}

reduction_setter!(MeanAbsolutePercentageError);
described_by_reduction!(MeanAbsolutePercentageError, "MeanAbsolutePercentageError", of_elements);

impl Loss for MeanAbsolutePercentageError {
    fn name(&self) -> &'static str {
        "mean_absolute_percentage_error"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        ((predictions - &labels) / labels.abs().maximum(EPSILON)).abs() * 100.0
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
