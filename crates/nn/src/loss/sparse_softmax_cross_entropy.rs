//! `SparseSoftmaxCrossEntropy`: one class of several, with class numbers as labels.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::{EPSILON, Loss, MODULE, Reduction, reduction_setter, rows_of};
use crate::alignment::one_for_each_row;
use crate::config::{self, Described, Fields, Json};

/// The cross entropy of each row (the last axis) with its class, an integer in `0..classes`.
///
/// Labels have the predictions' shape without the last axis, or with a last axis of 1. A label that
/// is not a class is an error at run time, which names the label, its row and the number of
/// classes.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct SparseSoftmaxCrossEntropy {
    probabilities: bool,
    reduction: Reduction,
}

impl SparseSoftmaxCrossEntropy {
    /// Takes logits.
    pub fn new() -> SparseSoftmaxCrossEntropy {
        SparseSoftmaxCrossEntropy::default()
    }

    /// Takes probabilities, clipped to 1e-7 away from 0 and 1. By default predictions are logits.
    #[allow(clippy::wrong_self_convention, reason = "Keras's word for it is from_logits")]
    pub fn from_probabilities(mut self) -> SparseSoftmaxCrossEntropy {
        self.probabilities = true;
        self
    }
}

reduction_setter!(SparseSoftmaxCrossEntropy);

impl Described for SparseSoftmaxCrossEntropy {
    const CLASS: &'static str = "SparseCategoricalCrossentropy";

    fn template() -> SparseSoftmaxCrossEntropy {
        SparseSoftmaxCrossEntropy::new().from_probabilities().reduction(Reduction::SumOverBatchSize)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SparseSoftmaxCrossEntropy {
        fields.only("ignore_class", Json::Null);
        // Keras has it in the metric alone.
        fields.only_read("axis", &[(-1).into()]);
        SparseSoftmaxCrossEntropy {
            probabilities: !fields.value("from_logits", &!self.probabilities),
            reduction: self.reduction.of_rows(fields),
        }
    }
}

impl Loss for SparseSoftmaxCrossEntropy {
    fn name(&self) -> &'static str {
        "sparse_softmax_cross_entropy_loss"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = one_for_each_row(labels, predictions, "SoftmaxCrossEntropy");
        if labels.is_poisoned() {
            return labels;
        }
        let logits = match self.probabilities {
            // TF: the logarithms of the clipped probabilities are used as logits, so rows need not
            // add up to 1.
            true => predictions.clip(EPSILON, 1.0 - EPSILON).log(),
            false => predictions.clone(),
        };
        if logits.rank() == 2 {
            return logits.sparse_softmax_cross_entropy(&labels);
        }
        let flat = logits.reshape([-1, logits.channels() as i64]);
        rows_of(&logits, &flat.sparse_softmax_cross_entropy(&labels.reshape([-1])))
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}
