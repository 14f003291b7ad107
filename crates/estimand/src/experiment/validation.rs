//! Evaluations of checkpoints during a training: `Validation` by a number of steps, `EvaluateSaved`
//! after each checkpoint.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use estimand_tensor::{Result, warn};
use tracing::{debug, info};

use super::{Experiment, ExperimentResult};
use crate::Metrics;
use crate::hook::{CheckpointListener, Hook, HookContext};
use crate::session::TrainSession;
use crate::train_and_evaluate::is_signal;

/// TensorFlow's `ValidationMonitor`: evaluates the newest checkpoint every few steps, unless it was
/// evaluated before.
struct Validation<'b, 'a> {
    experiment: &'b Experiment<'a>,
    every: u64,
    /// The last step at which an evaluation was due.
    active: u64,
    /// Whether that evaluation has still to be done.
    is_due: bool,
    /// The step of the newest checkpoint.
    saved: Option<u64>,
    /// The step of the checkpoint that was evaluated, and the step at which it was.
    evaluated: Option<(u64, u64)>,
    /// When a new checkpoint was last looked for.
    checked: Option<Instant>,
}

impl Validation<'_, '_> {
    /// Evaluates the newest checkpoint, if that is due and there is a new one.
    fn evaluate(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.is_due) {
            return Ok(());
        }
        let (secs, step) = (self.experiment.check_interval_secs, self.active);
        if self.checked.is_some_and(|checked| checked.elapsed() < Duration::from_secs_f64(secs)) {
            debug!(
                "Skipping evaluation since less than {secs} seconds have passed since last check for a new checkpoint."
            );
            return Ok(());
        }
        self.checked = Some(Instant::now());
        let Some(saved) = self.saved else {
            debug!("Skipping evaluation since model has not been saved yet at step {step}.");
            return Ok(());
        };
        if let Some((_, then)) = self.evaluated.filter(|(evaluated, _)| *evaluated == saved) {
            debug!(
                "Skipping evaluation due to same checkpoint {} for step {step} as for step {then}.",
                checkpoint(self.experiment, saved).display()
            );
            return Ok(());
        }
        if let Some(metrics) = unless_interrupted(step, self.experiment.evaluate_checkpoint(None, None))? {
            let mut values: Vec<String> = metrics.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            values.push(format!("global_step = {}", metrics.global_step()));
            info!("Validation (step {step}): {}", values.join(", "));
            self.evaluated = Some((saved, step));
        }
        Ok(())
    }
}

/// The path of the checkpoint of a step.
fn checkpoint(experiment: &Experiment<'_>, step: u64) -> PathBuf {
    experiment.estimator.model_dir().join(format!("model.ckpt-{step}"))
}

/// Returns the results of an evaluation during the training; `None` if a signal ended it. The
/// training sees the signal too: it saves, and ends with an error that says how to resume.
fn unless_interrupted(step: u64, evaluated: Result<Metrics>) -> Result<Option<Metrics>> {
    if is_signal(&evaluated) {
        return Ok(None);
    }
    evaluated.map(Some).map_err(|e| e.context(format!("in the evaluation at step {step} of the experiment")))
}

/// The validation as a hook: counts the steps.
pub(super) struct Validate<'b, 'a>(Rc<RefCell<Validation<'b, 'a>>>);

/// The validation as a listener. It also makes the training wait until the files of a checkpoint
/// are written.
pub(super) struct Saved<'b, 'a>(Rc<RefCell<Validation<'b, 'a>>>);

/// Makes the hook and the listener of a validation.
pub(super) fn validation<'b, 'a>(experiment: &'b Experiment<'a>, every: u64) -> (Validate<'b, 'a>, Saved<'b, 'a>) {
    let shared = Rc::new(RefCell::new(Validation {
        experiment,
        every,
        active: 0,
        is_due: false,
        saved: None,
        evaluated: None,
        checked: None,
    }));
    (Validate(shared.clone()), Saved(shared))
}

impl Hook for Validate<'_, '_> {
    fn name(&self) -> &str {
        "validation_monitor"
    }

    /// TF: the checkpoint of a step is saved before that step's validation. So a validation waits
    /// until the next step begins, or until a checkpoint of its step is saved. (fixture
    /// `experiment`)
    fn before_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.0.borrow_mut().evaluate()
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let (mut validation, step) = (self.0.borrow_mut(), cx.global_step());
        if step >= validation.active.saturating_add(validation.every) {
            (validation.active, validation.is_due) = (step, true);
        }
        Ok(())
    }

    fn end(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.0.borrow_mut().evaluate()
    }
}

impl CheckpointListener for Saved<'_, '_> {
    fn after_save(&mut self, _session: &TrainSession, step: u64) -> Result<bool> {
        let mut validation = self.0.borrow_mut();
        validation.saved = Some(step);
        validation.evaluate().map(|()| false)
    }
}

/// Evaluates and exports each checkpoint: `checkpoint_and_export`.
pub(super) struct EvaluateSaved<'b, 'a> {
    experiment: &'b Experiment<'a>,
    last: Rc<RefCell<ExperimentResult>>,
    evaluated: Option<u64>,
}

impl<'b, 'a> EvaluateSaved<'b, 'a> {
    /// Makes the listener, and the place of its last results.
    pub(super) fn new(experiment: &'b Experiment<'a>) -> (EvaluateSaved<'b, 'a>, Rc<RefCell<ExperimentResult>>) {
        let last = Rc::default();
        (EvaluateSaved { experiment, last: Rc::clone(&last), evaluated: None }, last)
    }
}

impl CheckpointListener for EvaluateSaved<'_, '_> {
    fn after_save(&mut self, _session: &TrainSession, step: u64) -> Result<bool> {
        let experiment = self.experiment;
        info!("Checking for checkpoint in {}", experiment.estimator.model_dir().display());
        let path = checkpoint(experiment, step);
        if self.evaluated.replace(step) == Some(step) {
            warn!("Skipping evaluation due to same latest checkpoint {}.", path.display());
            return Ok(false);
        }
        let evaluated = experiment.evaluate_checkpoint(Some("intermediate_export"), Some(&path));
        let Some(metrics) = unless_interrupted(step, evaluated)? else { return Ok(false) };
        let exports = experiment.export(&metrics, Some(&path))?;
        *self.last.borrow_mut() = ExperimentResult { finished: None, metrics: Some(metrics), exports };
        Ok(false)
    }
}
