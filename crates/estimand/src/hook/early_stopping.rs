//! Ends training when a function, which is called periodically, decides so. `stop_if.rs` decides by
//! metrics of evaluations.

use estimand_tensor::{Error, Result};
use tracing::info;

use super::{BeginContext, Hook, HookContext};
use crate::{Every, Timer};

/// Ends training when a function decides so: TensorFlow's `make_early_stopping_hook`.
///
/// The function returns the reason to end training, or `None`. With a period in steps, it is called
/// after step 1 and then once per period, also in a resumed run (steps 1, 101, 201 for
/// `Every::Steps(100)`). With a period in seconds, it is called after the first step of a run and
/// then once per period. The checkpoint stores the step of the decision. A run that is started
/// after the decision continues training and logs this.
///
/// ```no_run
/// use estimand::hook::EarlyStoppingHook;
/// use estimand::prelude::*;
///
/// # fn train(estimator: &Estimator, data: &Dataset) -> Result<()> {
/// let hook = EarlyStoppingHook::new(|cx| Ok(cx.loss().filter(|&loss| loss < 0.01).map(|loss| format!("the loss is {loss}"))));
/// estimator.train(TrainSpec::new(data).hook(hook.every(Every::Steps(100))))?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct EarlyStoppingHook<F> {
    should_stop: F,
    decision: Decision,
}

impl<F: FnMut(&HookContext<'_>) -> Result<Option<String>>> EarlyStoppingHook<F> {
    /// Calls a function every 60 seconds.
    pub fn new(should_stop: F) -> EarlyStoppingHook<F> {
        EarlyStoppingHook { should_stop, decision: Decision::default() }
    }

    /// Sets how often the function is called. By default, every 60 seconds.
    pub fn every(mut self, every: Every) -> EarlyStoppingHook<F> {
        self.decision = Decision::every(every);
        self
    }
}

impl<F: FnMut(&HookContext<'_>) -> Result<Option<String>>> Hook for EarlyStoppingHook<F> {
    fn name(&self) -> &str {
        "early_stopping"
    }

    fn begin(&mut self, _cx: &mut BeginContext<'_>) -> Result<()> {
        self.decision.check(self.name())
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let should_stop = &mut self.should_stop;
        self.decision.ask(cx, |cx, _| should_stop(cx))
    }

    fn state(&self) -> Option<Vec<u8>> {
        self.decision.state()
    }

    fn restore(&mut self, state: &[u8]) -> Result<()> {
        self.decision.restore(state)
    }
}

/// A decision to stop: its timer, and the step at which it was made.
pub(super) struct Decision {
    every: Every,
    timer: Timer,
    made_at: Option<u64>,
}

impl Default for Decision {
    /// The default period is TensorFlow's.
    fn default() -> Decision {
        Decision::every(Every::Secs(60.0))
    }
}

impl Decision {
    pub(super) fn every(every: Every) -> Decision {
        Decision { every, timer: Timer::counted_from(1, every), made_at: None }
    }

    /// Returns an error if the period is never.
    pub(super) fn check(&self, hook: &str) -> Result<()> {
        self.every.check(&format!("hook `{hook}`"))?;
        match self.every.is_never() {
            true => {
                Err(Error::config(format!("the period of hook `{hook}` is never, so it could never stop the training"))
                    .help("set another period with .every(..), or leave it out for every 60 seconds"))
            }
            false => Ok(()),
        }
    }

    /// Calls `why` if it is due, with the step of an earlier decision.
    #[inline]
    pub(super) fn ask(
        &mut self,
        cx: &mut HookContext<'_>,
        why: impl FnOnce(&HookContext<'_>, Option<u64>) -> Result<Option<String>>,
    ) -> Result<()> {
        let step = cx.global_step();
        if !self.timer.is_due(step) {
            return Ok(());
        }
        self.timer.trigger(step);
        if let Some(reason) = why(cx, self.made_at)? {
            info!("Requesting early stopping at global step {step}: {reason}");
            self.made_at = Some(step);
            cx.request_stop(format!("early stopping: {reason}"));
        }
        Ok(())
    }

    pub(super) fn state(&self) -> Option<Vec<u8>> {
        self.made_at.map(|step| step.to_le_bytes().to_vec())
    }

    /// TF: there the checkpoint has a flag without its step, at which all workers but the chief
    /// would stop at once. (case 113)
    pub(super) fn restore(&mut self, state: &[u8]) -> Result<()> {
        let bytes = <[u8; 8]>::try_from(state).map_err(|_| {
            Error::data(format!("the step at which early stopping was decided has {} bytes; expected 8", state.len()))
        })?;
        let step = u64::from_le_bytes(bytes);
        info!("Early stopping was decided at step {step}. Training continues.");
        self.made_at = Some(step);
        Ok(())
    }
}
