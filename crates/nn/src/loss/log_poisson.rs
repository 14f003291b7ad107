//! `LogPoisson`: counts, from the logarithm of the expected count.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Result};

use super::{Loss, OWN_MODULE, Reduction, matched, reduction_setter};
use crate::config::{self, Described, Fields, Json};

/// The loss `exp(x) - z * x`: the negative log-likelihood of a count `z` under a Poisson
/// distribution with mean `exp(x)`, up to the term `ln(z!)`.
///
/// The term `ln(z!)` changes no gradient. It is added in Stirling's approximation,
/// `z ln z - z + ln(2 pi z) / 2` for counts above 1, as in TensorFlow's `log_poisson_loss`.
#[derive(Clone, Debug)]
#[must_use]
pub struct LogPoisson {
    full: bool,
    reduction: Reduction,
}

impl LogPoisson {
    /// Takes logarithms of expected counts, and includes the term `ln(z!)`.
    pub fn new() -> LogPoisson {
        LogPoisson { full: true, reduction: Reduction::default() }
    }

    /// Whether the loss includes `ln(z!)`. By default it does.
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

impl Described for LogPoisson {
    const CLASS: &'static str = "LogPoisson";

    fn template() -> LogPoisson {
        LogPoisson::new().reduction(Reduction::SumOverBatchSize)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> LogPoisson {
        LogPoisson {
            full: fields.value("compute_full_loss", &self.full),
            reduction: self.reduction.of_elements(fields),
        }
    }
}

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
        // Counts up to 1 add nothing. The maximum keeps their logarithms finite.
        let z = counts.maximum(1.0);
        let stirling = &z * z.log() - &z + (&z * std::f64::consts::TAU).log() * 0.5;
        loss + counts.greater(1.0).select(stirling, 0.0)
    }

    fn to_json(&self) -> Result<Json> {
        config::write(OWN_MODULE, self)
    }
}
