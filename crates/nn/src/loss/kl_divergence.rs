//! `KlDivergence`: the distance of one distribution from another.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{EPSILON, Loss, MODULE, Reduction, described_by_reduction, matched, reduction_setter};
use crate::config::{self, Json};

/// The Kullback-Leibler divergence `sum(label * ln(label / prediction))` of each row. Labels and
/// predictions are probabilities; both are clipped to 1e-7 and 1.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct KlDivergence {
    reduction: Reduction,
}

impl KlDivergence {
    /// Reduces to the mean over all rows.
    pub fn new() -> KlDivergence {
        KlDivergence::default()
    }
}

reduction_setter!(KlDivergence);
described_by_reduction!(KlDivergence, "KLDivergence", of_rows);

impl Loss for KlDivergence {
    fn name(&self) -> &'static str {
        "kl_divergence"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        let labels = labels.clip(EPSILON, 1.0);
        let ratio = &labels / predictions.clip(EPSILON, 1.0);
        (labels * ratio.log()).sum_axes([-1])
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
