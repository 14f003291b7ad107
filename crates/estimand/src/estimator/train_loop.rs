//! The training loop on one page. `train.rs` prepares it, and hooks do the work between steps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_data::Position;
use estimand_graph::Value;
use estimand_tensor::{Array, Error, ErrorKind, Mode, Result, warn};
use tracing::info;

use super::build::{BuiltModel, Opened};
use super::programs::Programs;
use super::train_input::{Anew, Next, TrainInput};
use super::train_spec::{Finished, TrainSpec};
use super::{Estimator, default_hooks};
use crate::console::Progress;
use crate::estimator_spec::ReadyCheck;
use crate::events::{EventWriter, LentEvents, RunStatus, SessionStatus};
use crate::feeding::{BatchNumbers, Fed};
use crate::from_input::InputChoice;
use crate::hook::{BeginContext, CheckpointListener, Hook, HookContext, Hooks, Requests, Stop};
use crate::kept_rows::KeptRows;
use crate::manifest::Meant;
use crate::model_folder::owner::Owner;
use crate::running_metrics::RunningMetrics;
use crate::saver::{Retention, Saver};
use crate::session::{InputPlace, TrainSession};
use crate::signal::{Guard, Signal};
use crate::unfinished::Unfinished;

/// The reason of a training that has read its whole input.
pub(super) const INPUT_ENDED: &str = "the input ended";

