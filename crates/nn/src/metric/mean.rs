//! Means: of any values, and of errors.

use estimand_graph::Tensor;
use estimand_tensor::DType;

use super::Metric;

/// The weighted mean of values; weights have the values' shape, or one for each row.
#[track_caller]
pub fn mean(values: &Tensor, weights: Option<&Tensor>) -> Metric {
    Metric::new(totals(values, weights), |sums| sums[0].div_no_nan(&sums[1]))
}

/// The sum of weighted values and that of the weights.
#[track_caller]
pub(super) fn totals(values: &Tensor, weights: Option<&Tensor>) -> [Tensor; 2] {
    let values = values.cast(DType::F32);
    let weights = match weights {
        Some(weights) => per_value(&weights.cast(DType::F32), &values),
        None => values.ones_like(),
    };
    [(&values * &weights).sum(), weights.sum()]
}

/// Weights of the values' shape.
#[track_caller]
fn per_value(weights: &Tensor, values: &Tensor) -> Tensor {
    let missing: Vec<i64> = (weights.rank()..values.rank()).map(|axis| axis as i64).collect();
    let weights = missing.iter().fold(weights.clone(), |weights, &axis| weights.expand_dims(axis));
    values.ones_like() * weights
}

/// The mean of squared differences.
#[track_caller]
pub fn mean_squared_error(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    mean(&(predictions - labels.cast(DType::F32)).square(), weights)
}

/// The mean of absolute differences.
#[track_caller]
pub fn mean_absolute_error(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    mean(&(predictions - labels.cast(DType::F32)).abs(), weights)
}

/// The square root of the mean of squared differences.
#[track_caller]
pub fn root_mean_squared_error(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    let squares = (predictions - labels.cast(DType::F32)).square();
    Metric::new(totals(&squares, weights), |sums| sums[0].div_no_nan(&sums[1]).sqrt())
}
