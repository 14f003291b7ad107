//! How often a prediction is the label.

use estimand_graph::Tensor;
use estimand_tensor::DType;

use super::{Metric, mean};

/// The share of predictions that equal the labels: `tf.metrics.accuracy`.
#[track_caller]
pub fn accuracy(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    mean(&predictions.equal(labels.cast(predictions.dtype())), weights)
}

/// The share of probabilities on the label's side of a threshold.
#[track_caller]
pub fn binary_accuracy(labels: &Tensor, probabilities: &Tensor, threshold: f64, weights: Option<&Tensor>) -> Metric {
    let predictions = probabilities.greater(threshold).cast(DType::F32);
    mean(&predictions.equal(labels.cast(DType::F32)), weights)
}

/// The share of rows whose largest logit is that of the label.
#[track_caller]
pub fn sparse_categorical_accuracy(labels: &Tensor, logits: &Tensor, weights: Option<&Tensor>) -> Metric {
    let classes = logits.argmax(-1);
    mean(&classes.equal(labels.cast(classes.dtype())), weights)
}
