//! `EvalSpec`: the input and the settings of an evaluation.

use std::path::PathBuf;

use estimand_data::Dataset;
use estimand_tensor::{Error, Result};

use super::Metrics;
use crate::criterion::{Criterion, Direction};
use crate::hook::Hook;
use crate::input_fn::InputFn;
use crate::model_folder::Which;
use crate::{EarlyStopping, Every, Exporter};

/// The input and the settings of an evaluation.
///
/// A [`Dataset`] or a function of an [`InputFnContext`](crate::InputFnContext) converts to it: the
/// whole input is then evaluated.
#[must_use]
pub struct EvalSpec<'a> {
    pub(crate) input: Box<dyn InputFn + 'a>,
    pub(crate) steps: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) checkpoint: Which,
    pub(crate) hooks: Vec<Box<dyn Hook + 'a>>,
    pub(crate) exporters: Vec<Box<dyn Exporter + 'a>>,
    pub(crate) start_delay_secs: Option<f64>,
    pub(crate) throttle_secs: Option<f64>,
    pub(crate) every: Option<Every>,
    pub(crate) early_stopping: Option<EarlyStopping>,
    pub(crate) criterion: Option<Criterion>,
}

impl<'a> EvalSpec<'a> {
    /// Evaluates on all of an input.
    pub fn new(input: impl InputFn + 'a) -> EvalSpec<'a> {
        EvalSpec {
            input: Box::new(input),
            steps: None,
            name: None,
            checkpoint: Which::Newest,
            hooks: Vec::new(),
            exporters: Vec::new(),
            start_delay_secs: None,
            throttle_secs: None,
            every: None,
            early_stopping: None,
            criterion: None,
        }
    }

    /// Evaluates on the first `n` batches. By default, on all.
    pub fn steps(mut self, n: u64) -> EvalSpec<'a> {
        self.steps = Some(n);
        self
    }

