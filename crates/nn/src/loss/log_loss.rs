//! `LogLoss`: binary labels, from probabilities.

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use super::{EPSILON, Loss, OWN_MODULE, Reduction, matched, reduction_setter};
use crate::config::{self, Described, Fields, Json};

/// The loss `-label * ln(p + epsilon) - (1 - label) * ln(1 - p + epsilon)` of each element:
/// `tf.compat.v1.losses.log_loss`.
///
/// If the predictions are logits, use [`SigmoidCrossEntropy`](super::SigmoidCrossEntropy), which is
/// exact. Its [`from_probabilities`](super::SigmoidCrossEntropy::from_probabilities) is Keras' form
/// of this loss.
#[derive(Clone, Debug)]
#[must_use]
pub struct LogLoss {
    epsilon: f64,
    reduction: Reduction,
}

impl LogLoss {
    /// Uses epsilon 1e-7.
    pub fn new() -> LogLoss {
        LogLoss { epsilon: EPSILON, reduction: Reduction::default() }
    }

    /// The number added inside the logarithms. By default 1e-7.
    pub fn epsilon(mut self, epsilon: f64) -> LogLoss {
        self.epsilon = epsilon;
        self
    }
}

impl Default for LogLoss {
    fn default() -> LogLoss {
        LogLoss::new()
    }
}

reduction_setter!(LogLoss);

impl Described for LogLoss {
    const CLASS: &'static str = "LogLoss";

    fn template() -> LogLoss {
        LogLoss::new().reduction(Reduction::SumOverBatchSize)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> LogLoss {
        LogLoss { epsilon: fields.value("epsilon", &self.epsilon), reduction: self.reduction.of_elements(fields) }
    }
}

impl Loss for LogLoss {
    fn name(&self) -> &'static str {
        "log_loss"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn min_value(&self) -> f64 {
        // The loss of a prediction that is certain and right.
        -(1.0 + self.epsilon).ln()
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let epsilon = self.epsilon;
        if !(0.0..1.0).contains(&epsilon) {
            return predictions
                .graph()
                .error(Error::config(format!("the epsilon of log_loss is {epsilon}; expected 0 <= epsilon < 1")));
        }
        let labels = matched(self.name(), labels, predictions);
        let yes = &labels * (predictions + epsilon).log();
        let no = (1.0f64 - &labels) * (1.0f64 - predictions + epsilon).log();
        -(yes + no)
    }

    fn to_json(&self) -> Result<Json> {
        config::write(OWN_MODULE, self)
    }
}
