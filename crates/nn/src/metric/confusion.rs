//! Counts of binary predictions at a threshold by whether they are right, and precision and recall.
//!
//! A label is true unless it is 0. A prediction is positive if it is above the threshold; a
//! prediction equal to the threshold is not. Both as in Keras.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error};

use super::{Metric, pair};
use crate::alignment::beside;

/// Precision: the share of the positive predictions that are right; 0 if there are none.
#[track_caller]
pub fn precision(labels: &Tensor, probabilities: &Tensor, threshold: f64, weights: Option<&Tensor>) -> Metric {
    let counts = Counts::new("precision", labels, probabilities, threshold, weights);
    Metric::new([counts.true_positives(), counts.false_positives()], |sums| sums[0].div_no_nan(&sums[0] + &sums[1]))
}

/// Recall: the share of the true labels that are predicted positive; 0 if there are none.
#[track_caller]
pub fn recall(labels: &Tensor, probabilities: &Tensor, threshold: f64, weights: Option<&Tensor>) -> Metric {
    let counts = Counts::new("recall", labels, probabilities, threshold, weights);
    Metric::new([counts.true_positives(), counts.false_negatives()], |sums| sums[0].div_no_nan(&sums[0] + &sums[1]))
}

/// True positives: the number of true labels predicted positive, or the sum of their weights.
#[track_caller]
pub fn true_positives(labels: &Tensor, probabilities: &Tensor, threshold: f64, weights: Option<&Tensor>) -> Metric {
    one(Counts::new("true_positives", labels, probabilities, threshold, weights).true_positives())
}

/// False positives: the number of false labels predicted positive, or the sum of their weights.
#[track_caller]
pub fn false_positives(labels: &Tensor, probabilities: &Tensor, threshold: f64, weights: Option<&Tensor>) -> Metric {
    one(Counts::new("false_positives", labels, probabilities, threshold, weights).false_positives())
}

/// True negatives: the number of false labels predicted negative, or the sum of their weights.
#[track_caller]
pub fn true_negatives(labels: &Tensor, probabilities: &Tensor, threshold: f64, weights: Option<&Tensor>) -> Metric {
    one(Counts::new("true_negatives", labels, probabilities, threshold, weights).true_negatives())
}

/// False negatives: the number of true labels predicted negative, or the sum of their weights.
#[track_caller]
pub fn false_negatives(labels: &Tensor, probabilities: &Tensor, threshold: f64, weights: Option<&Tensor>) -> Metric {
    one(Counts::new("false_negatives", labels, probabilities, threshold, weights).false_negatives())
}

fn one(sum: Tensor) -> Metric {
    Metric::new([sum], |sums| sums[0].clone())
}

/// Labels as weights: for each prediction, its weight if the label is true, and its weight if the
/// label is false.
pub(super) struct Truth {
    pub positive: Tensor,
    pub negative: Tensor,
    pub probabilities: Tensor,
}

impl Truth {
    #[track_caller]
    pub fn new(name: &str, labels: &Tensor, probabilities: &Tensor, weights: Option<&Tensor>) -> Truth {
        let (labels, probabilities) = pair(name, labels, &probabilities.cast(DType::F32));
        let positive = labels.not_equal(0.0).cast(DType::F32);
        let negative = labels.equal(0.0).cast(DType::F32);
        let Some(weights) = weights.filter(|_| !probabilities.is_poisoned()) else {
            return Truth { positive, negative, probabilities };
        };
        let weights = beside(weights, &probabilities, "predictions");
        Truth { positive: positive * &weights, negative: negative * weights, probabilities }
    }
}

struct Counts {
    truth: Truth,
    above: Tensor,
    below: Tensor,
}

impl Counts {
    #[track_caller]
    fn new(name: &str, labels: &Tensor, probabilities: &Tensor, threshold: f64, weights: Option<&Tensor>) -> Counts {
        let truth = Truth::new(name, labels, probabilities, weights);
        let above = match threshold {
            t if (0.0..=1.0).contains(&t) => truth.probabilities.greater(t),
            t => labels.graph().error(Error::config(format!("the threshold of {name} is {t}; expected 0 to 1"))),
        };
        let below = above.logical_not().cast(DType::F32);
        Counts { truth, above: above.cast(DType::F32), below }
    }

    #[track_caller]
    fn true_positives(&self) -> Tensor {
        (&self.truth.positive * &self.above).sum()
    }

    #[track_caller]
    fn false_positives(&self) -> Tensor {
        (&self.truth.negative * &self.above).sum()
    }

    #[track_caller]
    fn true_negatives(&self) -> Tensor {
        (&self.truth.negative * &self.below).sum()
    }

    #[track_caller]
    fn false_negatives(&self) -> Tensor {
        (&self.truth.positive * &self.below).sum()
    }
}
