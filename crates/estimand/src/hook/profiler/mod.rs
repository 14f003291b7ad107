//! Where the time of steps goes: a trace for Chrome's viewer, and a table against what the machine
//! can do.

mod chrome;
mod profile;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use estimand_tensor::Result;
use tracing::info;

pub use profile::{Profile, ProfileRow};

use super::{Hook, HookContext};
use crate::{Every, Timeline, Timer};

/// Times single steps: `timeline-<step>.json` for chrome://tracing or Perfetto, and a table at the
/// end of the run.
///
/// The first step of a run is not timed, as in TensorFlow: it grows memory. Steps are counted from
/// 0, also in a run that goes on; in an evaluation, its batches are. Steps between those that are
/// timed cost nothing more than without the hook.
///
/// ```no_run
/// use estimand::hook::ProfilerHook;
/// use estimand::prelude::*;
///
/// # fn train(estimator: &Estimator, data: &Dataset) -> Result<()> {
/// let hook = ProfilerHook::every(Every::Steps(100));
/// let profile = hook.profile();
/// estimator.train(TrainSpec::new(data).max_steps(1_000).hook(hook))?;
/// println!("{}", profile.get());
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct ProfilerHook {
    every: Every,
    timer: Timer,
    output_dir: Option<PathBuf>,
    /// The step that the next run does; in an evaluation, as if each batch did one.
    next_step: Option<u64>,
    /// A step that was timed; what came after it ends when the next one begins.
    pending: Option<(u64, Timeline)>,
    profile: ProfileHandle,
}

/// The profile of a hook that is in a run, or was.
#[derive(Clone, Debug, Default)]
pub struct ProfileHandle(Arc<Mutex<Profile>>);

impl ProfileHandle {
    /// What was measured until now.
    pub fn get(&self) -> Profile {
        self.open().clone()
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Profile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProfilerHook {
    /// Times one step every so often.
    pub fn every(every: Every) -> ProfilerHook {
        let profile = ProfileHandle::default();
        ProfilerHook { every, timer: Timer::new(every), output_dir: None, next_step: None, pending: None, profile }
    }

    /// The folder of the traces. By default, the model's.
    pub fn output_dir(mut self, folder: impl Into<PathBuf>) -> ProfilerHook {
        self.output_dir = Some(folder.into());
        self
    }

    /// The numbers of the table, to look at when the run is over.
    pub fn profile(&self) -> ProfileHandle {
        self.profile.clone()
    }

    /// Closes a step that was timed.
    fn finish(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let Some((step, timeline)) = self.pending.take() else { return Ok(()) };
        let hooks = timeline.since_run();
        let mut profile = self.profile.open();
        if profile.rates().is_none() {
            profile.set_rates(cx.session().rates());
        }
        profile.add(&timeline, hooks);
        let folder = self.output_dir.as_deref().unwrap_or(cx.model_dir);
        let path = folder.join(format!("timeline-{step}.json"));
        estimand_checkpoint::write_text(&path, &chrome::trace(&timeline, hooks, step))?;
        info!("Wrote the times of step {step} to {}", path.display());
        Ok(())
    }
}

impl Hook for ProfilerHook {
    fn name(&self) -> &str {
        "profiler"
    }

    #[inline]
    fn before_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if self.pending.is_some() {
            self.finish(cx)?;
        }
        if self.next_step.is_some_and(|step| self.timer.is_due(step)) {
            cx.session().time_next_run();
        }
        Ok(())
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        let Some(step) = self.next_step else {
            // TF: the first step is never timed. Its periods are counted from before that step,
            // ours in a training from step 0.
            let done = cx.global_step();
            if cx.events().is_some() {
                self.timer = Timer::counted_from(0, self.every);
                self.timer.trigger(done);
            } else {
                self.timer.trigger(done.saturating_sub(1));
            }
            self.next_step = Some(done + 1);
            return Ok(());
        };
        if self.timer.is_due(step)
            && let Some(timeline) = cx.session().take_timeline()
        {
            self.timer.trigger(step);
            self.pending = Some((step, timeline));
        }
        self.next_step = Some(step + 1);
        Ok(())
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.finish(cx)?;
        let profile = self.profile.open();
        if profile.n_steps() > 0 {
            info!("{profile}");
        }
        Ok(())
    }
}
