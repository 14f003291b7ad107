//! One evaluation input of a training: its schedule, its model, and its results.

use std::path::{Path, PathBuf};
use std::time::Instant;

use estimand_tensor::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use super::{Evaluated, Export, Exporter};
use crate::criterion::Criterion;
use crate::early_stopping::EarlyStopping;
use crate::estimator::{EvaluationLog, Evaluator, record};
use crate::events::{LentEvents, read_eval_metrics};
use crate::input_fn::InputFn;
use crate::model_folder::best::BestCheckpoint;
use crate::model_folder::best_so_far::BestSoFar;
use crate::session::TrainSession;
use crate::{Estimator, EvalSpec, Metrics, Timer};

/// The minimum number of seconds between two evaluations of checkpoints, as in TensorFlow.
const THROTTLE_SECS: f64 = 600.0;
/// The number of seconds that an evaluator waits before its first evaluation.
const START_DELAY_SECS: f64 = 120.0;

/// The schedule of an evaluation input.
enum Schedule {
    /// At each checkpoint, unless the previous evaluation began less than `throttle_secs` ago.
    Checkpoints {
        throttle_secs: f64,
        last: Option<Instant>,
        /// The checkpoints of this run that were not evaluated.
        n_skipped: u64,
    },
    /// By its own timer.
    Every(Timer),
}

/// An evaluation input of a training.
pub(crate) struct EvalSet<'a> {
    name: Option<String>,
    input: Box<dyn InputFn + 'a>,
    steps: Option<u64>,
    pub(crate) start_delay_secs: f64,
    schedule: Schedule,
    evaluator: Evaluator<'a>,
    events: LentEvents,
    early_stopping: Option<EarlyStopping>,
    best: BestSoFar,
    exporters: Vec<Box<dyn Exporter + 'a>>,
    /// The last evaluation, until exporters have processed it.
    pending: Option<Pending>,
    history: Vec<Metrics>,
    /// The step that was evaluated last, also by earlier runs.
    evaluated: Option<u64>,
    /// The step whose evaluation a signal interrupted. The next run evaluates it first.
    interrupted: Option<u64>,
}

/// The results of an evaluation that exporters receive.
struct Pending {
    /// `None` if an earlier run was killed; the step is then evaluated again.
    metrics: Option<Metrics>,
    is_best: bool,
    is_final: bool,
}

