//! R squared: the share of the labels' variance that predictions explain.

use estimand_graph::Tensor;
use estimand_tensor::DType;

use super::{Metric, pair};
use crate::alignment::beside;

/// `1 - sum((label - prediction)^2) / sum((label - mean label)^2)`: 1 for perfect predictions, 0 if
/// the mean is always predicted. With several outputs (the last axis), the value is the mean over
/// outputs. An output whose labels are all equal counts as 0.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric;
/// use estimand_nn::testing::metric_value;
///
/// let g = Graph::new();
/// let (labels, predictions) = (g.constant([1f32, 2.0, 3.0]), g.constant([1f32, 2.0, 2.0]));
/// // Off by 1 once, and the labels are 1, 0 and 1 from their mean.
/// assert_eq!(metric_value(&metric::r2_score(&labels, &predictions, None), &[vec![]])?, 0.5);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn r2_score(labels: &Tensor, predictions: &Tensor, weights: Option<&Tensor>) -> Metric {
    let (labels, predictions) = pair("r2_score", labels, &predictions.cast(DType::F32));
    if labels.is_poisoned() || predictions.is_poisoned() {
        return Metric::new([labels + predictions], |sums| sums[0].clone());
    }
    let weights = match weights {
        Some(weights) => beside(weights, &labels, "labels").broadcast_to(labels.shape().clone()),
        None => labels.ones_like(),
    };
    let n_outputs = if labels.rank() < 2 { 1 } else { labels.channels() as i64 };
    let sum = |x: Tensor| (x * &weights).reshape([-1, n_outputs]).sum_axes([0]);
    let sums =
        [sum(labels.ones_like()), sum(labels.clone()), sum(labels.square()), sum((&labels - &predictions).square())];
    Metric::new(sums, |sums| {
        let [count, sum, squares, residual] = [&sums[0], &sums[1], &sums[2], &sums[3]];
        let total = squares - sum.square().div_no_nan(count);
        total.greater(0.0).select(1.0f64 - residual.div_no_nan(&total), 0.0).mean()
    })
}
