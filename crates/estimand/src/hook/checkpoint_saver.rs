//! Saves checkpoints periodically, and the interface of checkpoint listeners.

use estimand_tensor::Result;

use super::{BeginContext, Hook, HookContext, SharedListener};
use crate::session::TrainSession;
use crate::{Every, Timer};

/// A listener that is notified of every checkpoint.
///
/// Listeners are called in the order of their list. An error ends the run at once; the checkpoints
/// saved before are complete.
///
/// If a process is killed between a checkpoint and the end of `after_save`, some or all listeners
/// were not notified. The next start notifies all listeners of that checkpoint again, before its
/// first step. Every listener is therefore notified of every checkpoint at least once, and of the
/// newest perhaps twice.
pub trait CheckpointListener {
    /// Called once, before the first step.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// Called before the state of a step is written.
    fn before_save(&mut self, _session: &TrainSession, _step: u64) -> Result<()> {
        Ok(())
    }

    /// Called after the checkpoint was written; its files exist. Returning `true` ends the
    /// training, except at the first and the last checkpoint of a run.
    fn after_save(&mut self, _session: &TrainSession, _step: u64) -> Result<bool> {
        Ok(false)
    }

    /// Called after the last checkpoint.
    fn end(&mut self, _session: &TrainSession, _step: u64) -> Result<()> {
        Ok(())
    }
}

/// Saves a checkpoint when the run begins, periodically in steps or seconds, and at its end. Steps
/// are counted from 0, also in a resumed run: `Every::Steps(100)` saves steps 100, 200 and so on.
#[must_use]
pub struct CheckpointSaverHook {
    every: Every,
    timer: Timer,
    /// Shared, because several runs may use the hook, one after the other.
    listeners: Vec<SharedListener<'static>>,
}

impl CheckpointSaverHook {
    /// Makes a hook that saves with this period.
    pub fn new(every: Every) -> CheckpointSaverHook {
        CheckpointSaverHook { every, timer: Timer::counted_from(0, every), listeners: Vec::new() }
    }

    /// Adds a listener.
    pub fn listener(mut self, listener: impl CheckpointListener + 'static) -> CheckpointSaverHook {
        self.listeners.push(SharedListener::new(listener));
        self
    }
}

impl Hook for CheckpointSaverHook {
    fn name(&self) -> &str {
        "checkpoint_saver"
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        self.listeners.iter().for_each(|listener| cx.listen(Box::new(listener.clone())));
        Ok(())
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if !self.every.is_never() {
            self.timer.trigger(cx.global_step());
            cx.request_save();
        }
        Ok(())
    }

    #[inline]
    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if self.timer.is_due(cx.global_step()) {
            self.timer.trigger(cx.global_step());
            cx.request_save();
        }
        Ok(())
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        if !self.every.is_never() {
            cx.request_save();
        }
        Ok(())
    }

    fn saves_checkpoints(&self) -> bool {
        true
    }
}
