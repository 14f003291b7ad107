//! Continuous evaluation: waits for the checkpoints of another process and evaluates them.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use estimand_tensor::{Result, warn};
use tracing::info;

use super::{Experiment, ExperimentResult, Lent, wait};
use crate::Metrics;
use crate::signal::Guard;

/// The time between two warnings that there is no new checkpoint.
const WARN: Duration = Duration::from_secs(600);
/// The shortest time between two searches for a checkpoint.
const POLL_SECS: f64 = 0.05;

/// The results that a predicate decides by.
#[derive(Clone, Debug, PartialEq)]
pub struct LastEvaluation {
    /// The results.
    pub metrics: Metrics,
    /// The checkpoint that was evaluated; `None` if no checkpoints are saved.
    pub checkpoint: Option<PathBuf>,
}

/// A function that decides whether to go on.
type Predicate<'f> = Box<dyn FnMut(Option<&LastEvaluation>) -> bool + 'f>;

/// The options of [`continuous_eval`](Experiment::continuous_eval).
#[derive(Default)]
#[must_use]
pub struct ContinuousEval<'f> {
    delay_secs: Option<f64>,
    throttle_delay_secs: Option<f64>,
    evaluates_again: bool,
    predicate: Option<Predicate<'f>>,
    name: Option<String>,
}

impl<'f> ContinuousEval<'f> {
    /// Evaluates each checkpoint once, with the delays of the experiment.
    pub fn new() -> ContinuousEval<'f> {
        ContinuousEval::default()
    }

    /// Sets the delay before the first evaluation. By default, the experiment's `eval_delay_secs`.
    pub fn delay_secs(mut self, secs: f64) -> ContinuousEval<'f> {
        self.delay_secs = Some(secs);
        self
    }

    /// Sets the shortest time between the starts of two evaluations. By default, the experiment's
    /// `continuous_eval_throttle_secs`.
    pub fn throttle_delay_secs(mut self, secs: f64) -> ContinuousEval<'f> {
        self.throttle_delay_secs = Some(secs);
        self
    }

    /// Evaluates the newest checkpoint again if there is no newer one
    /// (`evaluate_checkpoint_only_once=False`). By default, it waits.
    pub fn evaluate_again(mut self) -> ContinuousEval<'f> {
        self.evaluates_again = true;
        self
    }

    /// Goes on while this returns true. It is called before each search for a checkpoint with the
    /// last evaluation: `None` before the first, and after a search without a new checkpoint. By
    /// default, it always goes on.
    pub fn predicate(mut self, predicate: impl FnMut(Option<&LastEvaluation>) -> bool + 'f) -> ContinuousEval<'f> {
        self.predicate = Some(Box::new(predicate));
        self
    }

    /// Sets the name of the evaluation, whose results go to `eval_<name>`. By default,
    /// `continuous`, or `continuous_on_train_data`.
    pub fn name(mut self, name: impl Into<String>) -> ContinuousEval<'f> {
        self.name = Some(name.into());
        self
    }
}

impl fmt::Debug for ContinuousEval<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContinuousEval")
            .field("delay_secs", &self.delay_secs)
            .field("throttle_delay_secs", &self.throttle_delay_secs)
            .field("evaluates_again", &self.evaluates_again)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Experiment<'_> {
    /// Evaluates and exports each new checkpoint of the model folder, until that of `train_steps`.
    ///
    /// Another process trains. Without `train_steps` and without a predicate, only a signal ends
    /// it.
    pub fn continuous_eval(&mut self, options: ContinuousEval<'_>) -> Result<ExperimentResult> {
        self.evaluate_continuously(Lent(&*self.eval_input), "continuous", options, true)
    }

    /// The same on the training input, without exports.
    ///
    /// An input function is called with [`Mode::Eval`](estimand_tensor::Mode::Eval), as in
    /// TensorFlow. If the training input has no end, `eval_steps` must be a number.
    pub fn continuous_eval_on_train_data(&mut self, options: ContinuousEval<'_>) -> Result<ExperimentResult> {
        self.evaluate_continuously(Lent(&*self.train_input), "continuous_on_train_data", options, false)
    }

    fn evaluate_continuously(
        &self,
        input: Lent<'_>,
        name: &str,
        mut options: ContinuousEval<'_>,
        exports: bool,
    ) -> Result<ExperimentResult> {
        self.check()?;
        let delay = options.delay_secs.unwrap_or(self.eval_delay_secs);
        let throttle = options.throttle_delay_secs.unwrap_or(self.continuous_eval_throttle_secs);
        wait::check("delay_secs", delay)?;
        wait::check("throttle_delay_secs", throttle)?;
        let name = options.name.as_deref().unwrap_or(name);
        let signals = Guard::install()?;
        if delay > 0.0 {
            info!("Waiting {delay} secs before starting eval.");
            self.wait.wait(delay)?;
        }
        let (mut result, mut last) = (ExperimentResult::default(), None);
        let (mut previous, mut warned): (Option<PathBuf>, Option<Instant>) = (None, None);
        while options.predicate.as_mut().is_none_or(|goes_on| goes_on(last.as_ref())) {
            if let Some(LastEvaluation { metrics, .. }) = last.as_ref().filter(|last| self.is_trained(&last.metrics)) {
                let (step, end) = (metrics.global_step(), self.train_steps.unwrap_or_default());
                info!("Exiting continuous eval, global_step={step} >= train_step={end}");
                break;
            }
            wait::interrupted(&signals)?;
            let start = Instant::now();
            let newest = self.estimator.latest_checkpoint()?;
            let is_old = !options.evaluates_again && newest == previous;
            last = match newest.clone().filter(|_| !is_old) {
                None => None,
                Some(path) => match self.evaluate_input(input, Some(name), Some(&path)) {
                    // The trainer has meanwhile written other checkpoints and removed this one.
                    Err(_) if !PathBuf::from(format!("{}.index", path.display())).exists() => continue,
                    metrics => Some(LastEvaluation { metrics: metrics?, checkpoint: Some(path) }),
                },
            };
            match &last {
                Some(LastEvaluation { metrics, checkpoint }) => {
                    result.metrics = Some(metrics.clone());
                    if exports {
                        result.exports = self.export(metrics, checkpoint.as_deref())?;
                    }
                    (previous, warned) = (newest, None);
                }
                None if warned.is_none_or(|warned| warned.elapsed() > WARN) => {
                    warn!("{}", if newest.is_none() { NOT_TRAINED } else { NO_NEW });
                    warned = Some(Instant::now());
                }
                None => {}
            }
            let throttle = if last.is_some() { throttle } else { throttle.max(POLL_SECS) };
            let rest = throttle - start.elapsed().as_secs_f64();
            if rest > 0.0 {
                if throttle > POLL_SECS {
                    info!("Waiting {rest} secs before starting next eval run.");
                }
                self.wait.wait(rest)?;
            }
        }
        Ok(result)
    }
}

const NOT_TRAINED: &str = "Estimator is not fitted yet. Will start an evaluation when a checkpoint is ready.";
const NO_NEW: &str = "No new checkpoint ready for evaluation.";
