//! `AbsoluteError`: the absolute difference, in the labels' unit.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{Loss, MODULE, Reduction, described_by_reduction, matched, reduction_setter};
use crate::config::{self, Json};

/// The loss `|prediction - label|` of each element.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct AbsoluteError {
    reduction: Reduction,
}

impl AbsoluteError {
    /// Reduces to the mean over all elements.
    pub fn new() -> AbsoluteError {
        AbsoluteError::default()
    }
}

reduction_setter!(AbsoluteError);
described_by_reduction!(AbsoluteError, "MeanAbsoluteError", of_elements);

impl Loss for AbsoluteError {
    fn name(&self) -> &'static str {
        "absolute_difference"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        (predictions - labels).abs()
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
