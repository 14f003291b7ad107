//! Evaluation during training, with the variables in memory.

use estimand_tensor::{Error, Result};
use serde_json::{Map, Value};

use super::{Hook, HookContext};
use crate::train_and_evaluate::{EvalSet, is_signal};
use crate::{EarlyStopping, Estimator, EvalSpec, Every};

/// Evaluates when training begins, every `n` steps counted from 0, and at its end. It needs no
/// checkpoints.
///
/// Checkpoints, if there are any, store the best evaluation and the patience count of early
/// stopping. A training that resumes from a checkpoint is not evaluated when it begins, because an
/// additional evaluation could end it at another step.
///
/// [`train_and_evaluate`](Estimator::train_and_evaluate) does more: several inputs, exporters, and
/// the best evaluation so far in the checkpoint.
///
/// ```no_run
/// use estimand::hook::InMemoryEvaluatorHook;
/// use estimand::prelude::*;
///
/// # fn example(estimator: Estimator, train: Dataset, test: Dataset) -> Result<()> {
/// let hook = InMemoryEvaluatorHook::new(&estimator, EvalSpec::new(&test).steps(10)).every_n_iter(500);
/// estimator.train(TrainSpec::new(&train).hook(hook))?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct InMemoryEvaluatorHook<'a> {
    estimator: &'a Estimator,
    /// `spec` is used until training begins; `set` afterwards.
    spec: Option<EvalSpec<'a>>,
    set: Option<EvalSet<'a>>,
    every_n_iter: u64,
    /// The state from the checkpoint, until the set is built.
    state: Option<Value>,
}

impl<'a> InMemoryEvaluatorHook<'a> {
    /// Evaluates every 100 steps. The estimator is the one in training, or another with variables
    /// of the same names.
    pub fn new(estimator: &'a Estimator, spec: impl Into<EvalSpec<'a>>) -> InMemoryEvaluatorHook<'a> {
        InMemoryEvaluatorHook { estimator, spec: Some(spec.into()), set: None, every_n_iter: 100, state: None }
    }

    /// Evaluates every `n` steps. By default, 100.
    pub fn every_n_iter(mut self, n: u64) -> InMemoryEvaluatorHook<'a> {
        self.every_n_iter = n;
        self
    }

    fn open(&self, spec: EvalSpec<'a>) -> Result<EvalSet<'a>> {
        if self.every_n_iter == 0 {
            return Err(Error::config("every_n_iter is 0; expected at least 1"));
        }
        if spec.every.is_some() || !spec.exporters.is_empty() {
            return Err(Error::config(
                "the EvalSpec of an in-memory evaluation sets `every` or exporters, which it does not support",
            )
            .help("set the period with every_n_iter; call train_and_evaluate for exporters"));
        }
        if spec.early_stopping.as_ref().is_some_and(EarlyStopping::restores_best) {
            return Err(Error::config("the early stopping of an in-memory evaluation asks for restore_best")
                .help("call train_and_evaluate, which keeps the best checkpoint"));
        }
        let spec = spec.every(Every::Steps(self.every_n_iter));
        spec.check_scheduled()?;
        EvalSet::new(self.estimator, spec)
    }

    fn evaluate(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let Some(set) = &mut self.set else { return Ok(()) };
        let stop = set.evaluate(self.estimator, cx.session(), false);
        if is_signal(&stop) {
            cx.requests.is_interrupted = true;
            return Ok(());
        }
        if let Some(reason) = stop? {
            cx.request_stop(reason);
        }
        set.record(None)?;
        if let Some(text) = set.summary() {
            cx.show(text);
        }
        Ok(())
    }
}

impl Hook for InMemoryEvaluatorHook<'_> {
    fn name(&self) -> &str {
        "in_memory_evaluator"
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if let Some(spec) = self.spec.take() {
            self.set = Some(self.open(spec)?);
        }
        match (self.state.take(), &mut self.set) {
            (Some(state), Some(set)) => {
                set.begin(cx.global_step());
                set.restore(&state)?;
                // The run before this one was interrupted during its evaluation.
                if set.is_interrupted(cx.global_step()) { self.evaluate(cx) } else { Ok(()) }
            }
            _ => self.evaluate(cx),
        }
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        match &self.set {
            Some(set) if set.is_due(cx.global_step()) => self.evaluate(cx),
            _ => Ok(()),
        }
    }

    /// The last checkpoint includes the evaluation of the last step.
    fn before_save(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if cx.is_last() { self.end(cx) } else { Ok(()) }
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        match &self.set {
            Some(set) if !set.is_evaluated(cx.global_step()) && !cx.requests.is_interrupted => self.evaluate(cx),
            _ => Ok(()),
        }
    }

    fn state(&self) -> Option<Vec<u8>> {
        let of_set = |set: &EvalSet<'_>| Value::Object(Map::from_iter([set.state()]));
        let state = self.state.clone().or_else(|| self.set.as_ref().map(of_set))?;
        Some(state.to_string().into_bytes())
    }

    fn restore(&mut self, state: &[u8]) -> Result<()> {
        self.state = Some(serde_json::from_slice(state).map_err(|e| {
            Error::data(format!("the state of in-memory evaluations in the checkpoint cannot be read: {e}"))
        })?);
        Ok(())
    }
}
