//! Profiles steps: a trace for Chrome's viewer, and a table that compares the times with the
//! machine's peak rates.

mod chrome;
mod profile;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use estimand_tensor::Result;
use tracing::info;

pub use profile::{Profile, ProfileRow};

use super::{Hook, HookContext};
use crate::{Every, Timeline, Timer};

/// Profiles single steps. It writes `timeline-<step>.json` for chrome://tracing or Perfetto, and a
/// table at the end of the run.
///
/// As in TensorFlow, the first step of a run is not profiled, because it allocates memory. Steps
/// are counted from 0, also in a resumed run; in an evaluation, batches are counted. Steps that are
/// not profiled cost nothing extra.
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
    /// The step of the next run; in an evaluation, each batch counts as a step.
    next_step: Option<u64>,
    /// A profiled step; the time after it ends when the next step begins.
    pending: Option<(u64, Timeline)>,
    profile: ProfileHandle,
}

/// A handle to the profile of a hook, during and after its run.
#[derive(Clone, Debug, Default)]
pub struct ProfileHandle(Arc<Mutex<Profile>>);

impl ProfileHandle {
    /// Returns the measurements so far.
    pub fn get(&self) -> Profile {
        self.open().clone()
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Profile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProfilerHook {
    /// Profiles one step per period.
    pub fn every(every: Every) -> ProfilerHook {
        let profile = ProfileHandle::default();
        ProfilerHook { every, timer: Timer::new(every), output_dir: None, next_step: None, pending: None, profile }
    }

    /// Sets the folder of the traces. By default, the model folder.
    pub fn output_dir(mut self, folder: impl Into<PathBuf>) -> ProfilerHook {
        self.output_dir = Some(folder.into());
        self
    }

    /// Returns a handle to the numbers of the table, to read after the run.
    pub fn profile(&self) -> ProfileHandle {
        self.profile.clone()
    }

    /// Completes a profiled step.
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
            // TF: the first step is never profiled. TensorFlow counts periods from before that
            // step; here a training counts them from step 0.
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
