//! Means of values, of errors, and of losses.

use estimand_graph::Tensor;
use estimand_tensor::DType;

use super::{Metric, pair};
use crate::alignment::beside;
use crate::loss::{CosineSimilarity, Loss};

/// The weighted mean of values. Weights have the values' shape, or there is one for each row.
#[track_caller]
pub fn mean(values: &Tensor, weights: Option<&Tensor>) -> Metric {
    Metric::new(totals(values, weights), |sums| sums[0].div_no_nan(&sums[1]))
}

/// The sum of the weighted values and the sum of the weights.
#[track_caller]
fn totals(values: &Tensor, weights: Option<&Tensor>) -> [Tensor; 2] {
    let values = values.cast(DType::F32);
    let Some(weights) = weights.filter(|_| !values.is_poisoned()) else {
        return [values.sum(), values.ones_like().sum()];
    };
    let weights = beside(weights, &values, "values");
    [(&values * &weights).sum(), weights.broadcast_to(values.shape().clone()).sum()]
}

/// The mean of squared differences.
#[track_caller]
pub fn mean_squared_error(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    mean(&differences("mean_squared_error", labels, predictions).square(), weights)
}

/// The mean of absolute differences.
#[track_caller]
pub fn mean_absolute_error(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    mean(&differences("mean_absolute_error", labels, predictions).abs(), weights)
}

/// The square root of the mean of squared differences.
#[track_caller]
pub fn root_mean_squared_error(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    let squares = differences("root_mean_squared_error", labels, predictions).square();
    Metric::new(totals(&squares, weights), |sums| sums[0].div_no_nan(&sums[1]).sqrt())
}

/// The mean of absolute differences, each divided by the element of `normalizer` at the same
/// position; 0 where that is 0.
#[track_caller]
pub fn mean_relative_error(
    labels: &Tensor,
    predictions: &Tensor,
    normalizer: &Tensor,
    weights: Option<&Tensor>,
) -> Metric {
    let errors = differences("mean_relative_error", labels, predictions).abs();
    mean(&errors.div_no_nan(pair("mean_relative_error", normalizer, &errors).0), weights)
}

/// The mean of a loss over elements or rows, as the loss is defined, whatever its reduction. So any
/// loss can be used as a metric.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Hinge, metric};
/// use estimand_nn::testing::metric_value;
///
/// let g = Graph::new();
/// let (labels, predictions) = (g.constant([1f32, -1.0]), g.constant([0.5f32, -2.0]));
/// assert_eq!(metric_value(&metric::mean_loss(&Hinge::new(), &labels, &predictions, None), &[vec![]])?, 0.25);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn mean_loss(loss: &dyn Loss, labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    mean(&loss.elements(labels, predictions), weights)
}

/// The mean cosine of the angle between label rows and prediction rows: 1 for the same direction.
#[track_caller]
pub fn cosine_similarity(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    mean(&-CosineSimilarity::new().elements(labels, predictions), weights)
}

#[track_caller]
fn differences(name: &str, labels: &Tensor, predictions: &Tensor) -> Tensor {
    let (labels, predictions) = pair(name, labels, &predictions.cast(DType::F32));
    predictions - labels
}
