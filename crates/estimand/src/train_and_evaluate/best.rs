//! Which of all evaluations is the best, and how that goes into a checkpoint.

use std::fmt;

use estimand_tensor::Result;
use indexmap::IndexMap;
use serde_json::{Value, json};
use tracing::warn;

use crate::Metrics;
use crate::early_stopping::Direction;

/// Whether of (best, current) the second is better.
pub(crate) type IsBetter = Box<dyn Fn(&Metrics, &Metrics) -> bool>;

/// Whether one evaluation is better than another.
pub(crate) enum Criterion {
    /// By one metric.
    Metric { name: String, direction: Direction },
    /// By what the user says.
    Function(IsBetter),
}

impl Default for Criterion {
    fn default() -> Criterion {
        Criterion::Metric { name: "loss".to_string(), direction: Direction::Lower }
    }
}

impl Criterion {
    /// NaN is never better. Where there is nothing to compare with, everything else is.
    fn is_better(&self, best: Option<&Metrics>, current: &Metrics) -> Result<bool> {
        match (self, best) {
            (Criterion::Metric { name, .. }, None) => Ok(!current.get(name)?.is_nan()),
            (Criterion::Metric { name, direction }, Some(best)) => {
                Ok(direction.beats(current.get(name)?, best.get(name)?, 0.0))
            }
            (Criterion::Function(_), None) => Ok(true),
            (Criterion::Function(is_better), Some(best)) => Ok(is_better(best, current)),
        }
    }

    /// An error unless a model with these metrics can be judged by it.
    pub(super) fn check(&self, known: &Metrics) -> Result<()> {
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

/// The best evaluation until now.
#[derive(Default)]
pub(super) struct BestSoFar {
    pub(super) criterion: Criterion,
    pub(super) metrics: Option<Metrics>,
}

impl BestSoFar {
    /// Takes an evaluation; returns whether it is the best now.
    pub(super) fn update(&mut self, current: &Metrics) -> Result<bool> {
        let is_better = self.criterion.is_better(self.metrics.as_ref(), current)?;
        if is_better {
            self.metrics = Some(current.clone());
        }
        Ok(is_better)
    }

    /// What a later run needs.
    pub(super) fn state(&self) -> Value {
        json!({"by": self.criterion.to_string(), "metrics": self.metrics.as_ref().map(to_json)})
    }

    /// Goes on from the state of an earlier run; `None` if that is none. What was chosen by another criterion is left alone, with a
    /// warning.
    pub(super) fn restore(&mut self, state: &Value) -> Option<()> {
        let (by, metrics) = stored(state)?;
        if by == self.criterion.to_string() {
            self.metrics = metrics;
        } else {
            warn!(
                "The best evaluation is that of the {}; the checkpoint's was that of the {by}, and is forgotten",
                self.criterion
            );
        }
        Some(())
    }
}

/// What makes an evaluation the best, in words, and which was it, by a state; `None` if that is none.
pub(crate) fn stored(state: &Value) -> Option<(String, Option<Metrics>)> {
    let by = state.get("by")?.as_str()?.to_string();
    let metrics = match state.get("metrics")? {
        Value::Null => None,
        metrics => Some(from_json(metrics)?),
    };
    Some((by, metrics))
}

/// Values as bits, since JSON has neither NaN nor infinity.
fn to_json(metrics: &Metrics) -> Value {
    let values: serde_json::Map<String, Value> =
        metrics.iter().map(|(name, value)| (name.to_string(), Value::from(value.to_bits()))).collect();
    json!({"step": metrics.global_step(), "bits": values})
}

fn from_json(state: &Value) -> Option<Metrics> {
    let mut values = IndexMap::new();
    for (name, bits) in state.get("bits")?.as_object()? {
        values.insert(name.clone(), f64::from_bits(bits.as_u64()?));
    }
    Some(Metrics::new(values, state.get("step")?.as_u64()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(step: u64, loss: f64) -> Metrics {
        let values = [("loss".to_string(), loss), ("auc".to_string(), f64::NAN)];
        Metrics::new(values.into_iter().collect(), step)
    }

    fn best(criterion: Criterion) -> BestSoFar {
        BestSoFar { criterion, metrics: None }
    }

    /// As the original's BestExporter compares: equal is not better, NaN neither.
    #[test]
    fn the_lowest_loss_unless_something_else_is_asked_for() -> Result<()> {
        let mut lowest = BestSoFar::default();
        let losses = [f64::NAN, 3.0, 2.0, 2.0, f64::NAN, 1.0, 4.0];
        let taken: Vec<bool> =
            losses.iter().zip(1..).map(|(&loss, step)| lowest.update(&metrics(step, loss))).collect::<Result<_>>()?;
        assert_eq!(taken, [false, true, true, false, false, true, false]);
        assert_eq!(lowest.metrics.map(|best| best.global_step()), Some(6));

        let mut own = best(Criterion::Function(Box::new(|best, current| current["loss"] > best["loss"])));
        assert!(own.update(&metrics(1, 1.0))? && own.update(&metrics(2, 2.0))? && !own.update(&metrics(3, 0.0))?);
        let mut unknown = best(Criterion::Metric { name: "aux".to_string(), direction: Direction::Higher });
        let error = unknown.update(&metrics(1, 1.0)).unwrap_err().to_string();
        assert!(error.contains("did you mean `auc`?"), "{error}");
        Ok(())
    }

    #[test]
    fn the_state_is_all_of_it() -> Result<()> {
        let mut first = BestSoFar::default();
        first.update(&metrics(7, f64::NEG_INFINITY))?;
        let mut second = BestSoFar::default();
        second.restore(&first.state()).unwrap();
        assert_eq!(second.metrics.as_ref().map(to_json), first.metrics.as_ref().map(to_json));
        assert!(!second.update(&metrics(8, 0.0))?);

        let mut other = best(Criterion::Metric { name: "auc".to_string(), direction: Direction::Higher });
        other.restore(&first.state()).unwrap();
        assert_eq!(other.metrics, None);
        for none in [json!({}), json!({"by": "lowest loss"}), json!({"by": "lowest loss", "metrics": {"step": -1}})] {
            assert_eq!(BestSoFar::default().restore(&none), None, "{none}");
        }
        Ok(())
    }
}