/// A running training.
pub(super) struct Run<'a> {
    pub(super) session: TrainSession,
    input: TrainInput,
    programs: Programs,
    pub(super) hooks: Hooks<'a>,
    listeners: Vec<Box<dyn CheckpointListener + 'a>>,
    pub(super) saver: Saver,
    events: LentEvents,
    /// The lock on the model folder; released when the run ends.
    owner: Owner,
    /// Whether the parameters were written for TensorBoard, so that the end must be written too.
    tells_params: bool,
    model_dir: PathBuf,
    initial_values: Vec<(String, Array)>,
    from_input: Option<InputChoice>,
    ready_checks: Vec<ReadyCheck>,
    loss: Option<f32>,
    /// The numbers of the last batch, if its loss is NaN.
    batch_numbers: Option<BatchNumbers>,
    pub(super) running_metrics: RunningMetrics,
    pub(super) requests: Requests,
    signals: Guard,
    /// The number of steps of this call, or the last global step, if either is known.
    steps: Option<u64>,
    max_steps: Option<u64>,
    /// Whether this run continues one that was killed.
    pub(super) goes_on: bool,
    /// The marker in the model folder that this run is under way.
    pub(super) unfinished: Option<Unfinished>,
    /// The first rows, which the model folder keeps.
    pub(super) kept_rows: Option<KeptRows>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        estimator: &Estimator,
        owner: Owner,
        built: BuiltModel,
        opened: Opened,
        train: TrainSpec<'a>,
        seed: u64,
    ) -> Result<Run<'a>> {
        let BuiltModel { graph, mut spec, mut placeholders } = built;
        let config = &estimator.config;
        let loss = spec.loss.clone().ok_or_else(|| Error::internal("a model without loss was let through"))?;
        let train_op =
            spec.train_op.clone().ok_or_else(|| Error::internal("a model without train op was let through"))?;
        let (initial_values, ready_checks) =
            (std::mem::take(&mut spec.initial_values), std::mem::take(&mut spec.ready_checks));
        let retention = spec.retention.unwrap_or(Retention {
            keep_max: config.keep_checkpoint_max,
            keep_every_n_hours: config.keep_checkpoint_every_n_hours,
        });
        let has_saver = train.saves_checkpoints(config);
        let mut listeners = train.listeners;
        if !listeners.is_empty() && !has_saver {
            return Err(Error::config("there are checkpoint listeners, but no checkpoints are saved")
                .help("set save_checkpoints, or add a CheckpointSaverHook"));
        }
        let mut hooks = Hooks::new(default_hooks::all(config, &mut spec, train.hooks, train.steps, train.max_steps));
        info!("Hooks, in order: {}", hooks.names().join(", "));

        let (mut fetches, mut requested, mut of_hooks) = (vec![loss.value()], Vec::new(), Vec::new());
        hooks.each("begin", |hook| {
            let cx = BeginContext::new(&graph, &mut placeholders, &mut fetches, &mut of_hooks);
            hook.begin(&mut cx.requested(&mut requested))
        })?;
        let running_metrics = RunningMetrics::new(std::mem::take(&mut spec.running_metrics), &mut fetches);
        for listener in of_hooks {
            listeners.push(listener);
        }
        tell(&mut listeners, "begin", |listener| listener.begin())?;
        let updates = graph.updates();
        let all = graph.group(&std::iter::once(&train_op).chain(&updates).collect::<Vec<_>>());
        graph.check()?;

        let body = Arc::new(graph.body().clone());
        let meant = Meant::new(&body, Mode::Train, opened.spec.classes.as_deref(), config);
        let session = TrainSession::new(body, meant, config, seed)?;
        info!("Graph was finalized.");
        let from_input = spec.from_input.take();
        let from_input = from_input.map(|wanted| InputChoice::new(&session, wanted, &placeholders)).transpose()?;
        let programs = Programs::new(&session, &fetches, &requested, all.value(), &placeholders)?;
        let step = programs.plain().clone();
        let input = TrainInput::new(opened, placeholders.binding(&step)?, step, config);
        let saver = Saver::new(&estimator.model_dir, retention)?;
        let mut events = estimator.open_events(&estimator.model_dir)?;
        events.begin_run();
        write_graph(&session, &[loss.value()], &mut events, estimator)?;
        let tells_params = estimator.params.iter().len() > 0;
        if tells_params {
            events.hparams(&estimator.params)?;
        }
        Ok(Run {
            session,
            input,
            programs,
            hooks,
            listeners,
            saver,
            events,
            owner,
            tells_params,
            model_dir: estimator.model_dir.clone(),
            initial_values,
            from_input,
            ready_checks,
            loss: None,
            batch_numbers: None,
            running_metrics,
            requests: Requests { last_step: train.max_steps, ..Requests::default() },
            signals: Guard::install()?,
            steps: train.steps,
            max_steps: train.max_steps,
            goes_on: false,
            unfinished: None,
            kept_rows: None,
        })
    }

    /// Sets the initial values of a model without a checkpoint.
    pub(super) fn initialize(&mut self, estimator: &Estimator) -> Result<()> {
        estimator.initialize(&mut self.session, std::mem::take(&mut self.initial_values))?;
        let Run { session, input, signals, from_input, .. } = self;
        match from_input.take() {
            Some(choice) => choice.choose(session, Anew::new(input, signals)),
            None => Ok(()),
        }
    }

    /// Trains, and records the reason for the end, which reports show.
    pub(super) fn train(&mut self) -> Result<Finished> {
        let first_step = self.session.step;
        let ended = self.steps(first_step).and_then(|reason| self.finish(first_step, reason));
        let why = ended.as_ref().map_or_else(Error::message, |finished| &finished.reason);
        let mut told = self.events.stop(self.session.step, why);
        if self.tells_params {
            let status = if ended.is_ok() { RunStatus::Success } else { RunStatus::Failure };
            told = told.and_then(|()| self.events.hparams_end(status));
        }
        told = told.and_then(|()| self.events.sync());
        // An error of the training is more useful than the error of writing it to disk.
        ended.and_then(|finished| told.map(|()| finished))
    }

    /// Adds the checkpoint that a later run resumes from to the error of a model that diverged.
    fn with_way_back(&mut self, error: Error) -> Error {
        if *error.kind() != ErrorKind::Diverged {
            return error;
        }
        // The checkpoint that is being written may be that one. If it fails, an older one is.
        if let Err(failed) = self.saver.wait() {
            warn!("{failed}");
        }
        match self.saver.newest_good() {
            Some(prefix) => {
                let prefix = prefix.display();
                error.more_help(format!("a later run resumes from {prefix}, the last checkpoint that is finite"))
            }
            None => error,
        }
    }

    /// Runs the loop. Returns why it ended.
    fn steps(&mut self, first_step: u64) -> Result<String> {
        for check in &self.ready_checks {
            check(&self.session)?;
        }
        let mut progress = Progress::start("train", first_step, self.last_step(first_step));
        self.visit("after_create_session", |hook, cx| hook.after_create_session(cx))?;
        self.tell_of_restored()?;
        self.save_if_asked(false)?;
        let reason = loop {
            if let Some(stop) = &self.requests.stop {
                break stop.reason.clone();
            }
            if let Some(signal) = self.signals.requested() {
                self.requests.is_interrupted = true;
                break signal.to_string();
            }
            self.visit("before_run", |hook, cx| hook.before_run(cx))?;
            self.session.begin_input();
            let fed = match self.input.next(&self.session.input.position, &self.signals)? {
                Next::Batch(fed) => fed,
                Next::End => {
                    self.session.input =
                        InputPlace { epoch: self.session.input.epoch + 1, position: Position::default() };
                    if !self.goes_on && self.input.goes_on_in(self.session.input.epoch)? {
                        continue;
                    }
                    self.requests.stop(Stop::decided(INPUT_ENDED));
                    continue;
                }
                Next::Interrupted => continue,
            };
            self.step(fed)?;
            self.visit("after_run", |hook, cx| hook.after_run(cx)).map_err(|error| self.with_way_back(error))?;
            self.save_if_asked(true)?;
            self.saver.check()?;
            if let Some(text) = self.requests.show.take() {
                progress.note(text);
            }
            progress.step(self.session.step, || self.loss);
        };
        Ok(reason)
    }

    /// Returns the step at which this call will end, if it is known.
    fn last_step(&self, first_step: u64) -> Option<u64> {
        self.max_steps.or_else(|| self.steps.map(|n| first_step.saturating_add(n)))
    }

    /// Runs one training step.
    fn step(&mut self, mut fed: Fed) -> Result<()> {
        let all = std::mem::take(&mut self.requests.values);
        self.programs.run(&mut self.session, &fed, all)?;
        self.session.step += 1;
        if let Some(kept) = &mut self.kept_rows {
            kept.add(self.session.step, fed.batch())?;
        }
        std::mem::swap(&mut self.session.input.position, &mut fed.after);
        self.running_metrics.add(self.programs.values().0)?;
        self.loss = self.programs.values().0.first().and_then(|loss| loss.item::<f32>().ok());
        if let Some(loss) = self.loss.filter(|loss| loss.is_nan()) {
            let numbers = self.batch_numbers.insert(self.input.numbers(&fed));
            warn!("The loss of step {} is {loss}: {numbers}", self.session.step);
        }
        self.input.recycle(fed);
        Ok(())
    }

    fn finish(&mut self, first_step: u64, reason: String) -> Result<Finished> {
        let global_step = self.session.step;
        if global_step == first_step && !self.goes_on {
            warn!("Training with no steps: {reason}");
        }
        self.visit("end", |hook, cx| hook.end(cx))?;
        self.requests.save &= self.saver.last_step() != Some(global_step);
        self.save_if_asked(false)?;
        self.saver.wait()?;
        self.saver.check_finite()?;
        let session = &self.session;
        tell(&mut self.listeners, "end", |listener| listener.end(session, global_step))?;
        let reason = self.restore_best(reason)?;
        if let Some(loss) = self.loss {
            info!("Loss for final step: {loss}.");
        }
        let finished = Finished { global_step, n_steps: global_step - first_step, loss: self.loss, reason };
        info!("{finished}");
        match self.signals.requested() {
            Some(signal) => Err(interrupted(signal, &finished, &self.model_dir)),
            None => Ok(finished),
        }
    }

    /// Returns to the checkpoint of the best evaluation, if early stopping asks for it. Returns the
    /// reason for the end with that step.
    fn restore_best(&mut self, reason: String) -> Result<String> {
        let Some(step) = self.requests.restore.filter(|&step| step != self.session.step) else { return Ok(reason) };
        match self.saver.restore(step)? {
            true => Ok(format!("{reason}; the best checkpoint, of step {step}, is restored")),
            false => {
                warn!(
                    "The best checkpoint, of step {step}, is not in {}: it is not restored",
                    self.model_dir.display()
                );
                Ok(reason)
            }
        }
    }

    /// Calls a method of every hook, up to the first error.
    fn visit(
        &mut self,
        phase: &str,
        mut call: impl FnMut(&mut dyn Hook, &mut HookContext<'_>) -> Result<()>,
    ) -> Result<()> {
        self.with_hooks(|hooks, cx| hooks.each(phase, |hook| call(hook, cx)))
    }

    fn with_hooks(&mut self, call: impl FnOnce(&mut Hooks<'a>, &mut HookContext<'_>) -> Result<()>) -> Result<()> {
        let Run { session, hooks, events, model_dir, programs, loss, running_metrics, requests, .. } = self;
        let (values, requested) = programs.values();
        let mut cx = HookContext {
            session,
            model_dir,
            events: Some(&mut **events),
            values,
            requested,
            loss: *loss,
            running_metrics: Some(&*running_metrics),
            batch_numbers: self.batch_numbers.as_ref(),
            requests,
        };
        call(hooks, &mut cx)
    }

    /// Recreates the model folder and its event file if they were deleted.
    fn keep_folder(&mut self) -> Result<()> {
        let is_new_folder = self.owner.keep()?;
        let is_new_file = self.events.keep()?;
        if is_new_folder || is_new_file {
            warn!(
                "{} was removed during training: earlier checkpoints and events are lost, later ones go to a new one",
                if is_new_folder { self.model_dir.display() } else { self.events.path().display() }
            );
        }
        Ok(())
    }

    /// TF: a run saves at its first step and notifies listeners, even if it was restored from the
    /// checkpoint of that step. Here that checkpoint stays as it is, and listeners are notified.
    /// Their requests to stop do not count yet.
    fn tell_of_restored(&mut self) -> Result<()> {
        let (session, step) = (&self.session, self.session.step);
        let is_untold = self.unfinished.as_ref().is_some_and(|run| self.goes_on && !run.is_told(step));
        if self.saver.last_step() != Some(step) || !(self.requests.save || is_untold) {
            return Ok(());
        }
        tell(&mut self.listeners, "before_save", |listener| listener.before_save(session, step))?;
        if is_untold {
            // The run that saved it was killed before it notified listeners, so their requests to
            // stop count.
            return self.tell_of_checkpoint(step > 0);
        }
        tell(&mut self.listeners, "after_save", |listener| listener.after_save(session, step).map(drop))
    }

    /// Saves a checkpoint if a hook requested it. Listeners can stop the training only between
    /// steps.
    fn save_if_asked(&mut self, may_stop: bool) -> Result<()> {
        if !std::mem::take(&mut self.requests.save) || self.saver.last_step() == Some(self.session.step) {
            return Ok(());
        }
        let step = self.session.step;
        self.keep_folder()?;
        // If a hook fails here, the other hooks still see the checkpoint, and the trained values
        // are saved.
        let seen = self.with_hooks(|hooks, cx| hooks.all("before_save", |hook| hook.before_save(cx)));
        let session = &self.session;
        tell(&mut self.listeners, "before_save", |listener| listener.before_save(session, step))?;
        info!("Saving checkpoints for {step} into {}.", self.model_dir.join("model.ckpt").display());
        if let Some(kept) = &mut self.kept_rows {
            kept.save()?;
        }
        let position = self.input.marked(&self.session.input.position);
        let (session, states, running_metrics) = (&self.session, self.hooks.states(), &self.running_metrics);
        let entries = self.hooks.entries()?;
        let stop = self.requests.stop.as_ref().filter(|stop| stop.is_kept).map(|stop| stop.reason.clone());
        self.saver.sync_before(self.events.file()?);
        self.saver.save(step, session.saved_bytes(), session.unjudged(), self.requests.best.clone(), |each| {
            session.each_saved(position, stop, states, each)?;
            for (name, value) in entries {
                each(name, value)?;
            }
            running_metrics.each_saved(each)
        })?;
        let prefix = self.saver.prefix(step).display().to_string();
        if let Err(error) = self.events.session_log(step, SessionStatus::Checkpoint, &prefix) {
            // A disk without room for this has no room for the checkpoint either, and the error of
            // the checkpoint is more useful.
            self.saver.wait()?;
            return Err(self.saver.failed(step, error));
        }
        if seen.is_err() || !self.listeners.is_empty() {
            // Listeners may want to read the checkpoint.
            self.saver.wait()?;
        }
        seen?;
        self.tell_of_checkpoint(may_stop)
    }

    /// Notifies listeners of the checkpoint of this step, whose files are written.
    fn tell_of_checkpoint(&mut self, may_stop: bool) -> Result<()> {
        if self.listeners.is_empty() {
            return Ok(());
        }
        let (session, requests) = (&self.session, &mut self.requests);
        let was_stopping = requests.stop.is_some();
        tell(&mut self.listeners, "after_save", |listener| {
            if listener.after_save(session, session.step)? && may_stop {
                requests.stop(Stop::decided("a listener of checkpoints asked for it"));
            }
            Ok(())
        })?;
        // No checkpoint records that a listener requested the end. If the process dies now, the
        // listener is called again.
        match &mut self.unfinished {
            Some(run) if was_stopping || self.requests.stop.is_none() => run.told(self.session.step),
            _ => Ok(()),
        }
    }
}

