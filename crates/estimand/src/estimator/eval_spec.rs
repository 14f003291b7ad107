//! What to evaluate on.

use std::path::PathBuf;

use estimand_data::Dataset;
use estimand_tensor::{Error, Result};

use crate::hook::Hook;
use crate::input_fn::InputFn;

/// What to evaluate on.
///
/// A [`Dataset`] or a function of an [`InputFnContext`](crate::InputFnContext) is one by itself: all of it is evaluated.
pub struct EvalSpec<'a> {
    pub(crate) input: Box<dyn InputFn + 'a>,
    pub(crate) steps: Option<u64>,
    pub(crate) name: Option<String>,
    pub(crate) checkpoint: Option<PathBuf>,
    pub(crate) hooks: Vec<Box<dyn Hook + 'a>>,
}

impl<'a> EvalSpec<'a> {
    /// Evaluates on all of an input.
    pub fn new(input: impl InputFn + 'a) -> EvalSpec<'a> {
        EvalSpec { input: Box::new(input), steps: None, name: None, checkpoint: None, hooks: Vec::new() }
    }

    /// Evaluates on the first so many batches. By default, on all.
    pub fn steps(mut self, n: u64) -> EvalSpec<'a> {
        self.steps = Some(n);
        self
    }

    /// A name, for evaluations on several inputs: TensorBoard shows each on its own.
    pub fn name(mut self, name: impl Into<String>) -> EvalSpec<'a> {
        self.name = Some(name.into());
        self
    }

    /// The checkpoint to evaluate. By default, the newest.
    pub fn checkpoint(mut self, path: impl Into<PathBuf>) -> EvalSpec<'a> {
        self.checkpoint = Some(path.into());
        self
    }

    /// Adds a hook.
    pub fn hook(mut self, hook: impl Hook + 'a) -> EvalSpec<'a> {
        self.hooks.push(Box::new(hook));
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        match self.steps {
            Some(0) => Err(Error::config("evaluate on 0 batches; expected at least 1")),
            _ => Ok(()),
        }
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
