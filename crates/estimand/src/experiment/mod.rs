//! [`Experiment`]: an estimator, its inputs, and the ways to run them.
//!
//! It is TensorFlow's `tf.contrib.learn.Experiment`, for programs that are ported from it. A new
//! program calls [`Estimator::train_and_evaluate`], which evaluates without reading checkpoints.
//!
//! `mod.rs` has the settings. `schedules.rs` has the schedules that end by themselves,
//! `continuous.rs` those that wait for checkpoints, `validation.rs` the evaluations during a
//! training, `strategies.rs` the exports, `wait.rs` the delays.
//! [`learn_runner`](crate::learn_runner) chooses a schedule.

mod continuous;
mod schedules;
mod strategies;
mod validation;
mod wait;

pub use continuous::{ContinuousEval, LastEvaluation};
pub use strategies::ExportStrategy;

use std::cell::RefCell;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use estimand_data::Dataset;
use estimand_tensor::{Error, Result};

use crate::estimator::Finished;
use crate::hook::{CheckpointListener, Hook, SharedHook, SharedListener};
use crate::input_fn::{InputFn, InputFnContext};
use crate::{Estimator, Exporter, Metrics};
use strategies::Strategies;
use wait::Wait;

/// The steps of an evaluation unless another number is set, as in TensorFlow.
const EVAL_STEPS: u64 = 100;

/// An estimator with an input to train on, an input to evaluate on, and their settings.
///
/// Each schedule is a method: [`train`](Experiment::train), [`evaluate`](Experiment::evaluate),
/// [`train_and_evaluate`](Experiment::train_and_evaluate) and others.
///
/// ```
/// use estimand::Experiment;
/// use estimand::prelude::*;
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-experiment-{}", std::process::id()));
/// let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
/// let data = Dataset::from_arrays(rows).label("y").batch(4);
/// let classifier = LinearClassifier::new([numeric_column("x").into()])
///     .config(RunConfig::new().model_dir(&folder).save_checkpoints(Every::Steps(50)))
///     .build()?;
/// let mut experiment = Experiment::new(classifier, data.repeat_forever(), &data)
///     .train_steps(200)
///     .eval_steps(None)
///     .min_eval_frequency(50);
/// let result = experiment.train_and_evaluate()?;
/// assert_eq!(result.metrics.map(|metrics| metrics.global_step()), Some(200));
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
#[must_use]
pub struct Experiment<'a> {
    estimator: Arc<Estimator>,
    train_input: Box<dyn InputFn + 'a>,
    eval_input: Box<dyn InputFn + 'a>,
    train_steps: Option<u64>,
    eval_steps: Option<u64>,
    train_hooks: Vec<SharedHook<'a>>,
    eval_hooks: Vec<SharedHook<'a>>,
    listeners: Vec<SharedListener<'a>>,
    local_eval_frequency: Option<u64>,
    eval_delay_secs: f64,
    continuous_eval_throttle_secs: f64,
    min_eval_frequency: u64,
    check_interval_secs: f64,
    delay_workers_by_global_step: bool,
    strategies: RefCell<Strategies<'a>>,
    train_steps_per_iteration: Option<u64>,
    checkpoint_and_export: bool,
    wait: Wait<'a>,
}

/// The result of a schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentResult {
    /// How the last training ended; `None` if the schedule does not train.
    pub finished: Option<Finished>,
    /// The last evaluation; `None` if there was none.
    pub metrics: Option<Metrics>,
    /// The paths that the export strategies wrote after the last evaluation.
    pub exports: Vec<PathBuf>,
}

