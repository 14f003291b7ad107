//! The two programs of a training step: the plain step, and the full step with the extra values
//! that hooks fetch now and then.
//!
//! Both train to the same bits, because fetching a value does not change how it is computed.
//! Histograms therefore cost time only on the steps at which they are written.

use std::sync::Arc;

use estimand_engine::Compiled;
use estimand_graph::Value;
use estimand_tensor::{Array, Result};

use crate::feeding::{Binding, Fed, Placeholders};
use crate::session::TrainSession;

/// A program and the values of its last run.
struct Runnable {
    compiled: Arc<Compiled>,
    outputs: Vec<Array>,
    /// The sources of its feeds, if the prepared feeds do not fit.
    binding: Option<Binding>,
}

impl Runnable {
    fn new(session: &TrainSession, fetches: &[Value]) -> Result<Runnable> {
        Ok(Runnable { compiled: session.compile(fetches)?, outputs: Vec::new(), binding: None })
    }

    fn run(&mut self, session: &mut TrainSession, fed: &Fed) -> Result<()> {
        let Runnable { compiled, outputs, binding } = self;
        match binding {
            None => session.run(compiled, &fed.feeds, outputs),
            Some(binding) => {
                let feeds = fed.prepare_again(binding, compiled, &session.hook_feeds)?;
                session.run(compiled, &feeds, outputs)
            }
        }
    }
}

/// The programs of a training step.
pub(super) struct Programs {
    plain: Runnable,
    /// The step with the values fetched on request.
    full: Option<Runnable>,
    /// The numbers of values fetched at every step, and on request.
    n_always: usize,
    n_requested: usize,
    last_was_full: bool,
}

impl Programs {
    /// Compiles a training step that fetches `always`, and `requested` on request.
    pub(super) fn new(
        session: &TrainSession,
        always: &[Value],
        requested: &[Value],
        train_op: Value,
        placeholders: &Placeholders,
    ) -> Result<Programs> {
        let mut plain = Runnable::new(session, &[always, &[train_op]].concat())?;
        plain.binding = Some(placeholders.binding(&plain.compiled)?).filter(Binding::has_hooks);
        let full = match requested {
            [] => None,
            _ => {
                let mut full = Runnable::new(session, &[always, requested, &[train_op]].concat())?;
                let same = full.compiled.program().feeds() == plain.compiled.program().feeds();
                if !same || plain.binding.is_some() {
                    full.binding = Some(placeholders.binding(&full.compiled)?);
                }
                Some(full)
            }
        };
        Ok(Programs { plain, full, n_always: always.len(), n_requested: requested.len(), last_was_full: false })
    }

    /// Returns the program of a plain step.
    pub(super) fn plain(&self) -> &Arc<Compiled> {
        &self.plain.compiled
    }

    /// Runs one step; with `all`, also fetches the requested values.
    pub(super) fn run(&mut self, session: &mut TrainSession, fed: &Fed, all: bool) -> Result<()> {
        self.last_was_full = all && self.full.is_some();
        match self.full.as_mut().filter(|_| all) {
            None => self.plain.run(session, fed),
            Some(full) => full.run(session, fed),
        }
    }

    /// Returns the values of the last step: those of every step, and the requested ones if they
    /// were fetched.
    pub(super) fn values(&self) -> (&[Array], &[Array]) {
        match self.full.as_ref().filter(|_| self.last_was_full) {
            Some(Runnable { outputs, .. }) => {
                let (always, rest) = outputs.split_at_checked(self.n_always).unwrap_or_default();
                (always, rest.get(..self.n_requested).unwrap_or_default())
            }
            None => (self.plain.outputs.get(..self.n_always).unwrap_or_default(), &[]),
        }
    }
}
