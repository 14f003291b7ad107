//! `Huber`: quadratic for small errors, linear for large ones.

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use super::{Loss, MODULE, Reduction, matched, reduction_setter};
use crate::config::{self, Described, Fields, Json};

/// `e^2 / 2` if the error is at most delta, `delta * (|e| - delta / 2)` above.
#[derive(Clone, Debug)]
#[must_use]
pub struct Huber {
    delta: f64,
    reduction: Reduction,
}

impl Huber {
    /// Uses delta 1.
    pub fn new() -> Huber {
        Huber { delta: 1.0, reduction: Reduction::default() }
    }

    /// The error above which the loss is linear. By default 1.
    pub fn delta(mut self, delta: f64) -> Huber {
        self.delta = delta;
        self
    }
}

impl Default for Huber {
    fn default() -> Huber {
        Huber::new()
    }
}

reduction_setter!(Huber);

impl Described for Huber {
    const CLASS: &'static str = "Huber";

    fn template() -> Huber {
        Huber::new().reduction(Reduction::SumOverBatchSize)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Huber {
        Huber { delta: fields.value("delta", &self.delta), reduction: self.reduction.of_elements(fields) }
    }
}

impl Loss for Huber {
    fn name(&self) -> &'static str {
        "huber_loss"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        if self.delta.is_nan() || self.delta <= 0.0 {
            return predictions
                .graph()
                .error(Error::config(format!("the delta of huber is {}; expected a number above 0", self.delta)));
        }
        let error = (predictions - matched(self.name(), labels, predictions)).abs();
        let quadratic = error.minimum(self.delta);
        let linear = &error - &quadratic;
        quadratic.square() * 0.5 + linear * self.delta
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