impl<'a> Experiment<'a> {
    /// Makes an experiment of an estimator, an input to train on, and an input to evaluate on.
    ///
    /// An estimator that is used elsewhere too is passed as an `Arc`.
    pub fn new(
        estimator: impl Into<Arc<Estimator>>,
        train_input: impl InputFn + 'a,
        eval_input: impl InputFn + 'a,
    ) -> Experiment<'a> {
        Experiment {
            estimator: estimator.into(),
            train_input: Box::new(train_input),
            eval_input: Box::new(eval_input),
            train_steps: None,
            eval_steps: Some(EVAL_STEPS),
            train_hooks: Vec::new(),
            eval_hooks: Vec::new(),
            listeners: Vec::new(),
            local_eval_frequency: None,
            eval_delay_secs: 120.0,
            continuous_eval_throttle_secs: 60.0,
            min_eval_frequency: 1,
            check_interval_secs: 5.0,
            delay_workers_by_global_step: false,
            strategies: RefCell::default(),
            train_steps_per_iteration: None,
            checkpoint_and_export: false,
            wait: Wait::default(),
        }
    }

    /// Sets the global step at which training ends. By default, training ends with its input.
    pub fn train_steps(mut self, step: impl Into<Option<u64>>) -> Experiment<'a> {
        self.train_steps = step.into();
        self
    }

    /// Sets how many batches an evaluation reads; `None` reads the whole input. By default, 100.
    pub fn eval_steps(mut self, n: impl Into<Option<u64>>) -> Experiment<'a> {
        self.eval_steps = n.into();
        self
    }

    /// Adds a hook of training (TensorFlow's `train_monitors`). If a schedule trains several times,
    /// the hook takes part each time.
    pub fn train_hook(mut self, hook: impl Hook + 'a) -> Experiment<'a> {
        self.train_hooks.push(SharedHook::new(hook));
        self
    }

    /// Adds a hook of evaluations. It takes part in each, except in that of
    /// [`test`](Experiment::test).
    pub fn eval_hook(mut self, hook: impl Hook + 'a) -> Experiment<'a> {
        self.eval_hooks.push(SharedHook::new(hook));
        self
    }

    /// Adds a listener that is notified of every checkpoint of a training.
    pub fn listener(mut self, listener: impl CheckpointListener + 'a) -> Experiment<'a> {
        self.listeners.push(SharedListener::new(listener));
        self
    }

    /// Sets the frequency of evaluations in [`local_run`](Experiment::local_run), in steps. By
    /// default, `None`: it evaluates only after training.
    pub fn local_eval_frequency(mut self, steps: impl Into<Option<u64>>) -> Experiment<'a> {
        self.local_eval_frequency = steps.into();
        self
    }

    /// Sets how long [`evaluate`](Experiment::evaluate) and
    /// [`continuous_eval`](Experiment::continuous_eval) wait before they start. By default, 120
    /// seconds.
    pub fn eval_delay_secs(mut self, secs: f64) -> Experiment<'a> {
        self.eval_delay_secs = secs;
        self
    }

    /// Sets the shortest time between the starts of two continuous evaluations. By default, 60
    /// seconds.
    pub fn continuous_eval_throttle_secs(mut self, secs: f64) -> Experiment<'a> {
        self.continuous_eval_throttle_secs = secs;
        self
    }

    /// Sets the fewest steps between two evaluations of
    /// [`train_and_evaluate`](Experiment::train_and_evaluate). An evaluation needs a new
    /// checkpoint. By default, 1; 0 evaluates only after training.
    pub fn min_eval_frequency(mut self, steps: u64) -> Experiment<'a> {
        self.min_eval_frequency = steps;
        self
    }

    /// Sets the shortest time between two searches for a new checkpoint during
    /// [`train_and_evaluate`](Experiment::train_and_evaluate). By default, 5 seconds.
    pub fn check_interval_secs(mut self, secs: f64) -> Experiment<'a> {
        self.check_interval_secs = secs;
        self
    }

    /// Delays worker `i` until the global step is 8000 times the logarithm of `i + 1`. By default,
    /// each worker waits 5 seconds longer than the one before it, at most 60.
    pub fn delay_workers_by_global_step(mut self) -> Experiment<'a> {
        self.delay_workers_by_global_step = true;
        self
    }

    /// Adds an export strategy: an [`ExportStrategy`], or any [`Exporter`]. Schedules that evaluate
    /// call it afterwards, except [`evaluate`](Experiment::evaluate) and
    /// [`continuous_eval_on_train_data`](Experiment::continuous_eval_on_train_data).
    ///
    /// [`Export::is_best`](crate::Export::is_best) compares with the evaluations of this
    /// experiment. Earlier processes do not count, unlike in `Estimator::train_and_evaluate`.
    pub fn export_strategy(self, exporter: impl Exporter + 'a) -> Experiment<'a> {
        self.strategies.borrow_mut().add(Box::new(exporter));
        self
    }

    /// Sets how many steps
    /// [`continuous_train_and_eval`](Experiment::continuous_train_and_eval) trains between two
    /// evaluations. By default, a tenth of `train_steps`, or 1000.
    pub fn train_steps_per_iteration(mut self, n: impl Into<Option<u64>>) -> Experiment<'a> {
        self.train_steps_per_iteration = n.into();
        self
    }

    /// Lets [`train_and_evaluate`](Experiment::train_and_evaluate) evaluate and export after each
    /// checkpoint. `min_eval_frequency` then has no effect. By default, it evaluates by that
    /// frequency and exports after training.
    pub fn checkpoint_and_export(mut self) -> Experiment<'a> {
        self.checkpoint_and_export = true;
        self
    }

    /// Calls a function with the seconds of each delay, and goes on at once. For tests of delays.
    #[doc(hidden)]
    pub fn told_to_wait(mut self, tell: impl FnMut(f64) + 'a) -> Experiment<'a> {
        self.wait = Wait::Told(RefCell::new(Box::new(tell)));
        self
    }

    /// Adds hooks of training to those that there are.
    pub fn extend_train_hooks<H: Hook + 'a>(&mut self, hooks: impl IntoIterator<Item = H>) {
        self.train_hooks.extend(hooks.into_iter().map(SharedHook::new));
    }

    /// Replaces all export strategies. Returns the old ones.
    pub fn reset_export_strategies<E: Exporter + 'a>(
        &mut self,
        new: impl IntoIterator<Item = E>,
    ) -> Vec<Box<dyn Exporter + 'a>> {
        let new = new.into_iter().map(|exporter| Box::new(exporter) as Box<dyn Exporter + 'a>);
        self.strategies.get_mut().replace(new.collect())
    }

    /// The estimator.
    pub fn estimator(&self) -> &Estimator {
        &self.estimator
    }

    /// Checks all settings.
    fn check(&self) -> Result<()> {
        self.check_settings().map_err(|e| e.context("in the settings of the Experiment"))
    }

    fn check_settings(&self) -> Result<()> {
        for (what, steps, help) in [
            ("train_steps", self.train_steps, "None trains until the input ends"),
            ("eval_steps", self.eval_steps, "None evaluates the whole input"),
            ("train_steps_per_iteration", self.train_steps_per_iteration, "None trains a tenth of train_steps"),
        ] {
            if steps == Some(0) {
                return Err(Error::config(format!("{what} is 0; expected at least 1")).help(help));
            }
        }
        for (what, secs) in [
            ("eval_delay_secs", self.eval_delay_secs),
            ("continuous_eval_throttle_secs", self.continuous_eval_throttle_secs),
            ("check_interval_secs", self.check_interval_secs),
        ] {
            wait::check(what, secs)?;
        }
        self.strategies.borrow().check()
    }
}

impl fmt::Debug for Experiment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Experiment")
            .field("estimator", &self.estimator)
            .field("train_steps", &self.train_steps)
            .field("eval_steps", &self.eval_steps)
            .field("min_eval_frequency", &self.min_eval_frequency)
            .finish_non_exhaustive()
    }
}

/// An input of an experiment, lent to one run.
#[derive(Clone, Copy)]
struct Lent<'b>(&'b dyn InputFn);

impl InputFn for Lent<'_> {
    fn dataset(&self, cx: &InputFnContext<'_>) -> Result<Dataset> {
        self.0.dataset(cx)
    }

    fn is_same_for_all_workers(&self) -> bool {
        self.0.is_same_for_all_workers()
    }
}
