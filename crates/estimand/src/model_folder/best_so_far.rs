//! Tracks the best evaluation, and stores it in checkpoints.

use estimand_tensor::{Result, warn};
use indexmap::IndexMap;
use serde_json::{Value, json};

use crate::Metrics;
use crate::criterion::Criterion;

/// The best evaluation so far.
#[derive(Default)]
pub(crate) struct BestSoFar {
    pub(crate) criterion: Criterion,
    pub(crate) metrics: Option<Metrics>,
}

impl BestSoFar {
    /// Records an evaluation. Returns whether it is the best now.
    pub(crate) fn update(&mut self, current: &Metrics) -> Result<bool> {
        let is_better = self.criterion.is_better(self.metrics.as_ref(), current)?;
        if is_better {
            self.metrics = Some(current.clone());
        }
        Ok(is_better)
    }

    /// Returns the state for a later run.
    pub(crate) fn state(&self) -> Value {
        json!({"by": self.criterion.to_string(), "metrics": self.metrics.as_ref().map(to_json)})
    }

    /// Restores the state of an earlier run; `None` if the state is invalid. A state chosen by
    /// another criterion is ignored with a warning.
    pub(crate) fn restore(&mut self, state: &Value) -> Option<()> {
        let (by, metrics) = stored(state)?;
        if by == self.criterion.to_string() {
            self.metrics = metrics;
        } else {
            warn!(
                "The best evaluation is now that of the {}; the checkpoint's was that of the {by} and is dropped",
                self.criterion
            );
        }
        Some(())
    }
}

/// Reads from a state the criterion, in words, and the best evaluation; `None` if the state is
/// invalid.
pub(crate) fn stored(state: &Value) -> Option<(String, Option<Metrics>)> {
    let by = state.get("by")?.as_str()?.to_string();
    let metrics = match state.get("metrics")? {
        Value::Null => None,
        metrics => Some(from_json(metrics)?),
    };
    Some((by, metrics))
}

/// Stores values as bits, since JSON has neither NaN nor infinity.
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
    use crate::criterion::Direction;

    fn metrics(step: u64, loss: f64) -> Metrics {
        let values = [("loss".to_string(), loss), ("auc".to_string(), f64::NAN)];
        Metrics::new(values.into_iter().collect(), step)
    }

    fn best(criterion: Criterion) -> BestSoFar {
        BestSoFar { criterion, metrics: None }
    }

    /// Compares like TensorFlow's BestExporter: neither an equal value nor NaN is better.
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
