//! Ends training by the results of evaluations: TensorFlow's four `stop_if_*_hook`s.
//!
//! Metrics are read from event files, so that another process may evaluate. If the same process
//! evaluates, `EarlyStopping` needs no files.

use std::path::{Path, PathBuf};

use estimand_tensor::{Error, Result};
use indexmap::IndexMap;

use super::early_stopping::Decision;
use super::{BeginContext, Hook, HookContext};
use crate::criterion::Direction;
use crate::events::read_eval_metrics;
use crate::{EarlyStopping, Every};

/// Ends training by a metric in the event files of evaluations.
///
/// It reads all `events.out.tfevents.*` of a folder, every 60 seconds by default. Their numbers are
/// `f32`, as in TensorFlow: 0.9 is 0.89999998, which is lower than 0.9.
///
/// Evaluations of steps that the training has not reached yet belong to a run that was killed. They
/// count when the training reaches those steps again.
///
/// A run that is started after such a decision continues training: earlier evaluations do not count
/// again, and patience is counted from zero.
///
/// ```no_run
/// use estimand::hook::StopIfHook;
/// use estimand::prelude::*;
///
/// # fn train(estimator: &Estimator, data: &Dataset) -> Result<()> {
/// let hook = StopIfHook::no_decrease("loss", 10_000).min_steps(5_000);
/// estimator.train(TrainSpec::new(data).hook(hook))?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct StopIfHook {
    name: &'static str,
    watch: Watch,
    decision: Decision,
}

/// The metric to watch, and the condition to stop.
struct Watch {
    metric: String,
    condition: Condition,
    eval_dir: Option<PathBuf>,
    min_steps: u64,
}

#[derive(Clone)]
enum Condition {
    /// A value beyond this threshold.
    Beyond(Direction, f64),
    /// No improvement for a number of steps.
    Idle(EarlyStopping),
}

impl Condition {
    /// Records an evaluation. Returns the reason to stop, if the condition is met.
    fn update(&mut self, metric: &str, step: u64, value: f64) -> Option<String> {
        match self {
            Condition::Beyond(direction, threshold) => direction
                .beats(value, *threshold, 0.0)
                .then(|| format!("`{metric}` is {value} at step {step}, {} than {threshold}", direction.text())),
            Condition::Idle(stopping) => stopping.update(step, value),
        }
    }

    /// Resets the patience count.
    fn begin_anew(&mut self) {
        if let Condition::Idle(stopping) = self {
            stopping.begin_anew();
        }
    }

    fn check(&self, metric: &str) -> Result<()> {
        match self {
            Condition::Beyond(_, threshold) if threshold.is_nan() => {
                Err(Error::config(format!("the threshold for `{metric}` is NaN; expected a number")))
            }
            Condition::Beyond(..) => Ok(()),
            Condition::Idle(stopping) => stopping.check(),
        }
    }
}

impl StopIfHook {
    /// Stops when an evaluation is above a threshold.
    pub fn higher(metric: impl Into<String>, threshold: f64) -> StopIfHook {
        StopIfHook::new(metric, "stop_if_higher", Condition::Beyond(Direction::Higher, threshold))
    }

    /// Stops when an evaluation is below a threshold.
    pub fn lower(metric: impl Into<String>, threshold: f64) -> StopIfHook {
        StopIfHook::new(metric, "stop_if_lower", Condition::Beyond(Direction::Lower, threshold))
    }

    /// Stops when the metric has had no new highest value for `max_steps` steps.
    pub fn no_increase(metric: impl Into<String>, max_steps: u64) -> StopIfHook {
        let metric = metric.into();
        let stopping = EarlyStopping::higher_is_better(&metric).patience_steps(max_steps);
        StopIfHook::new(metric, "stop_if_no_increase", Condition::Idle(stopping))
    }

    /// Stops when the metric has had no new lowest value for `max_steps` steps.
    pub fn no_decrease(metric: impl Into<String>, max_steps: u64) -> StopIfHook {
        let metric = metric.into();
        let stopping = EarlyStopping::lower_is_better(&metric).patience_steps(max_steps);
        StopIfHook::new(metric, "stop_if_no_decrease", Condition::Idle(stopping))
    }

    fn new(metric: impl Into<String>, name: &'static str, condition: Condition) -> StopIfHook {
        let watch = Watch { metric: metric.into(), condition, eval_dir: None, min_steps: 0 };
        StopIfHook { name, watch, decision: Decision::default() }
    }

    /// Sets the folder of the evaluations' event files. By default, `eval` in the model folder.
    pub fn eval_dir(mut self, folder: impl Into<PathBuf>) -> StopIfHook {
        self.watch.eval_dir = Some(folder.into());
        self
    }

