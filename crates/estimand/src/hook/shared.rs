//! Hooks and listeners that several runs use, one run after the other.

use std::cell::RefCell;
use std::rc::Rc;

use estimand_checkpoint::BundleReader;
use estimand_tensor::{Array, Result};

use super::{BeginContext, CheckpointListener, Hook, HookContext};
use crate::session::TrainSession;

/// A hook that each run gets a handle to.
#[derive(Clone)]
pub(crate) struct SharedHook<'a> {
    /// A copy: a name cannot be borrowed from within the cell.
    name: String,
    hook: Rc<RefCell<Box<dyn Hook + 'a>>>,
}

impl<'a> SharedHook<'a> {
    pub(crate) fn new(hook: impl Hook + 'a) -> SharedHook<'a> {
        SharedHook { name: hook.name().to_string(), hook: Rc::new(RefCell::new(Box::new(hook))) }
    }
}

impl Hook for SharedHook<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn begin(&mut self, cx: &mut BeginContext<'_>) -> Result<()> {
        self.hook.borrow_mut().begin(cx)
    }

    fn after_create_session(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.hook.borrow_mut().after_create_session(cx)
    }

    fn before_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.hook.borrow_mut().before_run(cx)
    }

    fn after_run(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.hook.borrow_mut().after_run(cx)
    }

    fn before_save(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.hook.borrow_mut().before_save(cx)
    }

    fn end(&mut self, cx: &mut HookContext<'_>) -> Result<()> {
        self.hook.borrow_mut().end(cx)
    }

    fn state(&self) -> Option<Vec<u8>> {
        self.hook.borrow().state()
    }

    fn restore(&mut self, state: &[u8]) -> Result<()> {
        self.hook.borrow_mut().restore(state)
    }

    fn entries(&self) -> Result<Vec<(String, Array)>> {
        self.hook.borrow().entries()
    }

    fn restore_entries(&mut self, checkpoint: &BundleReader) -> Result<()> {
        self.hook.borrow_mut().restore_entries(checkpoint)
    }

    fn saves_checkpoints(&self) -> bool {
        self.hook.borrow().saves_checkpoints()
    }
}

/// A listener that each run gets a handle to.
#[derive(Clone)]
pub(crate) struct SharedListener<'a>(Rc<RefCell<dyn CheckpointListener + 'a>>);

impl<'a> SharedListener<'a> {
    pub(crate) fn new(listener: impl CheckpointListener + 'a) -> SharedListener<'a> {
        SharedListener(Rc::new(RefCell::new(listener)))
    }
}

impl CheckpointListener for SharedListener<'_> {
    fn begin(&mut self) -> Result<()> {
        self.0.borrow_mut().begin()
    }

    fn before_save(&mut self, session: &TrainSession, step: u64) -> Result<()> {
        self.0.borrow_mut().before_save(session, step)
    }

    fn after_save(&mut self, session: &TrainSession, step: u64) -> Result<bool> {
        self.0.borrow_mut().after_save(session, step)
    }

    fn end(&mut self, session: &TrainSession, step: u64) -> Result<()> {
        self.0.borrow_mut().end(session, step)
    }
}
