//! `CategoricalHinge`: the margin of the right class over the best other class.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{Loss, MODULE, Reduction, described_by_reduction, matched, reduction_setter};
use crate::config::{self, Json};

/// The loss `max(1 + the largest score of another class - the score of the right one, 0)` of each
/// row. Labels are one-hot rows.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CategoricalHinge {
    reduction: Reduction,
}

impl CategoricalHinge {
    /// Reduces to the mean over all rows.
    pub fn new() -> CategoricalHinge {
        CategoricalHinge::default()
    }
}

reduction_setter!(CategoricalHinge);
described_by_reduction!(CategoricalHinge, "CategoricalHinge", of_rows);

impl Loss for CategoricalHinge {
    fn name(&self) -> &'static str {
        "categorical_hinge"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        let right = (&labels * predictions).sum_axes([-1]);
        let other = ((1.0f64 - labels) * predictions).max_axes([-1]);
        (other - right + 1.0).relu()
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
