//! Metrics of evaluation: sums over batches, and a function from the sums to the value. Both are
//! parts of a graph.
//!
//! The sums of a batch are computed with the model. The evaluator adds them up in f64 and computes
//! the value once, at the end. So a metric has no state, and its value does not depend on how rows
//! were batched, up to rounding.
//!
//! Values are those of `tf.keras.metrics` in TensorFlow 2.15. This file defines `Metric`; the other
//! files hold a family of metrics each.

mod accuracy;
mod auc;
mod calibration;
mod confusion;
mod confusion_matrix;
mod histogram;
mod mean;
mod r2;
mod thresholds;
mod top_k;
mod totals;
mod trade_off;

pub use accuracy::{accuracy, binary_accuracy, categorical_accuracy, sparse_categorical_accuracy};
pub use auc::{Auc, Curve, Summation, auc, auc_precision_recall};
pub use calibration::expected_calibration_error;
pub use confusion::{false_negatives, false_positives, precision, recall, true_negatives, true_positives};
pub use confusion_matrix::{confusion_matrix, mean_iou, mean_per_class_accuracy};
pub use mean::{
    cosine_similarity, mean, mean_absolute_error, mean_loss, mean_relative_error, mean_squared_error,
    root_mean_squared_error,
};
pub use r2::r2_score;
pub use thresholds::{precision_at_thresholds, recall_at_thresholds};
pub use top_k::{sparse_top_k_categorical_accuracy, top_k_categorical_accuracy};
pub use totals::Totals;
pub use trade_off::{precision_at_recall, recall_at_precision, sensitivity_at_specificity, specificity_at_sensitivity};

use std::fmt;
use std::rc::Rc;

use estimand_graph::Tensor;
use estimand_tensor::{Dim, Error, Result};

use crate::alignment::matched;
use crate::loss::Hinge;

type ValueFn = dyn Fn(&[Tensor]) -> Tensor;

/// A metric of a model.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric::Metric;
/// use estimand_tensor::{DType, Dim};
///
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
/// // The largest share: the sum of what is positive over the sum of all.
/// let share = Metric::new([x.relu().sum(), x.abs().sum()], |sums| sums[0].div_no_nan(&sums[1]));
/// assert_eq!(share.sums().len(), 2);
/// ```
#[derive(Clone)]
pub struct Metric {
    sums: Vec<Tensor>,
    value: Rc<ValueFn>,
}

impl Metric {
    /// Creates a metric from the sums over a batch, of any known shape, and a function from the
    /// sums of all batches to the value. The value is one number, or several, as for a confusion
    /// matrix. The function receives f64 tensors of another graph.
    pub fn new(sums: impl IntoIterator<Item = Tensor>, value: impl Fn(&[Tensor]) -> Tensor + 'static) -> Metric {
        Metric { sums: sums.into_iter().collect(), value: Rc::new(value) }
    }

    /// The tensors that are summed over batches.
    pub fn sums(&self) -> &[Tensor] {
        &self.sums
    }

    /// Computes the value from the sums over all batches.
    pub fn value(&self, sums: &[Tensor]) -> Tensor {
        (self.value)(sums)
    }
}

impl fmt::Debug for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metric").field("sums", &self.sums).finish_non_exhaustive()
    }
}

/// A function that makes a metric from labels, predictions and optional weights.
pub type MetricFn = fn(&Tensor, &Tensor, Option<&Tensor>) -> Metric;

