//! Early stopping inside the training process: training ends when an evaluation metric stops
//! improving.
//!
//! `EarlyStopping` decides when to stop. The caller passes it the metric after each evaluation; it
//! neither evaluates nor stops anything itself. Its counters are saved in checkpoints, so an
//! interrupted run decides exactly like an uninterrupted one.

use estimand_tensor::{Array, Error, Result, warn};
use serde_json::{Map, Value, json};
use tracing::info;

use crate::console::number;
use crate::criterion::{Criterion, Direction};

/// Ends training when a metric has not improved for a while.
///
/// The rules are those of Keras' callback of the same name. Patience is counted in evaluations or
/// in steps. A NaN value is never an improvement.
///
/// ```
/// use estimand::EarlyStopping;
///
/// let mut stopping = EarlyStopping::higher_is_better("auc").patience(2).min_delta(0.01);
/// assert_eq!(stopping.update(100, 0.80), None);
/// assert_eq!(stopping.update(200, 0.805), None); // not better by more than 0.01
/// let why = stopping.update(300, 0.79).unwrap();
/// assert_eq!(why, "`auc` has not got better than 0.8 of step 100 by more than 0.01 in 2 evaluations; it is 0.79");
/// assert_eq!(stopping.best().map(|best| best.step), Some(100));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct EarlyStopping {
    metric: String,
    direction: Direction,
    patience: Patience,
    min_delta: f64,
    baseline: Option<f64>,
    start_from_step: u64,
    restores_best: bool,
    history: History,
    /// The weights of the best epoch, in a training of Keras.
    weights: Option<Vec<Array>>,
}

/// The best value of a metric, and its step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Best {
    /// The global step of the evaluation.
    pub step: u64,
    /// The value of the metric.
    pub value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Patience {
    Evaluations(u64),
    Steps(u64),
}

/// The history of evaluations, as checkpoints store it.
#[derive(Clone, Debug, Default, PartialEq)]
struct History {
    best: Option<Best>,
    /// Evaluations since the wait began; `since` is the step at which it began.
    n_waited: u64,
    since: Option<u64>,
    last_step: Option<u64>,
    stopped_at: Option<u64>,
}

impl EarlyStopping {
    /// Watches a metric that should rise, such as `auc`.
    pub fn higher_is_better(metric: impl Into<String>) -> EarlyStopping {
        EarlyStopping::new(metric, Direction::Higher)
    }

    /// Watches a metric that should fall, such as `loss`.
    pub fn lower_is_better(metric: impl Into<String>) -> EarlyStopping {
        EarlyStopping::new(metric, Direction::Lower)
    }

    fn new(metric: impl Into<String>, direction: Direction) -> EarlyStopping {
        EarlyStopping {
            metric: metric.into(),
            direction,
            patience: Patience::Evaluations(1),
            min_delta: 0.0,
            baseline: None,
            start_from_step: 0,
            restores_best: false,
            history: History::default(),
            weights: None,
        }
    }

    /// Ends training at the `n`-th evaluation in a row without an improvement. By default, at the
    /// first.
    pub fn patience(mut self, n: u64) -> EarlyStopping {
        self.patience = Patience::Evaluations(n);
        self
    }

    /// Ends training after `n` steps without an improvement, regardless of the number of
    /// evaluations. By default, evaluations are counted instead.
    pub fn patience_steps(mut self, n: u64) -> EarlyStopping {
        self.patience = Patience::Steps(n);
        self
    }

    /// Sets the smallest improvement that counts: the difference must exceed it. By default, 0.
    pub fn min_delta(mut self, delta: f64) -> EarlyStopping {
        self.min_delta = delta;
        self
    }

    /// Sets a baseline that the metric must also beat within the patience. By default, none.
    pub fn baseline(mut self, value: f64) -> EarlyStopping {
        self.baseline = Some(value);
        self
    }

    /// Ignores evaluations before this step. By default, all count.
    pub fn start_from_step(mut self, step: u64) -> EarlyStopping {
        self.start_from_step = step;
        self
    }

    /// Returns to the best checkpoint when training ends, early or at its last step. Evaluations,
    /// predictions and later trainings then use it. By default, they use the last checkpoint.
    ///
    /// The best checkpoint is that of the best evaluation: see
    /// [`EvalSpec::highest_is_best`](crate::EvalSpec::highest_is_best). An interrupted training
    /// does not return to it, because it will be resumed.
    pub fn restore_best(mut self) -> EarlyStopping {
        self.restores_best = true;
        self
    }

