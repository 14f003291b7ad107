//! Ends training after a number of steps.

use estimand_tensor::Result;

use super::{Hook, HookContext, Stop};

/// Stops when the global step reaches a number, or a number of steps after the run began.
#[derive(Clone, Debug)]
pub struct StopAtStepHook {
    n_steps: Option<u64>,
    last_step: Option<u64>,
}

impl StopAtStepHook {
    /// Stops `n` steps after the run began.
    pub fn after_steps(n: u64) -> StopAtStepHook {
        StopAtStepHook { n_steps: Some(n), last_step: None }
    }

    /// Stops when the global step reaches `step`.
    pub fn at_step(step: u64) -> StopAtStepHook {
        StopAtStepHook { n_steps: None, last_step: Some(step) }
    }
}

impl Hook for StopAtStepHook {
    fn name(&self) -> &str {
        "stop_at_step"
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if let Some(n) = self.n_steps {
            self.last_step = Some(cx.global_step().saturating_add(n));
        }
        cx.requests.last_step = cx.requests.last_step.into_iter().chain(self.last_step).min();
        self.after_run(cx)
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if let Some(last) = self.last_step.filter(|&last| cx.global_step() >= last) {
            // The checkpoint does not store this: a later call may request more steps.
            cx.requests.stop(Stop::by_limit(format!("step {last} is reached")));
        }
        Ok(())
    }
}