/// Every metric of this crate by name, in its simplest form: with the threshold or the limit 0.5,
/// `k` 2, 3 classes, 10 ranges, the thresholds 0.25 and 0.5, the loss `Hinge`, relative to labels.
/// The mean is that of predictions.
pub const ALL_METRICS: [(&str, MetricFn); 32] = [
    ("accuracy", accuracy),
    ("auc", auc),
    ("auc_precision_recall", auc_precision_recall),
    ("binary_accuracy", |labels, p, weights| binary_accuracy(labels, p, 0.5, weights)),
    ("categorical_accuracy", categorical_accuracy),
    ("confusion_matrix", |labels, classes, weights| confusion_matrix(labels, classes, 3, weights)),
    ("cosine_similarity", cosine_similarity),
    ("expected_calibration_error", |labels, p, weights| expected_calibration_error(labels, p, 10, weights)),
    ("false_negatives", |labels, p, weights| false_negatives(labels, p, 0.5, weights)),
    ("false_positives", |labels, p, weights| false_positives(labels, p, 0.5, weights)),
    ("mean", |_, predictions, weights| mean(predictions, weights)),
    ("mean_absolute_error", mean_absolute_error),
    ("mean_iou", |labels, classes, weights| mean_iou(labels, classes, 3, weights)),
    ("mean_loss", |labels, predictions, weights| mean_loss(&Hinge::new(), labels, predictions, weights)),
    ("mean_per_class_accuracy", |labels, classes, weights| mean_per_class_accuracy(labels, classes, 3, weights)),
    ("mean_relative_error", |labels, predictions, weights| mean_relative_error(labels, predictions, labels, weights)),
    ("mean_squared_error", mean_squared_error),
    ("precision", |labels, p, weights| precision(labels, p, 0.5, weights)),
    ("precision_at_recall", |labels, p, weights| precision_at_recall(labels, p, 0.5, weights)),
    ("precision_at_thresholds", |labels, p, weights| precision_at_thresholds(labels, p, &[0.25, 0.5], weights)),
    ("r2_score", r2_score),
    ("recall", |labels, p, weights| recall(labels, p, 0.5, weights)),
    ("recall_at_precision", |labels, p, weights| recall_at_precision(labels, p, 0.5, weights)),
    ("recall_at_thresholds", |labels, p, weights| recall_at_thresholds(labels, p, &[0.25, 0.5], weights)),
    ("root_mean_squared_error", root_mean_squared_error),
    ("sensitivity_at_specificity", |labels, p, weights| sensitivity_at_specificity(labels, p, 0.5, weights)),
    ("sparse_categorical_accuracy", sparse_categorical_accuracy),
    ("sparse_top_k_categorical_accuracy", |labels, p, weights| {
        sparse_top_k_categorical_accuracy(labels, p, 2, weights)
    }),
    ("specificity_at_sensitivity", |labels, p, weights| specificity_at_sensitivity(labels, p, 0.5, weights)),
    ("top_k_categorical_accuracy", |labels, p, weights| top_k_categorical_accuracy(labels, p, 2, weights)),
    ("true_negatives", |labels, p, weights| true_negatives(labels, p, 0.5, weights)),
    ("true_positives", |labels, p, weights| true_positives(labels, p, 0.5, weights)),
];

/// Looks up a metric of [`ALL_METRICS`] by name. For an unknown name, the error suggests the
/// nearest one.
///
/// ```
/// use estimand_nn::metric;
/// assert!(metric::named("auc").is_ok());
/// assert!(metric::named("precison").unwrap_err().to_string().contains("did you mean `precision`?"));
/// ```
pub fn named(name: &str) -> Result<MetricFn> {
    let found = ALL_METRICS.iter().find(|(known, _)| *known == name).map(|(_, metric)| *metric);
    found.ok_or_else(|| Error::unknown("metric", name, ALL_METRICS.iter().map(|(name, _)| *name)))
}

/// Gives labels and predictions the same shape, and casts the labels to the predictions' dtype. TF:
/// if one of them has one more axis than the other, of size 1 and last, that axis is dropped.
#[track_caller]
fn pair(name: &str, labels: &Tensor, predictions: &Tensor) -> (Tensor, Tensor) {
    let beside = |x: &Tensor, other: &Tensor| match x.shape().dims() {
        [.., Dim::Known(1)] if x.rank() == other.rank() + 1 => x.squeeze(&[-1]),
        _ => x.clone(),
    };
    let (labels, predictions) = (beside(labels, predictions), beside(predictions, labels));
    (matched(name, &labels, &predictions), predictions)
}
