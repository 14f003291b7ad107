//! `AbsoluteError`: the absolute difference, in the labels' unit.

use estimand_graph::Tensor;

use super::{Loss, Reduction, matched, reduction_setter};

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
}
