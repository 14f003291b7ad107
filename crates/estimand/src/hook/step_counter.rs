//! Logs the steps per second, and records them for TensorBoard.

use estimand_tensor::Result;
use tracing::info;

use super::{Hook, HookContext};
use crate::{Every, Timer};

/// Logs and records `global_step/sec`. Steps are counted from 0, also in a resumed run.
#[derive(Clone, Debug)]
pub struct StepCounterHook {
    timer: Timer,
}

impl StepCounterHook {
    /// Makes a hook with this period.
    pub fn new(every: Every) -> StepCounterHook {
        StepCounterHook { timer: Timer::counted_from(0, every) }
    }
}

impl Hook for StepCounterHook {
    fn name(&self) -> &str {
        "step_counter"
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.timer.trigger(cx.global_step());
        Ok(())
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let step = cx.global_step();
        if self.timer.is_due(step)
            && let Some(passed) = self.timer.trigger(step)
        {
            let rate = passed.steps as f64 / passed.time.as_secs_f64().max(1e-9);
            info!("global_step/sec: {rate:.4}");
            if let Some(events) = cx.events() {
                events.scalar(step, "global_step/sec", rate as f32)?;
            }
        }
        Ok(())
    }
}
