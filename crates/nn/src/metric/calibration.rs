//! Calibration: whether events predicted with probability 0.7 happen in 7 of 10 cases.

use estimand_graph::Tensor;
use estimand_tensor::Error;

use super::Metric;
use super::confusion::Truth;
use super::histogram::sums_in_ranges;

/// The expected calibration error. Probabilities are divided into `n_bins` ranges of equal width.
/// In each range, the error is the distance between the share of true labels and the mean
/// probability. The value is the mean of these errors, weighted by the examples of each range.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric;
/// use estimand_nn::testing::metric_value;
///
/// let g = Graph::new();
/// let (labels, probabilities) = (g.constant([0i64, 1, 1, 1]), g.constant([0.25f32, 0.25, 0.75, 0.75]));
/// // Of the first two rows half are true, and the predictions say a quarter. Of the others all are
/// // true, and the predictions say three quarters.
/// assert_eq!(metric_value(&metric::expected_calibration_error(&labels, &probabilities, 10, None), &[vec![]])?, 0.25);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn expected_calibration_error(
    labels: &Tensor,
    probabilities: &Tensor,
    n_bins: usize,
    weights: Option<&Tensor>,
) -> Metric {
    let name = "expected_calibration_error";
    if n_bins == 0 {
        let error =
            labels.graph().error(Error::config(format!("the number of bins of {name} is 0; expected at least 1")));
        return Metric::new([error], |sums| sums[0].clone());
    }
    let Truth { positive, negative, probabilities } = Truth::new(name, labels, probabilities, weights);
    let all = &positive + negative;
    // A probability with weight 0 may be NaN.
    let said = all.not_equal(0.0).select(&all * &probabilities, 0.0);
    let [happened, said] = sums_in_ranges(&probabilities, n_bins, [&positive, &said]);
    Metric::new([happened, said, all.sum()], |sums| (&sums[0] - &sums[1]).abs().sum().div_no_nan(&sums[2]))
}