    /// Sets a name, for evaluations on several inputs. TensorBoard shows each name separately.
    pub fn name(mut self, name: impl Into<String>) -> EvalSpec<'a> {
        self.name = Some(name.into());
        self
    }

    /// Sets the checkpoint for [`evaluate`](crate::Estimator::evaluate). By default, the newest.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> EvalSpec<'a> {
        self.checkpoint = Which::At(path.into());
        self
    }

    /// Evaluates the checkpoint of the best evaluation during training. If a training had several
    /// evaluations, it is that of the first. By default, [`evaluate`](crate::Estimator::evaluate)
    /// uses the newest checkpoint.
    pub fn best(mut self) -> EvalSpec<'a> {
        self.checkpoint = Which::Best(None);
        self
    }

    /// Evaluates the checkpoint of the best evaluation that has this name.
    pub fn best_of(mut self, evaluation: impl Into<String>) -> EvalSpec<'a> {
        self.checkpoint = Which::Best(Some(evaluation.into()));
        self
    }

    /// Adds a hook.
    pub fn hook(mut self, hook: impl Hook + 'a) -> EvalSpec<'a> {
        self.hooks.push(Box::new(hook));
        self
    }

    /// Adds an exporter. It is called after each evaluation during a training, once a checkpoint of
    /// that step exists.
    pub fn exporter(mut self, exporter: impl Exporter + 'a) -> EvalSpec<'a> {
        self.exporters.push(Box::new(exporter));
        self
    }

    /// Sets how long an evaluator process waits before it starts. By default, 120 seconds.
    pub fn start_delay_secs(mut self, secs: f64) -> EvalSpec<'a> {
        self.start_delay_secs = Some(secs);
        self
    }

    /// Skips the evaluation of a checkpoint if the previous evaluation began less than this number
    /// of seconds ago. By default, 600.
    pub fn throttle_secs(mut self, secs: f64) -> EvalSpec<'a> {
        self.throttle_secs = Some(secs);
        self
    }

    /// Sets how often a training is evaluated. By default, at each checkpoint.
    pub fn every(mut self, every: Every) -> EvalSpec<'a> {
        self.every = Some(every);
        self
    }

    /// Ends a training when a metric of this evaluation stops improving. By default, training
    /// continues.
    pub fn early_stopping(mut self, early_stopping: EarlyStopping) -> EvalSpec<'a> {
        self.early_stopping = Some(early_stopping);
        self
    }

    /// Chooses the evaluation with the highest value of a metric as the best. By default, the
    /// metric of early stopping decides, or else the lowest `loss`.
    pub fn highest_is_best(mut self, metric: impl Into<String>) -> EvalSpec<'a> {
        self.criterion = Some(Criterion::Metric { name: metric.into(), direction: Direction::Higher });
        self
    }

    /// Chooses the evaluation with the lowest value of a metric as the best.
    pub fn lowest_is_best(mut self, metric: impl Into<String>) -> EvalSpec<'a> {
        self.criterion = Some(Criterion::Metric { name: metric.into(), direction: Direction::Lower });
        self
    }

    /// Chooses the best evaluation with a function of (the best so far, the new one) that returns
    /// whether the new one is better.
    pub fn is_better(mut self, is_better: impl Fn(&Metrics, &Metrics) -> bool + 'static) -> EvalSpec<'a> {
        self.criterion = Some(Criterion::Function(Box::new(is_better)));
        self
    }

    fn check(&self) -> Result<()> {
        match (self.steps, self.name.as_deref()) {
            (Some(0), _) => Err(Error::config("the evaluation has 0 steps; expected at least 1")),
            (_, Some(name)) if name.is_empty() || name.contains(['/', '\\']) => Err(Error::config(format!(
                "the evaluation is named `{name}`; expected a name that is not empty and has no slashes"
            ))
            .help("choose another name: the results go to the folder eval_<name>")),
            _ => Ok(()),
        }
    }

    /// Checks that a single evaluation supports all settings.
    pub(crate) fn check_alone(&self) -> Result<()> {
        let asked = [
            (!self.exporters.is_empty(), "exporters"),
            (self.start_delay_secs.is_some(), "start_delay_secs"),
            (self.throttle_secs.is_some(), "throttle_secs"),
            (self.every.is_some(), "every"),
            (self.early_stopping.is_some(), "early_stopping"),
            (self.criterion.is_some(), "a choice of the best evaluation"),
        ];
        if let Some((_, option)) = asked.iter().find(|(asked, _)| *asked) {
            return Err(Error::config(format!("evaluate runs one evaluation and does not support {option}"))
                .help("call train_and_evaluate, which evaluates during training"));
        }
        self.check()
    }

    /// Checks that evaluations during training support all settings.
    pub(crate) fn check_scheduled(&self) -> Result<()> {
        self.check()?;
        if self.checkpoint != Which::Newest {
            return Err(Error::config(
                "train_and_evaluate was given an EvalSpec with a checkpoint, but it evaluates the model in training",
            )
            .help("call evaluate to evaluate one checkpoint"));
        }
        if let Some(every) = self.every {
            every.check("an evaluation")?;
            if every.is_never() {
                return Err(Error::config("`every` of an evaluation is never, so the evaluation would never run")
                    .help("remove the evaluation, or remove .every(..)"));
            }
            if self.throttle_secs.is_some() {
                return Err(Error::config("an evaluation has both `every` and throttle_secs; expected one of them")
                    .help("remove one of the two"));
            }
        }
        for (what, secs) in [("throttle_secs", self.throttle_secs), ("start_delay_secs", self.start_delay_secs)] {
            if let Some(secs) = secs.filter(|&secs| !(secs >= 0.0 && secs.is_finite())) {
                return Err(Error::config(format!("{what} is {secs}; expected a number from 0")));
            }
        }
        Ok(())
    }
}

impl From<Dataset> for EvalSpec<'_> {
    fn from(data: Dataset) -> Self {
        EvalSpec::new(data)
    }
}

impl<'a> From<&'a Dataset> for EvalSpec<'a> {
    fn from(data: &'a Dataset) -> Self {
        EvalSpec::new(data)
    }
}
