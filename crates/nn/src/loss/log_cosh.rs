//! `LogCosh`: quadratic for small errors, linear for large ones, and smooth.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{Loss, MODULE, Reduction, described_by_reduction, matched, reduction_setter};
use crate::config::{self, Json};

/// The loss `ln(cosh(prediction - label))` of each element, in a form that does not overflow.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct LogCosh {
    reduction: Reduction,
}

impl LogCosh {
    /// Reduces to the mean over all elements.
    pub fn new() -> LogCosh {
        LogCosh::default()
    }
}

reduction_setter!(LogCosh);
described_by_reduction!(LogCosh, "LogCosh", of_elements);

impl Loss for LogCosh {
    fn name(&self) -> &'static str {
        "log_cosh"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn min_value(&self) -> f64 {
        // For small errors the result is a difference of nearly equal numbers, so rounding may make
        // it negative.
        -f64::from(f32::EPSILON)
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        let error = predictions - labels;
        &error + (&error * -2.0).softplus() - std::f64::consts::LN_2
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
