//! `MeanSquaredLogarithmicError`: measures relative errors, for labels of different magnitudes.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{EPSILON, Loss, MODULE, Reduction, described_by_reduction, matched, reduction_setter};
use crate::config::{self, Json};

/// The loss `(ln(1 + prediction) - ln(1 + label))^2` of each element. Values below 1e-7 count as
/// 1e-7.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MeanSquaredLogarithmicError {
    reduction: Reduction,
}

impl MeanSquaredLogarithmicError {
    /// Reduces to the mean over all elements.
    pub fn new() -> MeanSquaredLogarithmicError {
        MeanSquaredLogarithmicError::default()
    }
}

reduction_setter!(MeanSquaredLogarithmicError);
described_by_reduction!(MeanSquaredLogarithmicError, "MeanSquaredLogarithmicError", of_elements);

impl Loss for MeanSquaredLogarithmicError {
    fn name(&self) -> &'static str {
        "mean_squared_logarithmic_error"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        let logarithm = |x: &Tensor| (x.maximum(EPSILON) + 1.0).log();
        (logarithm(predictions) - logarithm(&labels)).square()
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
