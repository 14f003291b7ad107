//! `SigmoidCrossEntropy`: independent binary labels.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{EPSILON, Loss, MODULE, Reduction, matched, reduction_setter, smoothed};
use crate::config::{self, Described, Fields, Json};

/// The cross entropy of each element with the probability given by its label.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SigmoidCrossEntropy {
    label_smoothing: f64,
    probabilities: bool,
    reduction: Reduction,
}

impl SigmoidCrossEntropy {
    /// Takes logits, in a form that does not overflow.
    pub fn new() -> SigmoidCrossEntropy {
        SigmoidCrossEntropy::default()
    }

    /// Takes probabilities, clipped to 1e-7 away from 0 and 1. By default predictions are logits.
    #[allow(clippy::wrong_self_convention, reason = "Keras's word for it is from_logits")]
    pub fn from_probabilities(mut self) -> SigmoidCrossEntropy {
        self.probabilities = true;
        self
    }

    /// Moves labels towards one half by this fraction. By default 0.
    pub fn label_smoothing(mut self, smoothing: f64) -> SigmoidCrossEntropy {
        self.label_smoothing = smoothing;
        self
    }
}

reduction_setter!(SigmoidCrossEntropy);

impl Described for SigmoidCrossEntropy {
    const CLASS: &'static str = "BinaryCrossentropy";

    fn template() -> SigmoidCrossEntropy {
        SigmoidCrossEntropy::new().from_probabilities().reduction(Reduction::SumOverBatchSize)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SigmoidCrossEntropy {
        fields.only("axis", -1);
        SigmoidCrossEntropy {
            label_smoothing: fields.value("label_smoothing", &self.label_smoothing),
            probabilities: !fields.value("from_logits", &!self.probabilities),
            reduction: self.reduction.of_elements(fields),
        }
    }
}

impl Loss for SigmoidCrossEntropy {
    fn name(&self) -> &'static str {
        "sigmoid_cross_entropy_loss"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = smoothed(matched(self.name(), labels, predictions), self.label_smoothing, 0.5);
        if !self.probabilities {
            return predictions.sigmoid_cross_entropy(&labels);
        }
        // TF: epsilon is used twice, for clipping and inside the logarithm.
        let p = predictions.clip(EPSILON, 1.0 - EPSILON);
        let yes = &labels * (&p + EPSILON).log();
        let no = (1.0f64 - &labels) * (1.0f64 - &p + EPSILON).log();
        -(yes + no)
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
