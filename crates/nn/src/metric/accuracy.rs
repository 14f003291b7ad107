//! Accuracy: how often a prediction equals the label.

use estimand_graph::Tensor;
use estimand_tensor::DType;

use super::{Metric, mean, pair};
use crate::alignment::{matched, one_for_each_row};

/// The share of predictions that equal the labels.
///
/// If only one of them holds integers, they are converted to the other's float type.
#[track_caller]
pub fn accuracy(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    let dtype = match (labels.dtype(), predictions.dtype()) {
        (l, p) if l == p || l.is_float() => l,
        (_, p) if p.is_float() => p,
        _ => DType::I64,
    };
    let (labels, predictions) = pair("accuracy", &labels.cast(dtype), &predictions.cast(dtype));
    mean(&predictions.equal(labels), weights)
}

/// The share of probabilities on the label's side of a threshold. A probability equal to the
/// threshold predicts 0.
#[track_caller]
pub fn binary_accuracy(labels: &Tensor, probabilities: &Tensor, threshold: f64, weights: Option<&Tensor>) -> Metric {
    let (labels, probabilities) = pair("binary_accuracy", labels, &probabilities.cast(DType::F32));
    mean(&probabilities.greater(threshold).cast(DType::F32).equal(labels), weights)
}

/// The share of rows (the last axis) in which prediction and label have their maximum at the same
/// position, as for one-hot labels.
#[track_caller]
pub fn categorical_accuracy(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    let (labels, predictions) = pair("categorical_accuracy", labels, predictions);
    mean(&predictions.argmax(-1).equal(labels.argmax(-1)), weights)
}

/// The share of rows whose largest logit belongs to the label, a class number. Of equal logits, the
/// first counts.
#[track_caller]
pub fn sparse_categorical_accuracy(labels: &Tensor, logits: &Tensor, weights: Option<&Tensor>) -> Metric {
    let labels = one_for_each_row(labels, logits, "categorical_accuracy");
    let classes = logits.argmax(-1);
    mean(&classes.equal(matched("sparse_categorical_accuracy", &labels, &classes)), weights)
}
