//! `Poisson`: counts, from how many are expected.

use estimand_graph::Tensor;

use super::{EPSILON, Loss, Reduction, matched, reduction_setter};

/// `prediction - label * ln(prediction + 1e-7)` of elements: the negative logarithm of the
/// probability of a count, up to what no prediction changes.
///
/// Predictions are above 0. For their logarithms, as networks give them, take
/// [`LogPoisson`](super::LogPoisson).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Poisson {
    reduction: Reduction,
}

impl Poisson {
    /// The mean over all elements.
    pub fn new() -> Poisson {
        Poisson::default()
    }
}

reduction_setter!(Poisson);

impl Loss for Poisson {
    fn name(&self) -> &'static str {
        "poisson"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn min_value(&self) -> f64 {
        // What is left out of the logarithm, ln(label!), would make it positive.
        f64::NEG_INFINITY
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        predictions - labels * (predictions + EPSILON).log()
    }
}
