//! Scalars for TensorBoard.

use estimand_tensor::Result;

use super::{Hook, HookContext};
use crate::{Every, Timer};

/// Records the loss at the first step and every so often.
#[derive(Clone, Debug)]
pub struct SummarySaverHook {
    timer: Timer,
}

impl SummarySaverHook {
    /// Every so often.
    pub fn new(every: Every) -> SummarySaverHook {
        SummarySaverHook { timer: Timer::new(every) }
    }
}

impl Hook for SummarySaverHook {
    fn name(&self) -> &str {
        "summary_saver"
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let step = cx.global_step();
        if let Some(loss) = cx.loss().filter(|_| self.timer.is_due(step))
            && let Some(events) = cx.events()
        {
            events.scalar(step, "loss", loss)?;
            self.timer.trigger(step);
        }
        Ok(())
    }
}
