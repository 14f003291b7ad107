//! Implements `Hook` for a boxed hook.

use estimand_checkpoint::BundleReader;
use estimand_tensor::{Array, Result};

use super::{BeginContext, Hook, HookContext};

impl<H: Hook + ?Sized> Hook for Box<H> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        (**self).begin(cx)
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        (**self).after_create_session(cx)
    }

    fn before_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        (**self).before_run(cx)
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        (**self).after_run(cx)
    }

    fn before_save(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        (**self).before_save(cx)
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        (**self).end(cx)
    }

    fn state(&self) -> Option<Vec<u8>> {
        (**self).state()
    }

    fn restore(&mut self, state: &[u8]) -> Result<()> {
        (**self).restore(state)
    }

    fn entries(&self) -> Result<Vec<(String, Array)>> {
        (**self).entries()
    }

    fn restore_entries(&mut self, checkpoint: &BundleReader) -> Result<()> {
        (**self).restore_entries(checkpoint)
    }

    fn saves_checkpoints(&self) -> bool {
        (**self).saves_checkpoints()
    }
}