/// Calls a method of every listener.
fn tell<'a>(
    listeners: &mut [Box<dyn CheckpointListener + 'a>],
    phase: &str,
    mut call: impl FnMut(&mut (dyn CheckpointListener + 'a)) -> Result<()>,
) -> Result<()> {
    let place = || format!("in {phase} of a listener of checkpoints");
    listeners.iter_mut().try_for_each(|listener| call(&mut **listener).map_err(|e| e.context(place())))
}

/// Returns an error, so that the training program ends too and its user learns how to resume.
fn interrupted(signal: Signal, finished: &Finished, model_dir: &Path) -> Error {
    let message = format!("training was interrupted by {signal} at step {}", finished.global_step);
    Error::new(ErrorKind::Interrupted, message)
        .help(format!("the progress is saved in {}; run the program again to resume from there", model_dir.display()))
}

/// Writes the graph for people and TensorBoard. A graph with custom ops has no form that other
/// programs can read.
fn write_graph(
    session: &TrainSession,
    fetches: &[Value],
    events: &mut EventWriter,
    estimator: &Estimator,
) -> Result<()> {
    match estimand_tf::graph_def::graph_def(session.body(), fetches) {
        Ok(graph) => {
            if estimator.config.checkpoint_save_graph_def {
                let path = estimator.model_dir.join("graph.pbtxt");
                estimand_checkpoint::write_text(&path, &graph.to_text())?;
            }
            events.graph(&graph)
        }
        Err(error) => {
            info!("The graph is not written: {}", error.message());
            Ok(())
        }
    }
}
