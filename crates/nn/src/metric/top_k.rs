//! Top-k accuracy: how often the label's class is among the k most probable.

use estimand_graph::{Axes, Tensor};
use estimand_tensor::{DType, Error};

use super::{Metric, mean, pair};
use crate::alignment::one_for_each_row;

/// The share of rows (the last axis) in which fewer than `k` predictions are larger than the
/// prediction of the largest label.
#[track_caller]
pub fn top_k_categorical_accuracy(labels: &Tensor, predictions: &Tensor, k: usize, weights: Option<&Tensor>) -> Metric {
    let (labels, predictions) = pair("top_k_categorical_accuracy", labels, predictions);
    sparse_top_k_categorical_accuracy(&labels.argmax(-1), &predictions, k, weights)
}

/// The share of rows in which fewer than `k` predictions are larger than the prediction of the
/// label, a class number.
///
/// So equal predictions are all among the `k`. As in TensorFlow, a label that is not a class, or a
/// row with NaN or infinity, is a miss.
#[track_caller]
pub fn sparse_top_k_categorical_accuracy(
    labels: &Tensor,
    predictions: &Tensor,
    k: usize,
    weights: Option<&Tensor>,
) -> Metric {
    if k == 0 {
        return mean(&labels.graph().error(Error::config("k is 0; expected at least 1")), weights);
    }
    let labels = one_for_each_row(labels, predictions, "top_k_categorical_accuracy").cast(DType::I64);
    let predictions = predictions.cast(DType::F32);
    let chosen = labels.one_hot(predictions.channels(), DType::F32);
    // 0 times NaN or infinity is NaN, at any position of the row.
    let own = (&predictions * &chosen).sum_axes(Axes::of([-1]).keep_dims());
    let n_larger = predictions.greater(&own).cast(DType::F32).sum_axes([-1]);
    let is_class = chosen.sum_axes([-1]).greater(0.0);
    let is_known = own.squeeze(&[-1]).is_finite().logical_and(is_class);
    mean(&n_larger.less(k as f64).logical_and(is_known), weights)
}