    /// Returns whether training ends with the best checkpoint.
    pub(crate) fn restores_best(&self) -> bool {
        self.restores_best
    }

    /// Returns an error if the settings can never have an effect.
    pub fn check(&self) -> Result<()> {
        let refused = |message: String| Err(Error::config(format!("early stopping on `{}`: {message}", self.metric)));
        match self.patience {
            _ if self.metric.is_empty() => Err(Error::config("the metric of early stopping has an empty name")),
            Patience::Evaluations(0) | Patience::Steps(0) => {
                refused("the patience is 0; expected at least 1".to_string())
            }
            _ if !(self.min_delta >= 0.0 && self.min_delta.is_finite()) => {
                refused(format!("min_delta is {}; expected a number from 0", self.min_delta))
            }
            _ if self.baseline.is_some_and(f64::is_nan) => {
                refused("the baseline is NaN; expected a number".to_string())
            }
            _ => Ok(()),
        }
    }

    /// Returns the name of the metric.
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// Returns the criterion that compares two evaluations.
    pub(crate) fn criterion(&self) -> Criterion {
        Criterion::Metric { name: self.metric.clone(), direction: self.direction }
    }

    /// Returns the best value so far.
    pub fn best(&self) -> Option<Best> {
        self.history.best
    }

    /// Returns the step at which it decided to stop, if it did.
    pub fn stopped_at(&self) -> Option<u64> {
        self.history.stopped_at
    }

    /// Records the metric of an evaluation. Returns the reason to end training, if there is one. A
    /// step that was already recorded is not counted again.
    pub fn update(&mut self, step: u64, value: f64) -> Option<String> {
        let seen = self.history.last_step.is_some_and(|last| step <= last);
        if step < self.start_from_step || seen {
            return None;
        }
        let beats = |other| self.direction.beats(value, other, self.min_delta);
        let is_better = beats(self.history.best.map_or(self.direction.worst(), |best| best.value));
        let beats_baseline = self.baseline.is_none_or(beats);

        let history = &mut self.history;
        history.last_step = Some(step);
        history.n_waited += 1;
        let since = *history.since.get_or_insert(step);
        if is_better {
            history.best = Some(Best { step, value });
            if beats_baseline {
                (history.n_waited, history.since) = (0, Some(step));
            }
            return None;
        }
        let waited = match self.patience {
            Patience::Evaluations(n) if history.n_waited >= n => count(history.n_waited, "evaluation"),
            Patience::Steps(n) if step - since >= n => count(step - since, "step"),
            _ => return None,
        };
        history.stopped_at = Some(step);
        Some(self.reason(value, &waited))
    }

    fn reason(&self, value: f64, waited: &str) -> String {
        let margin = match self.min_delta {
            0.0 => String::new(),
            delta => format!(" by more than {delta}"),
        };
        let best = match (self.history.best, self.baseline) {
            (Some(best), Some(line)) if !self.direction.beats(best.value, line, self.min_delta) => {
                format!("the baseline {line} (best: {} of step {})", number(best.value), best.step)
            }
            (Some(best), _) => format!("{} of step {}", number(best.value), best.step),
            (None, _) => "nothing at all".to_string(),
        };
        format!("`{}` has not got better than {best}{margin} in {waited}; it is {}", self.metric, number(value))
    }

    /// Returns the state that a later run needs to decide like this one.
    pub fn state(&self) -> Vec<u8> {
        let History { best, n_waited, since, last_step, stopped_at } = &self.history;
        // Bits, since JSON has no infinity.
        let best = best.map(|best| json!({"step": best.step, "bits": best.value.to_bits()}));
        let state = json!({
            "metric": self.metric, "better": self.direction.text(), "best": best, "n_waited": n_waited, "since": since,
            "last_step": last_step, "stopped_at": stopped_at,
        });
        state.to_string().into_bytes()
    }

