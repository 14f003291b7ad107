//! Precision and recall at several thresholds: metrics with several numbers.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error, Result};

use super::Metric;
use super::confusion::Truth;
use crate::config::{Elements, Field, Json, Node};

/// The threshold if none is given.
const USUAL: f64 = 0.5;

/// One threshold, or several: the metric then has as many values.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds(pub Vec<f64>);

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds(vec![USUAL])
    }
}

impl From<f64> for Thresholds {
    fn from(threshold: f64) -> Thresholds {
        Thresholds(vec![threshold])
    }
}

impl From<Vec<f64>> for Thresholds {
    fn from(thresholds: Vec<f64>) -> Thresholds {
        Thresholds(thresholds)
    }
}

impl<const N: usize> From<[f64; N]> for Thresholds {
    fn from(thresholds: [f64; N]) -> Thresholds {
        Thresholds(thresholds.to_vec())
    }
}

/// Keras writes the usual threshold as `null`, and one alone as a number.
impl Field for Thresholds {
    fn write(&self) -> Result<Json> {
        Elements(self.0.clone()).write()
    }

    fn read(node: &Node<'_>) -> Result<Thresholds> {
        if node.is_null() { Ok(Thresholds::default()) } else { Elements::read(node).map(|list| Thresholds(list.0)) }
    }
}

/// The threshold of a metric that has only one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold(pub f64);

impl Default for Threshold {
    fn default() -> Threshold {
        Threshold(USUAL)
    }
}

impl From<f64> for Threshold {
    fn from(threshold: f64) -> Threshold {
        Threshold(threshold)
    }
}

impl Field for Threshold {
    fn write(&self) -> Result<Json> {
        self.0.write()
    }

    fn read(node: &Node<'_>) -> Result<Threshold> {
        match Thresholds::read(node)?.0[..] {
            [threshold] => Ok(Threshold(threshold)),
            _ => Err(node.expected("one threshold")),
        }
    }
}

/// The precision at each threshold: the share of the positive predictions that are right; 0 if
/// there are none.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::metric;
/// use estimand_nn::testing::metric_array;
///
/// let g = Graph::new();
/// let (labels, probabilities) = (g.constant([0i64, 1, 1]), g.constant([0.4f32, 0.6, 0.9]));
/// let precision = metric::precision_at_thresholds(&labels, &probabilities, &[0.25, 0.5], None);
/// assert_eq!(metric_array(&precision, &[vec![]])?.as_slice::<f64>()?, [2.0 / 3.0, 1.0]);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[track_caller]
pub fn precision_at_thresholds(
    labels: &Tensor,
    probabilities: &Tensor,
    thresholds: &[f64],
    weights: Option<&Tensor>,
) -> Metric {
    let [tp, fp, _] = above("precision_at_thresholds", labels, probabilities, thresholds, weights);
    Metric::new([tp, fp], |sums| sums[0].div_no_nan(&sums[0] + &sums[1]))
}

/// The recall at each threshold: the share of the true labels that are predicted positive; 0 if
/// there are none.
#[track_caller]
pub fn recall_at_thresholds(
    labels: &Tensor,
    probabilities: &Tensor,
    thresholds: &[f64],
    weights: Option<&Tensor>,
) -> Metric {
    let [tp, _, positives] = above("recall_at_thresholds", labels, probabilities, thresholds, weights);
    Metric::new([tp, positives], |sums| sums[0].div_no_nan(&sums[1]))
}

/// True and false positives at each threshold, and the total of true labels.
#[track_caller]
fn above(
    name: &str,
    labels: &Tensor,
    probabilities: &Tensor,
    thresholds: &[f64],
    weights: Option<&Tensor>,
) -> [Tensor; 3] {
    if thresholds.is_empty() || thresholds.iter().any(|t| !(0.0..=1.0).contains(t)) {
        let error = Error::config(format!(
            "the thresholds of {name} are {thresholds:?}; expected at least one number, each from 0 to 1"
        ));
        let error = labels.graph().error(error);
        return [error.clone(), error.clone(), error];
    }
    let Truth { positive, negative, probabilities } = Truth::new(name, labels, probabilities, weights);
    let column = |x: &Tensor| x.reshape([-1, 1]);
    let thresholds: Vec<f32> = thresholds.iter().map(|&t| t as f32).collect();
    let is_above = column(&probabilities).greater(probabilities.graph().constant(thresholds)).cast(DType::F32);
    let sum = |weights: &Tensor| (column(weights) * &is_above).sum_axes([0]);
    [sum(&positive), sum(&negative), positive.sum()]
}
