//! `CategoricalHinge`: how far the right class is ahead of the best other one.

use estimand_graph::Tensor;

use super::{Loss, Reduction, matched, reduction_setter};

/// `max(1 + the largest score of another class - the score of the right one, 0)` of rows, whose
/// labels are one-hot.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CategoricalHinge {
    reduction: Reduction,
}

impl CategoricalHinge {
    /// The mean over all rows.
    pub fn new() -> CategoricalHinge {
        CategoricalHinge::default()
    }
}

reduction_setter!(CategoricalHinge);

impl Loss for CategoricalHinge {
    fn name(&self) -> &'static str {
        "categorical_hinge"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        let right = (&labels * predictions).sum_axes(&[-1], false);
        let other = ((1.0f64 - labels) * predictions).max_axes(&[-1], false);
        (other - right + 1.0).relu()
    }
}
