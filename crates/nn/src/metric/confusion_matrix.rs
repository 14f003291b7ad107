//! The confusion matrix, and metrics that weigh all classes equally.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error, Result};

use super::{Metric, pair};
use crate::alignment::beside;
use crate::config::{Field, Json, Node};

/// How often each class (a row) was predicted as each class (a column), or the sum of weights: a
/// metric of `[n_classes, n_classes]` numbers.
///
/// Labels and predictions are class numbers of one shape, such as `logits.argmax(-1)`. A number
/// that is not a class is an error at run time.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric;
/// use estimand_nn::testing::metric_array;
///
/// let g = Graph::new();
/// let (labels, predictions) = (g.constant([0i64, 0, 1, 1, 1]), g.constant([0i64, 1, 1, 1, 0]));
/// let matrix = metric::confusion_matrix(&labels, &predictions, 2, None);
/// assert_eq!(metric_array(&matrix, &[vec![]])?.as_slice::<f64>()?, [1.0, 1.0, 1.0, 2.0]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn confusion_matrix(labels: &Tensor, predictions: &Tensor, n_classes: usize, weights: Option<&Tensor>) -> Metric {
    Metric::new([counts("confusion_matrix", labels, predictions, n_classes, weights)], |sums| sums[0].clone())
}

/// The mean over classes of intersection over union. For one class, the union is all examples that
/// have the class as label or as prediction, the intersection those that have it as both. Classes
/// that occur in neither are left out.
#[track_caller]
pub fn mean_iou(labels: &Tensor, predictions: &Tensor, n_classes: usize, weights: Option<&Tensor>) -> Metric {
    Metric::new([counts("mean_iou", labels, predictions, n_classes, weights)], |sums| {
        let right = right(&sums[0]);
        let either = sums[0].sum_axes([0]) + sums[0].sum_axes([1]) - &right;
        let n_valid = either.not_equal(0.0).cast(DType::F64).sum();
        right.div_no_nan(either).sum().div_no_nan(n_valid)
    })
}

/// Whether weights are whole numbers: Keras' element type of the metric, which is `int64` or
/// `float32`.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeWeights(pub bool);

impl From<bool> for WholeWeights {
    fn from(whole: bool) -> WholeWeights {
        WholeWeights(whole)
    }
}

impl WholeWeights {
    /// The weights in the type of the metric.
    #[track_caller]
    pub fn of(self, weights: &Tensor) -> Tensor {
        if self.0 { weights.cast(DType::I64).cast(DType::F32) } else { weights.clone() }
    }
}

impl Field for WholeWeights {
    fn write(&self) -> Result<Json> {
        Ok(if self.0 { "int64" } else { "float32" }.into())
    }

    fn read(node: &Node<'_>) -> Result<WholeWeights> {
        match node.value() {
            Json::Null => Ok(WholeWeights(false)),
            value if value == "float32" => Ok(WholeWeights(false)),
            value if value == "int64" => Ok(WholeWeights(true)),
            _ => Err(node.expected("\"float32\" or \"int64\"")),
        }
    }
}

/// The mean over classes of the share that is predicted right, so that rare classes count as much
/// as others. TF: a class without examples counts as 0.
#[track_caller]
pub fn mean_per_class_accuracy(
    labels: &Tensor,
    predictions: &Tensor,
    n_classes: usize,
    weights: Option<&Tensor>,
) -> Metric {
    Metric::new([counts("mean_per_class_accuracy", labels, predictions, n_classes, weights)], |sums| {
        right(&sums[0]).div_no_nan(sums[0].sum_axes([1])).mean()
    })
}

/// The matrix of a batch.
#[track_caller]
fn counts(name: &str, labels: &Tensor, predictions: &Tensor, n_classes: usize, weights: Option<&Tensor>) -> Tensor {
    let n = n_classes;
    // Cells are numbered in f32 on the way, which is exact up to this size.
    if n == 0 || n > 4096 {
        return labels.graph().error(Error::config(format!("{name} has {n} classes; expected 1 to 4096")));
    }
    let (labels, predictions) = pair(name, &labels.cast(DType::F32), &predictions.cast(DType::F32));
    if predictions.is_poisoned() || labels.is_poisoned() {
        return labels + predictions;
    }
    let weights = match weights {
        Some(weights) => beside(weights, &labels, "labels").broadcast_to(labels.shape().clone()),
        None => labels.ones_like(),
    };
    // The error at run time names this scope.
    let _scope = labels.graph().scope(&format!("classes_below_{n}"));
    let is_class = |x: &Tensor| x.greater_equal(0.0).logical_and(x.less(n as f64)).logical_and(x.floor().equal(x));
    let cell = &labels * n as f64 + &predictions;
    // A cell that does not exist makes the run fail.
    let cell = is_class(&labels).logical_and(is_class(&predictions)).select(cell, (n * n) as f64).cast(DType::I32);
    let size = n as i64;
    weights.reshape([-1]).segment_sum(&cell.reshape([-1]), n * n).reshape([size, size])
}

/// The diagonal of the matrix.
fn right(matrix: &Tensor) -> Tensor {
    let n = matrix.shape().dims().first().and_then(|n| n.known()).unwrap_or(0);
    let each = matrix.graph().range(n, DType::I64).one_hot(n, DType::F64);
    (matrix * each).sum_axes([1])
}
