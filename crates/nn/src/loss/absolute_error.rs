//! `AbsoluteError`: how far off, in the labels' own unit.

use estimand_graph::Tensor;

use super::{Loss, Reduction, matched, reduction_setter};

/// `|prediction - label|` of each element.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct AbsoluteError {
    reduction: Reduction,
}

impl AbsoluteError {
    /// The mean over all elements.
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
