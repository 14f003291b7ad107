//! Areas under curves: how well probabilities order examples, whatever threshold will be chosen.
//!
//! The curves have a point for each of 200 thresholds from 0 to 1, as those of `tf.keras.metrics.AUC`. What is summed is a histogram:
//! the weight of true and of false labels whose probability lies between two thresholds. All points follow from it.

use estimand_graph::Tensor;
use estimand_tensor::DType;

use super::Metric;
use super::confusion::Truth;

/// The intervals between 200 thresholds.
const N_INTERVALS: usize = 199;

/// The area under the curve of true over false positive rates (ROC): how probable it is that a true example is above a false one.
///
/// Labels are true unless they are 0. A probability that is not within 0 and 1 is an error of the run. Without true or without false
/// labels the area is 0.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric;
/// use estimand_nn::testing::metric_value;
///
/// let g = Graph::new();
/// let (labels, probabilities) = (g.constant([0i64, 0, 1, 1]), g.constant([0.1f32, 0.4, 0.35, 0.8]));
/// // Of the four pairs of a true and a false one, three are in order.
/// assert_eq!(metric_value(&metric::auc(&labels, &probabilities, None), &[vec![]])?, 0.75);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn auc(labels: &Tensor, probabilities: &Tensor, weights: Option<&Tensor>) -> Metric {
    Metric::new(histograms("auc", labels, probabilities, weights), |sums| {
        let (positive, negative) = (&sums[0], &sums[1]);
        // A trapezium for each interval: its width is the negatives in it, its height the positives above its middle.
        let height = positive.cumsum(0, true, true) + positive * 0.5;
        (negative * height).sum().div_no_nan(positive.sum() * negative.sum())
    })
}

/// The area under the curve of precision over recall, `auc_precision_recall` of the Estimator's heads.
///
/// Between two thresholds the counts of positives are interpolated, not the precision, which is no straight line (Davis and Goadrich
/// 2006): Keras's default, and `careful_interpolation` of `tf.compat.v1.metrics.auc`. Inputs are those of [`auc`].
#[track_caller]
pub fn auc_precision_recall(labels: &Tensor, probabilities: &Tensor, weights: Option<&Tensor>) -> Metric {
    Metric::new(histograms("auc_precision_recall", labels, probabilities, weights), |sums| {
        let (positive, all) = (&sums[0], &sums[0] + &sums[1]);
        let (positive_above, all_above) = (positive.cumsum(0, true, true), all.cumsum(0, true, true));
        // In an interval, true positives = intercept + slope * all positives; precision is integrated over them.
        let slope = positive.div_no_nan(&all);
        let intercept = positive_above - &slope * &all_above;
        // Nothing is above the highest interval: precision is constant in it.
        let growth = all_above.greater(0.0).select((&all_above + &all).div_no_nan(&all_above), 1.0);
        (slope * (positive + intercept * growth.log())).sum().div_no_nan(positive.sum())
    })
}

/// The weights of true and of false labels in each interval.
#[track_caller]
fn histograms(name: &str, labels: &Tensor, probabilities: &Tensor, weights: Option<&Tensor>) -> [Tensor; 2] {
    let Truth { positive, negative, probabilities } = Truth::new(name, labels, probabilities, weights);
    // The error of a run names this scope.
    let _scope = probabilities.graph().scope("probabilities_from_0_to_1");
    let p = probabilities.reshape([-1]);
    // TF: the thresholds are i / 199 and an interval does not hold its lower end; the product decides in f32. 0 is in the first.
    let interval = ((&p * N_INTERVALS as f64).ceil() - 1.0).relu();
    // An interval that does not exist makes the run fail.
    let within = p.greater_equal(0.0).logical_and(p.less_equal(1.0));
    let interval = within.select(interval, N_INTERVALS as f64).cast(DType::I32);
    [positive, negative].map(|weights| weights.reshape([-1]).segment_sum(&interval, N_INTERVALS))
}
