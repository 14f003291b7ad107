//! Initial values that a model chooses from its input, such as the first centers of clusters.
//!
//! `Run::initialize` calls this once, before the first step of a model without a checkpoint. The
//! input is opened separately and read from its beginning, so the training still sees every batch.

use std::fmt;
use std::sync::Arc;

use estimand_engine::Compiled;
use estimand_graph::Tensor;
use estimand_tensor::{Array, Batch, Error, Result};

use crate::feeding::{Binding, HookFeeds, Placeholders};
use crate::session::TrainSession;

/// What an [`InputInitializer`] needs next.
pub(crate) enum Wants {
    /// The next batch.
    Next,
    /// The input once more, from its beginning.
    Restart,
    /// Nothing: these are the values of the variables.
    Done(Vec<(String, Array)>),
}

/// Chooses initial values of variables from batches.
pub(crate) trait InputInitializer {
    /// Called once, with the seed of the run.
    fn begin(&mut self, seed: u64);

    /// Looks at the values of one batch.
    fn batch(&mut self, values: &Array) -> Result<Wants>;

    /// Called at the end of the input.
    fn end(&mut self) -> Result<Wants>;
}

/// An input that is read from its beginning, beside the training.
pub(crate) trait FromBeginning {
    /// The next batch, or `None` at the end. Fails if a signal asks for the end.
    fn next(&mut self) -> Result<Option<Batch>>;

    /// Goes back to the beginning.
    fn restart(&mut self);
}

/// The tensor whose values are looked at, and who looks at them.
pub(crate) struct FromInput {
    pub(crate) tensor: Tensor,
    pub(crate) initializer: Box<dyn InputInitializer>,
}

impl fmt::Debug for FromInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromInput").field("tensor", &self.tensor).finish_non_exhaustive()
    }
}

/// A compiled [`FromInput`].
pub(crate) struct InputChoice {
    compiled: Arc<Compiled>,
    binding: Binding,
    initializer: Box<dyn InputInitializer>,
}

impl InputChoice {
    pub(crate) fn new(session: &TrainSession, wanted: FromInput, placeholders: &Placeholders) -> Result<InputChoice> {
        let compiled = session.compile(&[wanted.tensor.value()])?;
        let binding = placeholders.binding(&compiled)?;
        Ok(InputChoice { compiled, binding, initializer: wanted.initializer })
    }

    /// Reads batches until the initializer has chosen, and sets the variables.
    pub(crate) fn choose(mut self, session: &mut TrainSession, mut input: impl FromBeginning) -> Result<()> {
        let place = |error: Error| error.context("in the initial values that the model chooses from its input");
        self.initializer.begin(session.seed());
        loop {
            let wants = match input.next()? {
                Some(batch) => {
                    let feeds = self.compiled.prepare(self.binding.bind(&batch, &HookFeeds::new())?)?;
                    let mut outputs = Vec::new();
                    session.run(&self.compiled, &feeds, &mut outputs)?;
                    self.initializer.batch(&outputs[0])
                }
                None => self.initializer.end(),
            };
            match wants.map_err(place)? {
                Wants::Next => {}
                Wants::Restart => input.restart(),
                Wants::Done(values) => {
                    return values.iter().try_for_each(|(name, value)| session.set_value(name, value)).map_err(place);
                }
            }
        }
    }
}
