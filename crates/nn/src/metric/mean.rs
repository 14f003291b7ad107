//! Means: of any values, and of errors.

use estimand_graph::Tensor;
use estimand_tensor::DType;

use super::{Metric, pair};
use crate::alignment::beside;

/// The weighted mean of values; weights have the values' shape, or one for each row.
#[track_caller]
pub fn mean(values: &Tensor, weights: Option<&Tensor>) -> Metric {
    Metric::new(totals(values, weights), |sums| sums[0].div_no_nan(&sums[1]))
}

/// The sum of weighted values and that of the weights.
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

#[track_caller]
fn differences(name: &str, labels: &Tensor, predictions: &Tensor) -> Tensor {
    let (labels, predictions) = pair(name, labels, &predictions.cast(DType::F32));
    predictions - labels
}
