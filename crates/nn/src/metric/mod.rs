//! Metrics of evaluation: sums over batches, and a function from the sums to the value. Both are
//! parts of a graph.
//!
//! The sums of a batch are computed with the model. The evaluator adds them up in f64 and computes
//! the value once, at the end. So a metric has no state, and its value does not depend on how rows
//! were batched, up to rounding.
//!
//! Values are those of `tf.keras.metrics` in TensorFlow 2.15. This file defines `Metric`, `value`
//! the trait `MetricValue` of metrics as plain data, `values` one type for each; the other files
//! hold the functions of a family each.

mod accuracy;
mod auc;
mod calibration;
mod confusion;
mod confusion_matrix;
mod histogram;
mod mean;
mod mean_loss;
mod normalizer;
mod r2;
mod thresholds;
mod top_k;
mod totals;
mod trade_off;
mod value;
mod values;

pub use accuracy::{accuracy, binary_accuracy, categorical_accuracy, sparse_categorical_accuracy};
pub use auc::{Auc, Curve, Summation, auc, auc_precision_recall};
pub use calibration::expected_calibration_error;
pub use confusion::{false_negatives, false_positives, precision, recall, true_negatives, true_positives};
pub use confusion_matrix::{confusion_matrix, mean_iou, mean_per_class_accuracy};
pub use mean::{
    cosine_similarity, mean, mean_absolute_error, mean_loss, mean_relative_error, mean_squared_error,
    root_mean_squared_error,
};
pub use mean_loss::MeanLoss;
pub use normalizer::Normalizer;
pub use r2::r2_score;
pub use thresholds::{Thresholds, precision_at_thresholds, recall_at_thresholds};
pub use top_k::{sparse_top_k_categorical_accuracy, top_k_categorical_accuracy};
pub use totals::Totals;
pub use trade_off::{precision_at_recall, recall_at_precision, sensitivity_at_specificity, specificity_at_sensitivity};
pub use value::{MetricValue, from_json, named, read};
pub use values::{
    Accuracy, BinaryAccuracy, CategoricalAccuracy, ConfusionMatrix, CosineSimilarity, ExpectedCalibrationError,
    FalseNegatives, FalsePositives, Mean, MeanAbsoluteError, MeanIou, MeanPerClassAccuracy, MeanRelativeError,
    MeanSquaredError, Precision, PrecisionAtRecall, R2Score, Recall, RecallAtPrecision, RootMeanSquaredError,
    SensitivityAtSpecificity, SparseCategoricalAccuracy, SparseTopKCategoricalAccuracy, SpecificityAtSensitivity,
    TopKCategoricalAccuracy, TrueNegatives, TruePositives,
};

use std::fmt;
use std::rc::Rc;

use estimand_graph::Tensor;
use estimand_tensor::Dim;

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

/// Every metric of this crate, in its simplest form: with the threshold or the limit 0.5, `k` 2, 3
/// classes, 10 ranges, the thresholds 0.25 and 0.5, the loss `Hinge`, relative to labels. Each has
/// its own name.
pub const ALL_METRICS: [fn() -> Box<dyn MetricValue>; 32] = [
    || Box::new(Accuracy::new()),
    || Box::new(Auc::new()),
    || Box::new(Auc::new().curve(Curve::Pr).name("auc_precision_recall")),
    || Box::new(BinaryAccuracy::new()),
    || Box::new(CategoricalAccuracy::new()),
    || Box::new(ConfusionMatrix::new(3)),
    || Box::new(CosineSimilarity::new()),
    || Box::new(ExpectedCalibrationError::new()),
    || Box::new(FalseNegatives::new()),
    || Box::new(FalsePositives::new()),
    || Box::new(Mean::new()),
    || Box::new(MeanAbsoluteError::new()),
    || Box::new(MeanIou::new(3)),
    || Box::new(MeanLoss::new(Hinge::new())),
    || Box::new(MeanPerClassAccuracy::new(3)),
    || Box::new(MeanRelativeError::new()),
    || Box::new(MeanSquaredError::new()),
    || Box::new(Precision::new()),
    || Box::new(PrecisionAtRecall::new(0.5)),
    || Box::new(Precision::new().thresholds([0.25, 0.5]).name("precision_at_thresholds")),
    || Box::new(R2Score::new()),
    || Box::new(Recall::new()),
    || Box::new(RecallAtPrecision::new(0.5)),
    || Box::new(Recall::new().thresholds([0.25, 0.5]).name("recall_at_thresholds")),
    || Box::new(RootMeanSquaredError::new()),
    || Box::new(SensitivityAtSpecificity::new(0.5)),
    || Box::new(SparseCategoricalAccuracy::new()),
    || Box::new(SparseTopKCategoricalAccuracy::new().k(2)),
    || Box::new(SpecificityAtSensitivity::new(0.5)),
    || Box::new(TopKCategoricalAccuracy::new().k(2)),
    || Box::new(TrueNegatives::new()),
    || Box::new(TruePositives::new()),
];

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
