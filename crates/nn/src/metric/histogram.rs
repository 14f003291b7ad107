//! Histograms of probabilities, from which curves and calibrations are computed.
//!
//! The range from 0 to 1 is divided into intervals of equal width. An interval does not include its
//! lower end, except the first. A probability that is NaN and has a weight makes the sums, and so
//! the metric, NaN. A probability outside of the range is an error at run time.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error};

use super::confusion::Truth;

/// The intervals between 200 thresholds.
pub(super) const N_INTERVALS: usize = 199;

/// The scope of all nodes here. Errors at run time name it.
const SCOPE: &str = "probabilities_from_0_to_1";

/// The weights of true and of false labels in each interval.
#[track_caller]
pub(super) fn histograms(truth: Truth, n_intervals: usize) -> [Tensor; 2] {
    let _scope = truth.probabilities.graph().scope(SCOPE);
    let (probabilities, interval) = (&truth.probabilities, intervals(&truth.probabilities, n_intervals, n_intervals));
    [truth.positive, truth.negative].map(|weights| sum(&counted(&weights, probabilities), &interval, n_intervals))
}

/// The same for each label separately: `[labels, intervals]`, from rows with a probability for each
/// label.
#[track_caller]
pub(super) fn histograms_of_labels(truth: Truth, n_intervals: usize) -> [Tensor; 2] {
    let Truth { positive, negative, probabilities } = truth;
    let n_labels = match probabilities.shape().dims() {
        [_, labels] if labels.known().is_some() => labels.known().unwrap_or(0),
        _ => {
            let text = format!(
                "a metric for each label got {}; expected [batch, labels] with a known number of labels",
                probabilities.describe()
            );
            let error = probabilities.graph().error(Error::shape(text));
            return [error.clone(), error];
        }
    };
    let _scope = probabilities.graph().scope(SCOPE);
    let n_segments = n_labels * n_intervals;
    let first: Vec<f32> = (0..n_labels).map(|label| (label * n_intervals) as f32).collect();
    let first = probabilities.graph().constant(first).cast(DType::I32);
    // An invalid probability gets an interval beyond all others, whatever offset is added.
    let interval = intervals(&probabilities, n_intervals, n_segments) + first;
    let shape = [n_labels as i64, n_intervals as i64];
    let sum = |weights: Tensor| sum(&counted(&weights, &probabilities), &interval, n_segments).reshape(shape);
    [positive, negative].map(sum)
}

/// The weights of true and of false labels by the number of thresholds `0, 1/n, 2/n, ..` below
/// their probability, from 0 to `n`.
#[track_caller]
pub(super) fn by_thresholds_below(truth: Truth, n_intervals: usize) -> [Tensor; 2] {
    let _scope = truth.probabilities.graph().scope(SCOPE);
    let n_below = within(&truth.probabilities, &ends(&truth.probabilities, n_intervals), n_intervals + 1);
    let sum = |weights: Tensor| sum(&counted(&weights, &truth.probabilities), &n_below, n_intervals + 1);
    [truth.positive, truth.negative].map(sum)
}

/// Sums of values in ranges of probabilities of equal width.
#[track_caller]
pub(super) fn sums_in_ranges<const N: usize>(probabilities: &Tensor, n: usize, values: [&Tensor; N]) -> [Tensor; N] {
    let _scope = probabilities.graph().scope(SCOPE);
    let interval = intervals(probabilities, n, n);
    values.map(|values| sum(values, &interval, n))
}

/// The index of each probability's interval. An invalid probability gets `beyond`, an interval that
/// does not exist and makes the run fail.
#[track_caller]
fn intervals(probabilities: &Tensor, n_intervals: usize, beyond: usize) -> Tensor {
    within(probabilities, &(ends(probabilities, n_intervals) - 1.0).relu(), beyond)
}

/// The upper end of each probability's interval, in units of intervals. TF: the thresholds are i /
/// n, but the product in f32 decides.
#[track_caller]
fn ends(probabilities: &Tensor, n_intervals: usize) -> Tensor {
    (probabilities * n_intervals as f64).ceil()
}

#[track_caller]
fn within(probabilities: &Tensor, numbers: &Tensor, beyond: usize) -> Tensor {
    let within = probabilities.greater_equal(0.0).logical_and(probabilities.less_equal(1.0));
    // NaN belongs to no interval. It goes to interval 0, where its weight, which is then NaN, is
    // summed.
    let numbers = probabilities.equal(probabilities).select(within.select(numbers, beyond as f64), 0.0);
    numbers.cast(DType::I32)
}

/// The weights of probabilities: NaN for those that are NaN, unless their weight is 0.
#[track_caller]
pub(super) fn counted(weights: &Tensor, probabilities: &Tensor) -> Tensor {
    let is_odd = probabilities.not_equal(probabilities).logical_and(weights.not_equal(0.0));
    is_odd.select(probabilities, weights)
}

/// Makes a value NaN if one of the sums is NaN: comparisons may have hidden it.
pub(super) fn nan_if_any(value: &Tensor, sums: &[Tensor]) -> Tensor {
    sums.iter().fold(value.clone(), |value, sum| value + sum.sum() * 0.0)
}

#[track_caller]
fn sum(values: &Tensor, ids: &Tensor, n: usize) -> Tensor {
    values.reshape([-1]).segment_sum(&ids.reshape([-1]), n)
}
