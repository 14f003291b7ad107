//! `Poisson`: counts, from the expected count.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{EPSILON, Loss, MODULE, Reduction, described_by_reduction, matched, reduction_setter};
use crate::config::{self, Json};

/// The loss `prediction - label * ln(prediction + 1e-7)` of each element: the negative
/// log-likelihood of a count, up to terms that do not depend on the prediction.
///
/// Predictions must be above 0. If a network predicts their logarithms, use
/// [`LogPoisson`](super::LogPoisson).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Poisson {
    reduction: Reduction,
}

impl Poisson {
    /// Reduces to the mean over all elements.
    pub fn new() -> Poisson {
        Poisson::default()
    }
}

reduction_setter!(Poisson);
described_by_reduction!(Poisson, "Poisson", of_elements);

impl Loss for Poisson {
    fn name(&self) -> &'static str {
        "poisson"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn min_value(&self) -> f64 {
        // The omitted term ln(label!) would make the loss positive.
        f64::NEG_INFINITY
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        predictions - labels * (predictions + EPSILON).log()
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