impl<'a> EvalSet<'a> {
    /// Builds the evaluation model and reads its first batch, so that errors appear before training
    /// begins.
    pub(crate) fn new(estimator: &Estimator, spec: EvalSpec<'a>) -> Result<EvalSet<'a>> {
        let place = place(spec.name.as_deref());
        EvalSet::open(estimator, spec).map_err(|e| e.context(place))
    }

    fn open(estimator: &Estimator, spec: EvalSpec<'a>) -> Result<EvalSet<'a>> {
        let opened = estimator.open_for_evaluation(&*spec.input, spec.steps)?;
        if opened.first.is_none() && !opened.is_late {
            return Err(Error::config("nothing to evaluate: the input has no batch")
                .help("check the input's files, its filters and its shard: together they leave no rows"));
        }
        let evaluator = estimator.evaluator(&opened.spec, spec.hooks)?;
        let known = evaluator.metrics_without_values();
        if let Some(early_stopping) = &spec.early_stopping {
            early_stopping.check()?;
            known.get(early_stopping.metric()).map_err(|e| e.context("in its early stopping"))?;
        }
        let of_stopping = || spec.early_stopping.as_ref().map(EarlyStopping::criterion).unwrap_or_default();
        let criterion = spec.criterion.unwrap_or_else(of_stopping);
        criterion.check(&known).map_err(|e| e.context("in the choice of its best evaluation"))?;
        let schedule = match spec.every {
            Some(every) => Schedule::Every(Timer::counted_from(0, every)),
            None => {
                let throttle_secs = spec.throttle_secs.unwrap_or(THROTTLE_SECS);
                Schedule::Checkpoints { throttle_secs, last: None, n_skipped: 0 }
            }
        };
        let events = estimator.open_events(&estimator.eval_dir(spec.name.as_deref()))?;
        Ok(EvalSet {
            name: spec.name,
            input: spec.input,
            steps: spec.steps,
            start_delay_secs: spec.start_delay_secs.unwrap_or(START_DELAY_SECS),
            schedule,
            evaluator,
            events,
            early_stopping: spec.early_stopping,
            best: BestSoFar { criterion, metrics: None },
            exporters: spec.exporters,
            pending: None,
            history: Vec::new(),
            evaluated: None,
            interrupted: None,
        })
    }

    /// Records the step at which training begins. Periods in seconds begin there; periods in steps
    /// count from 0.
    pub(crate) fn begin(&mut self, step: u64) {
        if let Schedule::Every(timer) = &mut self.schedule {
            timer.trigger(step);
        }
    }

    /// Returns whether its own timer is due.
    #[inline]
    pub(crate) fn is_due(&self, step: u64) -> bool {
        matches!(&self.schedule, Schedule::Every(timer) if timer.is_due(step))
    }

    /// Returns whether an evaluation is due because a checkpoint was saved.
    pub(crate) fn is_due_with_checkpoint(&self) -> bool {
        match &self.schedule {
            Schedule::Checkpoints { throttle_secs, last, .. } => {
                last.is_none_or(|last| last.elapsed().as_secs_f64() >= *throttle_secs)
            }
            Schedule::Every(_) => false,
        }
    }

    /// Records that a checkpoint of the training is not evaluated.
    pub(crate) fn skip_checkpoint(&mut self) {
        if let Schedule::Checkpoints { n_skipped, .. } = &mut self.schedule {
            *n_skipped += 1;
        }
    }

    /// Returns a warning if a whole training was evaluated once or twice only, because checkpoints
    /// decide when to evaluate.
    pub(crate) fn too_rarely(&self) -> Option<String> {
        let Schedule::Checkpoints { throttle_secs, n_skipped, .. } = self.schedule else { return None };
        let why = match (self.history.len(), n_skipped) {
            (1, 0) => "training saved no checkpoint before its last step".to_string(),
            (1 | 2, 1..) => {
                let plural = if n_skipped == 1 { " was" } else { "s were" };
                format!(
                    "{n_skipped} checkpoint{plural} not evaluated, because throttle_secs is {throttle_secs}: that many \
                     seconds must pass between two evaluations"
                )
            }
            _ => return None,
        };
        let times = if self.history.len() == 1 { "once" } else { "twice" };
        let what =
            self.name.as_ref().map_or_else(|| "The evaluation".to_string(), |name| format!("Evaluation `{name}`"));
        Some(format!(
            "{what} ran only {times}: {why}. To evaluate during training, set EvalSpec::every(Every::Steps(n)), or a \
             smaller throttle_secs with RunConfig::save_checkpoints(Every::Steps(n))"
        ))
    }

    /// Returns whether the last evaluation is the best so far.
    pub(crate) fn is_best(&self) -> bool {
        self.evaluated.is_some() && self.best_step() == self.evaluated
    }

    /// Returns the step of the best evaluation, earlier runs included.
    fn best_step(&self) -> Option<u64> {
        self.best.metrics.as_ref().map(Metrics::global_step)
    }

    /// Returns the checkpoint of the best evaluation.
    pub(crate) fn best_checkpoint(&self) -> Option<BestCheckpoint> {
        self.best_step().map(|step| BestCheckpoint::new(self.name.as_deref().unwrap_or_default(), step))
    }

    /// Returns the step whose checkpoint the model returns to at the end, if it is asked for.
    pub(crate) fn step_to_restore(&self) -> Option<u64> {
        self.early_stopping.as_ref().filter(|stopping| stopping.restores_best()).and_then(|_| self.best_step())
    }

    /// Returns whether this step is the last one evaluated.
    pub(crate) fn is_evaluated(&self, step: u64) -> bool {
        self.evaluated == Some(step)
    }

    /// Returns whether a signal interrupted the evaluation of this step.
    pub(crate) fn is_interrupted(&self, step: u64) -> bool {
        self.interrupted == Some(step)
    }

    /// Returns the step that was evaluated last in this run.
    pub(crate) fn last_step(&self) -> Option<u64> {
        self.history.last().map(Metrics::global_step)
    }

    /// Returns its place for error messages.
    pub(crate) fn place(&self) -> String {
        place(self.name.as_deref())
    }

    /// Evaluates with the variables of a training. Returns the reason to end the training, if there
    /// is one. The results are not in the event file yet: see [`EvalSet::record`].
    pub(crate) fn evaluate(
        &mut self,
        estimator: &Estimator,
        training: &mut TrainSession,
        is_last_step: bool,
    ) -> Result<Option<String>> {
        let step = training.global_step();
        let result = self.run(estimator, Some(training), step, is_last_step).map_err(|e| e.context(self.place()));
        self.interrupted = is_signal(&result).then_some(step);
        result
    }

    /// Writes the last results to the event file.
    ///
    /// This is separate from `evaluate`. If the disk is full, neither the best evaluation nor the
    /// state of early stopping is lost; both are saved in the checkpoint.
    pub(crate) fn record(&mut self, checkpoint: Option<&Path>) -> Result<()> {
        let Some(metrics) = self.history.last() else { return Ok(()) };
        record(metrics, checkpoint, &mut self.events).map_err(|e| e.context(place(self.name.as_deref())))
    }

    /// Evaluates a checkpoint.
    pub(crate) fn evaluate_checkpoint(
        &mut self,
        estimator: &Estimator,
        checkpoint: &Path,
        is_last_step: impl FnOnce(u64) -> bool,
    ) -> Result<()> {
        self.evaluator.session.restore(checkpoint)?;
        let step = self.evaluator.session.global_step();
        self.run(estimator, None, step, is_last_step(step)).map_err(|e| e.context(self.place()))?;
        self.record(Some(checkpoint))
    }

    /// Evaluates with the variables of a training, or with its own variables.
    fn run(
        &mut self,
        estimator: &Estimator,
        training: Option<&mut TrainSession>,
        step: u64,
        is_last_step: bool,
    ) -> Result<Option<String>> {
        match &mut self.schedule {
            Schedule::Every(timer) => drop(timer.trigger(step)),
            Schedule::Checkpoints { last, .. } => *last = Some(Instant::now()),
        }
        let log = EvaluationLog::begin(self.name.as_deref());
        let opened = estimator.open_for_evaluation(&*self.input, self.steps)?;
        let metrics = match training {
            Some(training) => self.evaluator.run_on(training, opened, self.steps)?,
            None => self.evaluator.run(opened, self.steps)?,
        };
        log.end();
        let is_best = self.best.update(&metrics)?;
        let stop = match &mut self.early_stopping {
            Some(stopping) => stopping.update(step, metrics.get(stopping.metric())?),
            None => None,
        };
        for exporter in &mut self.exporters {
            exporter.evaluated(&metrics).map_err(|e| e.context(format!("in exporter `{}`", exporter.name())))?;
        }
        if !self.exporters.is_empty() {
            let is_final = is_last_step || stop.is_some();
            self.pending = Some(Pending { metrics: Some(metrics.clone()), is_best, is_final });
        }
        self.history.push(metrics);
        self.evaluated = Some(step);
        Ok(stop.map(|why| match &self.name {
            Some(name) => format!("early stopping: in evaluation `{name}`, {why}"),
            None => format!("early stopping: {why}"),
        }))
    }

    /// Repeats the last evaluation of the previous run, which was killed or failed. Nothing is
    /// counted or written twice. Exporters and the caller get the results that were lost with that
    /// run; the event file gets them if it has none for this step.
    pub(crate) fn evaluate_again(&mut self, estimator: &Estimator, training: &mut TrainSession) -> Result<()> {
        let again = estimator
            .open_for_evaluation(&*self.input, self.steps)
            .and_then(|opened| self.evaluator.run_on(training, opened, self.steps));
        let metrics = again.map_err(|e| e.context(self.place()))?;
        if let Some(pending) = &mut self.pending {
            pending.metrics = Some(metrics.clone());
        }
        let step = metrics.global_step();
        self.history.push(metrics);
        if self.is_recorded(estimator, step)? {
            return Ok(());
        }
        self.record(Some(&estimator.model_dir().join(format!("model.ckpt-{step}"))))
    }

    /// Returns whether the event files have results of a step.
    pub(crate) fn is_recorded(&self, estimator: &Estimator, step: u64) -> Result<bool> {
        Ok(read_eval_metrics(estimator.eval_dir(self.name.as_deref()))?.contains_key(&step))
    }

    /// Records that exporters have processed the last evaluation.
    pub(crate) fn forget_pending(&mut self) {
        self.pending = None;
    }

    /// Returns whether exporters wait for the checkpoint of the last evaluation.
    pub(crate) fn has_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Calls the exporters with the last evaluation, whose checkpoint is now written. Adds the
    /// exported paths to `made`.
    pub(crate) fn export(&mut self, estimator: &Estimator, checkpoint: &Path, made: &mut Vec<PathBuf>) -> Result<()> {
        let Some(Pending { metrics: Some(metrics), is_best, is_final }) = self.pending.take() else { return Ok(()) };
        for exporter in &mut self.exporters {
            let path = estimator.model_dir().join("export").join(exporter.name());
            let export = Export { estimator, path, checkpoint, metrics: &metrics, is_best, is_final };
            let place = format!("in exporter `{}` at step {}", exporter.name(), metrics.global_step());
            made.extend(exporter.export(&export).map_err(|e| e.context(place))?);
        }
        Ok(())
    }

    /// Returns the newest evaluation as a short text for the progress bar.
    pub(crate) fn summary(&self) -> Option<String> {
        let last = self.history.last()?;
        let name = self.name.as_deref().unwrap_or("eval");
        let metric = match &self.best.criterion {
            Criterion::Metric { name, .. } => name.as_str(),
            Criterion::Function(_) => "loss",
        };
        Some(format!("{name} {metric} {:.4}", last.get(metric).ok()?))
    }

    /// Returns the state for a later run, under its name.
    pub(crate) fn state(&self) -> (String, Value) {
        let stopping = self.early_stopping.as_ref().map(|s| String::from_utf8_lossy(&s.state()).into_owned());
        let pending = self.pending.as_ref().map(|p| json!({"is_best": p.is_best, "is_final": p.is_final}));
        let exporters = self.exporters.iter().filter_map(|e| Some((e.name().to_string(), Value::from(e.state()?))));
        let exporters: serde_json::Map<String, Value> = exporters.collect();
        let state = json!({
            "best": self.best.state(), "early_stopping": stopping, "evaluated": self.evaluated, "pending": pending,
            "interrupted": self.interrupted, "exporters": exporters,
        });
        (self.name.clone().unwrap_or_default(), state)
    }

    /// Restores the state of an earlier run.
    pub(crate) fn restore(&mut self, all: &Value) -> Result<()> {
        let Some(state) = all.get(self.name.as_deref().unwrap_or_default()) else { return Ok(()) };
        let unreadable = || Error::data("the stored state of the evaluation cannot be read").context(self.place());
        let best = state.get("best").ok_or_else(unreadable)?;
        let (mut early_stopping, place) = (self.early_stopping.take(), self.place());
        if let (Some(stopping), Some(state)) =
            (&mut early_stopping, state.get("early_stopping").and_then(Value::as_str))
        {
            stopping.restore(state.as_bytes())?;
        }
        self.early_stopping = early_stopping;
        for exporter in &mut self.exporters {
            let name = exporter.name().to_string();
            if let Some(state) = state.get("exporters").and_then(|all| all.get(&name)).and_then(Value::as_str) {
                exporter.restore(state).map_err(|e| e.context(format!("in exporter `{name}`")))?;
            }
        }
        self.evaluated = state.get("evaluated").and_then(Value::as_u64);
        self.interrupted = state.get("interrupted").and_then(Value::as_u64);
        let flag = |pending: &Value, name: &str| pending.get(name).and_then(Value::as_bool);
        let pending = state.get("pending").filter(|_| !self.exporters.is_empty());
        self.pending = pending.and_then(|pending| {
            let (is_best, is_final) = (flag(pending, "is_best")?, flag(pending, "is_final")?);
            Some(Pending { metrics: None, is_best, is_final })
        });
        let unreadable = || Error::data("the stored best evaluation cannot be read").context(place);
        self.best.restore(best).ok_or_else(unreadable)
    }

    /// Returns all results.
    pub(crate) fn finish(self) -> Evaluated {
        Evaluated {
            name: self.name,
            by: self.best.criterion.to_string(),
            history: self.history,
            best: self.best.metrics,
        }
    }
}

/// Returns whether a signal ended an evaluation. Training then saves its progress and ends too.
pub(crate) fn is_signal<T>(result: &Result<T>) -> bool {
    result.as_ref().is_err_and(|error| matches!(error.kind(), ErrorKind::Interrupted))
}

fn place(name: Option<&str>) -> String {
    match name {
        Some(name) => format!("in evaluation `{name}`"),
        None => "in the evaluation".to_string(),
    }
}