    /// Restores the state of an earlier run. The state of another metric is ignored with a warning.
    /// If the earlier run decided to stop, this one continues: it keeps the best value and starts
    /// counting patience from zero.
    pub fn restore(&mut self, state: &[u8]) -> Result<()> {
        let state = parse(state).ok_or_else(|| {
            Error::data(format!("the state of early stopping on `{}` cannot be read", self.metric))
                .help("the state is in the checkpoint: resume with the version of Estimand that wrote it")
        })?;
        if state.metric != self.metric || state.direction != self.direction.text() {
            warn!(
                "Early stopping now watches `{}` ({} is better); that of the checkpoint watched `{}` ({} is better). \
                 It restarts",
                self.metric,
                self.direction.text(),
                state.metric,
                state.direction
            );
            return Ok(());
        }
        self.history = state.history;
        if let Some(step) = self.history.stopped_at {
            self.begin_anew();
            info!(
                "Early stopping on `{}` was decided at step {step}. Training continues, and patience restarts.",
                self.metric
            );
        }
        Ok(())
    }

    /// Clears everything, for a new training.
    pub(crate) fn forget(&mut self) {
        (self.history, self.weights) = (History::default(), None);
    }

    /// Keeps the weights of the best epoch so far.
    pub(crate) fn keep(&mut self, weights: Vec<Array>) {
        self.weights = Some(weights);
    }

    /// The weights of the best epoch so far, if they are kept.
    pub(crate) fn best_weights(&self) -> Option<&[Array]> {
        self.weights.as_deref()
    }

    /// Clears the decision and the patience count; keeps the best value.
    pub(crate) fn begin_anew(&mut self) {
        self.history = History { n_waited: 0, since: None, stopped_at: None, ..self.history };
    }
}

struct Stored {
    metric: String,
    direction: String,
    history: History,
}

fn parse(state: &[u8]) -> Option<Stored> {
    let state: Map<String, Value> = serde_json::from_slice(state).ok()?;
    let text = |name: &str| state.get(name)?.as_str().map(str::to_string);
    let optional = |name: &str| match state.get(name)? {
        Value::Null => Some(None),
        number => number.as_u64().map(Some),
    };
    let best = match state.get("best")? {
        Value::Null => None,
        best => Some(Best { step: best.get("step")?.as_u64()?, value: f64::from_bits(best.get("bits")?.as_u64()?) }),
    };
    let history = History {
        best,
        n_waited: state.get("n_waited")?.as_u64()?,
        since: optional("since")?,
        last_step: optional("last_step")?,
        stopped_at: optional("stopped_at")?,
    };
    Some(Stored { metric: text("metric")?, direction: text("better")?, history })
}

