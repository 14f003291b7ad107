//! The two programs of a training step: what every step computes, and that with all that hooks want to see now and then.
//!
//! Both train to the same bits: a value that is fetched is computed as it is when nobody looks. So histograms cost the steps on
//! which they are written, and no other.

use std::sync::Arc;

use estimand_graph::{Compiled, Value};
use estimand_tensor::{Array, Result};

use crate::feeding::{Binding, Fed, Placeholders};
use crate::session::TrainSession;

/// A program and the values of its last run.
struct Runnable {
    compiled: Arc<Compiled>,
    outputs: Vec<Array>,
}

impl Runnable {
    fn new(session: &TrainSession, fetches: &[Value]) -> Result<Runnable> {
        Ok(Runnable { compiled: session.compile(fetches)?, outputs: Vec::new() })
    }
}

/// The step with what was asked for now and then.
struct Full {
    runnable: Runnable,
    /// Where its feeds come from, if they are not those of the plain step.
    binding: Option<Binding>,
}

/// A training step.
pub(super) struct Programs {
    plain: Runnable,
    full: Option<Full>,
    /// Values of every step, and of those on request.
    n_always: usize,
    n_requested: usize,
    last_was_full: bool,
}

impl Programs {
    /// A step that trains, with the values `always`, and with `requested` on request.
    pub(super) fn new(
        session: &TrainSession,
        always: &[Value],
        requested: &[Value],
        train_op: Value,
        placeholders: &Placeholders,
    ) -> Result<Programs> {
        let plain = Runnable::new(session, &[always, &[train_op]].concat())?;
        let full = match requested {
            [] => None,
            _ => {
                let runnable = Runnable::new(session, &[always, requested, &[train_op]].concat())?;
                let (wide, narrow) = (runnable.compiled.program(), plain.compiled.program());
                let same = wide.feeds() == narrow.feeds();
                let binding = (!same).then(|| placeholders.binding(&runnable.compiled)).transpose()?;
                Some(Full { runnable, binding })
            }
        };
        Ok(Programs { plain, full, n_always: always.len(), n_requested: requested.len(), last_was_full: false })
    }

    /// What every step runs.
    pub(super) fn plain(&self) -> &Arc<Compiled> {
        &self.plain.compiled
    }

    /// One step, with what was asked for now and then if `all`.
    pub(super) fn run(&mut self, session: &mut TrainSession, fed: &Fed, all: bool) -> Result<()> {
        self.last_was_full = all && self.full.is_some();
        match self.full.as_mut().filter(|_| all) {
            None => session.run(&self.plain.compiled, &fed.feeds, &mut self.plain.outputs),
            Some(Full { runnable: Runnable { compiled, outputs }, binding: None }) => {
                session.run(compiled, &fed.feeds, outputs)
            }
            Some(Full { runnable: Runnable { compiled, outputs }, binding: Some(binding) }) => {
                session.run(compiled, &fed.prepare_again(binding, compiled)?, outputs)
            }
        }
    }

    /// The values of the last step: those of every step, and those on request, if they were.
    pub(super) fn values(&self) -> (&[Array], &[Array]) {
        match self.full.as_ref().filter(|_| self.last_was_full) {
            Some(Full { runnable: Runnable { outputs, .. }, .. }) => {
                let (always, rest) = outputs.split_at_checked(self.n_always).unwrap_or_default();
                (always, rest.get(..self.n_requested).unwrap_or_default())
            }
            None => (self.plain.outputs.get(..self.n_always).unwrap_or_default(), &[]),
        }
    }
}
