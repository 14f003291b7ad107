//! `LogPoisson`: counts, from the logarithm of how many are expected.

use estimand_graph::Tensor;
use estimand_tensor::DType;

use super::{Loss, Reduction, matched, reduction_setter};

/// `exp(x) - z * x`, the negative logarithm of the probability of a count `z` where `exp(x)` are
/// expected (Poisson), up to `ln(z!)`.
///
/// That term changes no gradient. It is added in Stirling's approximation,
/// `z ln z - z + ln(2 pi z) / 2` for counts above 1, as in TensorFlow's `log_poisson_loss`.
#[derive(Clone, Debug)]
#[must_use]
pub struct LogPoisson {
    full: bool,
    reduction: Reduction,
}

impl LogPoisson {
    /// Of logarithms, with the term that changes no gradient.
    pub fn new() -> LogPoisson {
        LogPoisson { full: true, reduction: Reduction::default() }
    }

    /// Whether `ln(z!)` is added. By default it is.
    pub fn compute_full_loss(mut self, full: bool) -> LogPoisson {
        self.full = full;
        self
    }
}

impl Default for LogPoisson {
    fn default() -> LogPoisson {
        LogPoisson::new()
    }
}

reduction_setter!(LogPoisson);

impl Loss for LogPoisson {
    fn name(&self) -> &'static str {
        "log_poisson_loss"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let counts = matched(self.name(), labels, predictions).cast(DType::F32);
        let loss = predictions.exp() - predictions * &counts;
        if !self.full {
            return loss;
        }
        // Counts up to 1 have nothing to add, and no logarithm that would be in the way.
        let z = counts.maximum(1.0);
        let stirling = &z * z.log() - &z + (&z * std::f64::consts::TAU).log() * 0.5;
        loss + counts.greater(1.0).select(stirling, 0.0)
    }
}
