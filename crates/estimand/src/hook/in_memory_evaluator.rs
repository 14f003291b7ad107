//! Evaluation during training, of the variables as they are in memory.

use estimand_tensor::{Error, Result};

use super::{Hook, HookContext};
use crate::train_and_evaluate::{EvalSet, Occasion};
use crate::{Estimator, EvalSpec, Every};

/// Evaluates when training begins, every so many steps, and at its end. Needs no checkpoints.
///
/// [`train_and_evaluate`](Estimator::train_and_evaluate) does more: several inputs, exporters, and the best evaluation until now in
/// the checkpoint.
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
pub struct InMemoryEvaluatorHook<'a> {
    estimator: &'a Estimator,
    /// Until training begins, and from then on.
    spec: Option<EvalSpec<'a>>,
    set: Option<EvalSet<'a>>,
    every_n_iter: u64,
}

impl<'a> InMemoryEvaluatorHook<'a> {
    /// Evaluates every 100 steps. The estimator is the one that is trained, or another with variables of the same names.
    pub fn new(estimator: &'a Estimator, spec: impl Into<EvalSpec<'a>>) -> InMemoryEvaluatorHook<'a> {
        InMemoryEvaluatorHook { estimator, spec: Some(spec.into()), set: None, every_n_iter: 100 }
    }

    /// Evaluates every so many steps. By default, 100.
    pub fn every_n_iter(mut self, n: u64) -> InMemoryEvaluatorHook<'a> {
        self.every_n_iter = n;
        self
    }

    fn open(&self, spec: EvalSpec<'a>) -> Result<EvalSet<'a>> {
        if self.every_n_iter == 0 {
            return Err(Error::config("every_n_iter is 0; expected at least 1"));
        }
        if spec.every.is_some() || !spec.exporters.is_empty() {
            return Err(Error::config("evaluations in memory with a period or exporters of the spec")
                .help("say how often with every_n_iter; for exporters call train_and_evaluate"));
        }
        let spec = spec.every(Every::Steps(self.every_n_iter));
        spec.check_scheduled()?;
        EvalSet::new(self.estimator, spec)
    }

    fn evaluate(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let Some(set) = &mut self.set else { return Ok(()) };
        let occasion = Occasion { checkpoint: None, is_last_step: false };
        if let Some(reason) = set.evaluate(self.estimator, cx.session(), &occasion)? {
            cx.request_stop(reason);
        }
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
        self.evaluate(cx)
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        match &self.set {
            Some(set) if set.is_due(cx.global_step()) => self.evaluate(cx),
            _ => Ok(()),
        }
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        match &self.set {
            Some(set) if !set.is_evaluated(cx.global_step()) => self.evaluate(cx),
            _ => Ok(()),
        }
    }
}
