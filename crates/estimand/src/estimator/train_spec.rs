//! `TrainSpec`, the input and length of a training, and `Finished`, its result.

use std::fmt;

use estimand_data::Dataset;
use estimand_tensor::{Error, Result};

use crate::RunConfig;
use crate::hook::{CheckpointListener, Hook};
use crate::input_fn::InputFn;
use crate::unfinished::Unfinished;

/// The input and the length of a training.
///
/// A [`Dataset`] or a function of an [`InputFnContext`](crate::InputFnContext) converts to it:
/// training then ends with the input.
#[must_use]
pub struct TrainSpec<'a> {
    pub(super) input: Box<dyn InputFn + 'a>,
    pub(crate) steps: Option<u64>,
    pub(crate) max_steps: Option<u64>,
    pub(super) hooks: Vec<Box<dyn Hook + 'a>>,
    pub(super) listeners: Vec<Box<dyn CheckpointListener + 'a>>,
    pub(super) report: Option<Dataset>,
    /// Whether a hook of the model saves checkpoints, which is known when the model is built.
    pub(super) model_saves: bool,
}

impl<'a> TrainSpec<'a> {
    /// Trains on an input until it ends.
    pub fn new(input: impl InputFn + 'a) -> TrainSpec<'a> {
        let (hooks, listeners) = (Vec::new(), Vec::new());
        let input = Box::new(input);
        TrainSpec { input, steps: None, max_steps: None, hooks, listeners, report: None, model_saves: false }
    }

    /// Trains for `n` more steps. By default, until the input ends. If the run is killed before its
    /// end, the next call with the same number does the remaining steps.
    pub fn steps(mut self, n: u64) -> TrainSpec<'a> {
        self.steps = Some(n);
        self
    }

    /// Trains until the global step reaches this value. By default, until the input ends.
    pub fn max_steps(mut self, step: u64) -> TrainSpec<'a> {
        self.max_steps = Some(step);
        self
    }

    /// Adds a hook.
    pub fn hook(mut self, hook: impl Hook + 'a) -> TrainSpec<'a> {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Adds a listener that is notified of every checkpoint.
    pub fn listener(mut self, listener: impl CheckpointListener + 'a) -> TrainSpec<'a> {
        self.listeners.push(Box::new(listener));
        self
    }

    /// Adds a listener that is notified before those that were added so far.
    pub(crate) fn first_listener(mut self, listener: impl CheckpointListener + 'a) -> TrainSpec<'a> {
        self.listeners.insert(0, Box::new(listener));
        self
    }

    /// Writes the [report](crate::report) to `report.html` in the model folder, whether or not the
    /// training succeeds. The report analyses the columns of `data`: the rows of the input before
    /// `repeat` and `batch`. By default, no report is written.
    pub fn report(mut self, data: &Dataset) -> TrainSpec<'a> {
        self.report = Some(data.clone());
        self
    }

    /// Returns whether any setting requests checkpoints. A training without them, such as that of a
    /// worker beside the chief, needs no lock.
    pub(crate) fn saves_checkpoints(&self, config: &RunConfig) -> bool {
        self.model_saves
            || !config.save_checkpoints.is_never()
            || self.hooks.iter().any(|hook| hook.saves_checkpoints())
    }

    /// Returns the number of requested steps and the step at which they end, if steps are counted.
    /// If this run continues a killed one, only the remaining steps count.
    pub(super) fn count_steps(&mut self, step: u64, killed: Option<&Unfinished>) -> Option<(u64, u64)> {
        let n = self.steps?;
        match killed.and_then(|run| run.last_step(n)).filter(|&last| last >= step) {
            Some(last) => {
                (self.steps, self.max_steps) = (None, Some(last));
                Some((n, last))
            }
            None => Some((n, step.saturating_add(n))),
        }
    }

    pub(super) fn check(&self) -> Result<()> {
        match (self.steps, self.max_steps) {
            (Some(_), Some(_)) => {
                Err(Error::config("both steps and max_steps are set; expected one of them")
                    .help("remove one of the two"))
            }
            (Some(0), _) => Err(Error::config("steps is 0; expected at least 1")),
            (_, Some(0)) => Err(Error::config("max_steps is 0; expected at least 1")),
            _ => Ok(()),
        }
    }
}

impl From<Dataset> for TrainSpec<'_> {
    fn from(data: Dataset) -> Self {
        TrainSpec::new(data)
    }
}

impl<'a> From<&'a Dataset> for TrainSpec<'a> {
    fn from(data: &'a Dataset) -> Self {
        TrainSpec::new(data)
    }
}

/// The result of a training.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// The total number of training steps.
    pub global_step: u64,
    /// The number of steps of this call.
    pub n_steps: u64,
    /// The loss of the last step; `None` if no step was run.
    pub loss: Option<f32>,
    /// The reason why it ended.
    pub reason: String,
}

impl fmt::Display for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "training ended at step {}, after {} steps: {}", self.global_step, self.n_steps, self.reason)?;
        match self.loss {
            Some(loss) => write!(f, "; loss {loss}"),
            None => Ok(()),
        }
    }
}
