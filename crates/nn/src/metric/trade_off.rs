//! The best value of one rate over all thresholds at which another rate is high enough.
//!
//! There are 200 thresholds from 0 to 1. Those at which one rate is at least the given limit are
//! kept, and the largest other rate among them is the value; 0 if there is none. As in Keras'
//! metrics of the same names.

use estimand_graph::{Running, Tensor};
use estimand_tensor::Error;

use super::Metric;
use super::confusion::Truth;
use super::histogram::{N_INTERVALS, by_thresholds_below, nan_if_any};

/// The largest sensitivity (recall) with a specificity of at least `specificity`.
#[track_caller]
pub fn sensitivity_at_specificity(
    labels: &Tensor,
    probabilities: &Tensor,
    specificity: f64,
    weights: Option<&Tensor>,
) -> Metric {
    best("sensitivity_at_specificity", [labels, probabilities], specificity, weights, |rates| {
        (rates.recall(), rates.specificity())
    })
}

/// The largest specificity (the share of false labels predicted negative) with a sensitivity
/// (recall) of at least `sensitivity`.
#[track_caller]
pub fn specificity_at_sensitivity(
    labels: &Tensor,
    probabilities: &Tensor,
    sensitivity: f64,
    weights: Option<&Tensor>,
) -> Metric {
    best("specificity_at_sensitivity", [labels, probabilities], sensitivity, weights, |rates| {
        (rates.specificity(), rates.recall())
    })
}

/// The largest precision with a recall of at least `recall`.
#[track_caller]
pub fn precision_at_recall(labels: &Tensor, probabilities: &Tensor, recall: f64, weights: Option<&Tensor>) -> Metric {
    best("precision_at_recall", [labels, probabilities], recall, weights, |rates| (rates.precision(), rates.recall()))
}

/// The largest recall with a precision of at least `precision`.
#[track_caller]
pub fn recall_at_precision(
    labels: &Tensor,
    probabilities: &Tensor,
    precision: f64,
    weights: Option<&Tensor>,
) -> Metric {
    best("recall_at_precision", [labels, probabilities], precision, weights, |rates| {
        (rates.recall(), rates.precision())
    })
}

/// The largest value of the first rate where the second is at least `limit`.
#[track_caller]
fn best(
    name: &str,
    [labels, probabilities]: [&Tensor; 2],
    limit: f64,
    weights: Option<&Tensor>,
    rates: fn(&Rates) -> (Tensor, Tensor),
) -> Metric {
    if !(0.0..=1.0).contains(&limit) {
        let error = Error::config(format!("the limit of {name} is {limit}; expected 0 to 1"));
        return Metric::new([labels.graph().error(error)], |sums| sums[0].clone());
    }
    let sums = by_thresholds_below(Truth::new(name, labels, probabilities, weights), N_INTERVALS);
    Metric::new(sums, move |sums| {
        let (wanted, limited) = rates(&Rates::new(&sums[0], &sums[1]));
        nan_if_any(&limited.greater_equal(limit).select(wanted, 0.0).max(), sums)
    })
}

/// The weights above each threshold, and in total.
struct Rates {
    true_positives: Tensor,
    false_positives: Tensor,
    positives: Tensor,
    negatives: Tensor,
}

impl Rates {
    fn new(positive: &Tensor, negative: &Tensor) -> Rates {
        // A probability is above a threshold if more thresholds lie below it. TF: a probability of
        // 0 is above no threshold here, but above the first one in areas.
        let above = |x: &Tensor| x.cumsum(Running::along(0).exclusive().reverse());
        Rates {
            true_positives: above(positive),
            false_positives: above(negative),
            positives: positive.sum(),
            negatives: negative.sum(),
        }
    }

    fn recall(&self) -> Tensor {
        self.true_positives.div_no_nan(&self.positives)
    }

    fn precision(&self) -> Tensor {
        self.true_positives.div_no_nan(&self.true_positives + &self.false_positives)
    }

    fn specificity(&self) -> Tensor {
        (&self.negatives - &self.false_positives).div_no_nan(&self.negatives)
    }
}