fn count(n: u64, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        _ => format!("{n} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use estimand_fixture::{Case, cases_of};

    use super::*;

    fn of_keras(case: &Case) -> EarlyStopping {
        let stopping = match case.setting::<String>("mode").as_str() {
            "max" => EarlyStopping::higher_is_better("m"),
            _ => EarlyStopping::lower_is_better("m"),
        };
        let stopping = stopping
            .patience(case.setting("patience"))
            .min_delta(case.setting("min_delta"))
            .start_from_step(case.setting("start"));
        match case.option("baseline") {
            Some(baseline) => stopping.baseline(baseline),
            None => stopping,
        }
    }

    /// Also with an interruption before every value.
    #[test]
    fn stops_where_keras_does() {
        let cases = cases_of("early_stopping", "keras");
        assert_eq!(cases.len(), 150);
        for case in &cases {
            let expected = case.option::<u64>("stops");
            for interrupted in [false, true] {
                let mut stopping = of_keras(case);
                stopping.check().unwrap();
                let stops = case.setting::<Vec<f64>>("values").into_iter().enumerate().position(|(step, value)| {
                    if interrupted {
                        let state = stopping.state();
                        stopping = of_keras(case);
                        stopping.restore(&state).unwrap();
                    }
                    stopping.update(step as u64, value).is_some()
                });
                assert_eq!(stops.map(|step| step as u64), expected, "{case}");
                assert_eq!(stopping.stopped_at(), expected, "{case}");
                let best = stopping.best().map_or(stopping.direction.worst(), |best| best.value);
                assert_eq!(best, case.setting::<f64>("best"), "{case}");
            }
        }
    }

    /// As stop_if_no_decrease_hook counts, case 111: nothing better than 0.9 of step 20.
    #[test]
    fn patience_in_steps() {
        let values = [(10, 1.0), (20, 0.9), (30, 0.95), (40, 0.92), (50, 0.91)];
        let stops =
            |mut stopping: EarlyStopping| values.iter().find_map(|&(step, v)| stopping.update(step, v).and(Some(step)));
        let loss = || EarlyStopping::lower_is_better("loss");
        assert_eq!(stops(loss().patience_steps(20)), Some(40));
        assert_eq!(stops(loss().patience_steps(30)), Some(50));
        assert_eq!(stops(loss().patience_steps(31)), None);
        assert_eq!(stops(loss().patience_steps(20).start_from_step(30)), None);
    }

    #[test]
    fn nan_is_never_better() {
        let mut stopping = EarlyStopping::lower_is_better("loss").patience(3);
        assert_eq!(stopping.update(1, f64::NAN), None);
        assert_eq!(stopping.update(2, 5.0), None);
        assert_eq!(stopping.best(), Some(Best { step: 2, value: 5.0 }));
        assert_eq!(stopping.update(3, f64::NAN), None);
        assert_eq!(stopping.update(4, f64::NAN), None);
        let why = stopping.update(5, f64::NAN).unwrap();
        assert_eq!(why, "`loss` has not got better than 5 of step 2 in 3 evaluations; it is NaN");
        let why = EarlyStopping::lower_is_better("loss").update(1, f64::NAN).unwrap();
        assert_eq!(why, "`loss` has not got better than nothing at all in 1 evaluation; it is NaN");
    }

    #[test]
    fn a_step_counts_once() {
        let mut stopping = EarlyStopping::lower_is_better("loss").patience(2);
        assert_eq!(stopping.update(10, 1.0), None);
        for _ in 0..5 {
            assert_eq!(stopping.update(20, 2.0), None);
        }
        assert!(stopping.update(30, 2.0).is_some());
    }

    #[test]
    fn a_baseline_that_is_not_met_is_named() {
        let mut stopping = EarlyStopping::higher_is_better("auc").baseline(0.9).patience(2);
        assert_eq!(stopping.update(1, 0.5), None);
        let why = stopping.update(2, 0.4).unwrap();
        assert_eq!(
            why,
            "`auc` has not got better than the baseline 0.9 (best: 0.5 of step 1) in 2 evaluations; it is 0.4"
        );
    }

    /// A user who continues training after the decision wants more steps, so the full patience
    /// applies again.
    #[test]
    fn after_the_decision_patience_begins_anew() -> Result<()> {
        let fresh = || EarlyStopping::lower_is_better("loss").patience(2);
        let mut stopping = fresh();
        let stops: Vec<_> =
            [1.0, 2.0, 2.0].into_iter().zip(1..).map(|(v, step)| stopping.update(step, v).is_some()).collect();
        assert_eq!(stops, [false, false, true]);
        let mut resumed = fresh();
        resumed.restore(&stopping.state())?;
        assert_eq!((resumed.stopped_at(), resumed.best()), (None, Some(Best { step: 1, value: 1.0 })));
        assert_eq!(resumed.update(4, 1.5), None);
        assert!(resumed.update(5, 1.5).is_some());
        Ok(())
    }

    #[test]
    fn what_another_metric_left_is_not_taken() -> Result<()> {
        let mut auc = EarlyStopping::higher_is_better("auc");
        auc.update(1, 0.9);
        for mut other in [EarlyStopping::higher_is_better("accuracy"), EarlyStopping::lower_is_better("auc")] {
            other.restore(&auc.state())?;
            assert_eq!(other.best(), None);
        }
        Ok(())
    }

    #[test]
    fn states_that_are_none() {
        let mut stopping = EarlyStopping::higher_is_better("auc");
        stopping.update(1, f64::INFINITY);
        let whole = stopping.state();
        let mut copy = EarlyStopping::higher_is_better("auc");
        copy.restore(&whole).unwrap();
        assert_eq!(copy, stopping);
        for length in 0..whole.len() {
            let error = stopping.restore(&whole[..length]).unwrap_err().to_string();
            assert!(error.contains("early stopping on `auc` cannot be read"), "{error}");
        }
        assert_eq!(copy, stopping, "nothing was changed");
    }

    #[test]
    fn settings_that_make_no_sense() {
        let auc = || EarlyStopping::higher_is_better("auc");
        for (stopping, text) in [
            (auc().patience(0), "the patience is 0"),
            (auc().patience_steps(0), "the patience is 0"),
            (auc().min_delta(-0.5), "min_delta is -0.5"),
            (auc().min_delta(f64::NAN), "min_delta is NaN"),
            (auc().baseline(f64::NAN), "the baseline is NaN"),
            (EarlyStopping::higher_is_better(""), "has an empty name"),
        ] {
            let error = stopping.check().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
