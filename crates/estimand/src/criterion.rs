//! Criteria that compare two evaluations.

use std::fmt;

use estimand_tensor::Result;

use crate::Metrics;

/// The direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Higher,
    Lower,
}

impl Direction {
    /// Whether a value beats another by more than a margin. NaN beats nothing and is beaten by
    /// nothing.
    pub(crate) fn beats(self, value: f64, other: f64, margin: f64) -> bool {
        match self {
            Direction::Higher => value - margin > other,
            Direction::Lower => value + margin < other,
        }
    }

    /// The worst possible value: every number beats it.
    pub(crate) fn worst(self) -> f64 {
        match self {
            Direction::Higher => f64::NEG_INFINITY,
            Direction::Lower => f64::INFINITY,
        }
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Direction::Higher => "higher",
            Direction::Lower => "lower",
        }
    }
}

/// A function of (best, current) that returns whether the second is better.
pub(crate) type IsBetter = Box<dyn Fn(&Metrics, &Metrics) -> bool>;

/// A criterion by which one evaluation is better than another.
pub(crate) enum Criterion {
    /// By one metric.
    Metric { name: String, direction: Direction },
    /// By a function of the user.
    Function(IsBetter),
}

impl Default for Criterion {
    fn default() -> Criterion {
        Criterion::Metric { name: "loss".to_string(), direction: Direction::Lower }
    }
}

impl Criterion {
    /// Returns whether `current` is better. NaN is never better. Without a best value, any other
    /// value is.
    pub(crate) fn is_better(&self, best: Option<&Metrics>, current: &Metrics) -> Result<bool> {
        match (self, best) {
            (Criterion::Metric { name, .. }, None) => Ok(!current.get(name)?.is_nan()),
            (Criterion::Metric { name, direction }, Some(best)) => {
                Ok(direction.beats(current.get(name)?, best.get(name)?, 0.0))
            }
            (Criterion::Function(_), None) => Ok(true),
            (Criterion::Function(is_better), Some(best)) => Ok(is_better(best, current)),
        }
    }

    /// Returns an error unless evaluations with these metrics can be compared.
    pub(crate) fn check(&self, known: &Metrics) -> Result<()> {
        match self {
            Criterion::Metric { name, .. } => known.get(name).map(|_| ()),
            Criterion::Function(_) => Ok(()),
        }
    }
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Criterion::Metric { name, direction: Direction::Higher } => write!(f, "highest {name}"),
            Criterion::Metric { name, direction: Direction::Lower } => write!(f, "lowest {name}"),
            Criterion::Function(_) => f.write_str("a function"),
        }
    }
}
