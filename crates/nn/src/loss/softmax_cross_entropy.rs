//! `SoftmaxCrossEntropy`: one class of several, with rows of probabilities as labels.

use estimand_graph::{Axes, Tensor};
use estimand_tensor::Result;

use super::{EPSILON, Loss, MODULE, Reduction, matched, reduction_setter, rows_of, smoothed};
use crate::config::{self, Described, Fields, Json};

/// The cross entropy of each row (the last axis) with a row of label probabilities, such as a
/// one-hot row.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SoftmaxCrossEntropy {
    label_smoothing: f64,
    probabilities: bool,
    reduction: Reduction,
}

impl SoftmaxCrossEntropy {
    /// Takes logits.
    pub fn new() -> SoftmaxCrossEntropy {
        SoftmaxCrossEntropy::default()
    }

    /// Takes probabilities: each row is divided by its sum and clipped to 1e-7 away from 0 and 1.
    /// By default predictions are logits.
    #[allow(clippy::wrong_self_convention, reason = "Keras's word for it is from_logits")]
    pub fn from_probabilities(mut self) -> SoftmaxCrossEntropy {
        self.probabilities = true;
        self
    }

    /// Spreads this fraction of the labels evenly over all classes. By default 0.
    pub fn label_smoothing(mut self, smoothing: f64) -> SoftmaxCrossEntropy {
        self.label_smoothing = smoothing;
        self
    }
}

reduction_setter!(SoftmaxCrossEntropy);

impl Described for SoftmaxCrossEntropy {
    const CLASS: &'static str = "CategoricalCrossentropy";

    fn template() -> SoftmaxCrossEntropy {
        SoftmaxCrossEntropy::new().from_probabilities().reduction(Reduction::SumOverBatchSize)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SoftmaxCrossEntropy {
        fields.only("axis", -1);
        SoftmaxCrossEntropy {
            label_smoothing: fields.value("label_smoothing", &self.label_smoothing),
            probabilities: !fields.value("from_logits", &!self.probabilities),
            reduction: self.reduction.of_rows(fields),
        }
    }
}

impl Loss for SoftmaxCrossEntropy {
    fn name(&self) -> &'static str {
        "softmax_cross_entropy_loss"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let classes = predictions.channels();
        let labels = matched(self.name(), labels, predictions);
        let labels = smoothed(labels, self.label_smoothing, 1.0 / classes as f64);
        if self.probabilities {
            let p = predictions / predictions.sum_axes(Axes::of([-1]).keep_dims());
            return -(labels * p.clip(EPSILON, 1.0 - EPSILON).log()).sum_axes([-1]);
        }
        if predictions.rank() == 2 {
            return predictions.softmax_cross_entropy(&labels);
        }
        let flat = [-1, classes as i64];
        let losses = predictions.reshape(flat).softmax_cross_entropy(&labels.reshape(flat));
        rows_of(predictions, &losses)
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