    /// Ignores evaluations before this step. By default, all count.
    pub fn min_steps(mut self, step: u64) -> StopIfHook {
        self.watch.min_steps = step;
        self
    }

    /// Sets how often the files are read. By default, every 60 seconds.
    pub fn every(mut self, every: Every) -> StopIfHook {
        self.decision = Decision::every(every);
        self
    }
}

impl Watch {
    /// Returns the reason to stop at a step, from evaluations of earlier steps. Evaluations up to
    /// an earlier decision do not count again.
    fn why(&self, model_dir: &Path, now: u64, decided_at: Option<u64>) -> Result<Option<String>> {
        let folder = self.eval_dir.clone().unwrap_or_else(|| model_dir.join("eval"));
        let mut condition = self.condition.clone();
        // Results of this step and later ones come from a run that was killed. An uninterrupted run
        // would not have them yet.
        for (&step, metrics) in read_eval_metrics(&folder)?.range(self.min_steps.min(now)..now) {
            let value = self.value(step, metrics).map_err(|e| e.context(format!("in {}", folder.display())))?;
            let why = condition.update(&self.metric, step, value);
            if decided_at.is_some_and(|decided| step <= decided) {
                condition.begin_anew();
            } else if why.is_some() {
                return Ok(why);
            }
        }
        Ok(None)
    }

    fn value(&self, step: u64, metrics: &IndexMap<String, f32>) -> Result<f64> {
        metrics.get(&self.metric).map(|value| f64::from(*value)).ok_or_else(|| {
            let names = metrics.keys().map(String::as_str);
            Error::unknown("metric", &self.metric, names).context(format!("in the evaluation of step {step}"))
        })
    }
}

impl Hook for StopIfHook {
    fn name(&self) -> &str {
        self.name
    }

    fn begin(&mut self, _cx: &mut BeginContext<'_>) -> Result<()> {
        self.decision.check(self.name())?;
        self.watch.condition.check(&self.watch.metric)
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let watch = &self.watch;
        self.decision.ask(cx, |cx, decided_at| watch.why(cx.model_dir(), cx.global_step(), decided_at))
    }

    fn state(&self) -> Option<Vec<u8>> {
        self.decision.state()
    }

    fn restore(&mut self, state: &[u8]) -> Result<()> {
        self.decision.restore(state)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use estimand_fixture::{Case, Json, cases_of};

    use super::*;
    use crate::events::{self, EventWriter};

    /// Events of a file: steps and values under tags.
    type File = Vec<(u64, Vec<(String, f32)>)>;

    /// Makes a folder with event files. They are written in the order of their names.
    fn folder(name: &str, files: &[File]) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("estimand-stop-if-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for file in files {
            let mut writer = EventWriter::create(&folder).unwrap();
            for (step, tags) in file {
                let values = tags.iter().map(|(tag, value)| events::Value::scalar(tag, *value)).collect();
                writer.summary(*step, values).unwrap();
            }
        }
        folder
    }

    fn of(case: &Case) -> StopIfHook {
        let metric = case.setting::<String>("metric");
        let hook = match case.setting::<String>("kind").as_str() {
            "higher" => StopIfHook::higher(metric, case.setting::<f64>("limit")),
            "lower" => StopIfHook::lower(metric, case.setting::<f64>("limit")),
            "no_increase" => StopIfHook::no_increase(metric, case.setting("limit")),
            _ => StopIfHook::no_decrease(metric, case.setting("limit")),
        };
        hook.min_steps(case.setting("min_steps"))
    }

    /// Cases 111 and 112 are the first of them.
    #[test]
    fn stops_where_tensorflow_does() {
        let cases = cases_of("early_stopping", "event");
        assert_eq!(cases.len(), 133);
        for case in &cases {
            let folder = folder("oracle", &case.setting::<Vec<File>>("files"));
            let cut = case.setting::<u64>("cut");
            if let Some(last) = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).max().filter(|_| cut > 0) {
                let file = fs::OpenOptions::new().write(true).open(last).unwrap();
                file.set_len(file.metadata().unwrap().len() - cut).unwrap();
            }
            let hook = of(case).eval_dir(&folder);
            hook.watch.condition.check("m").unwrap();
            match (hook.watch.why(Path::new("nowhere"), u64::MAX, None), case.json("stops")) {
                (Ok(why), Json::Bool(stops)) => assert_eq!(why.is_some(), *stops, "{case}: {why:?}"),
                (Err(_), Json::String(_)) => {}
                (ours, theirs) => panic!("{case}: {ours:?}, and {theirs} of TensorFlow"),
            }
            fs::remove_dir_all(folder).unwrap();
        }
    }
}
