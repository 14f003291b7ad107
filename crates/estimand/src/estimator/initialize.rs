//! Initial values of a model whose folder has no checkpoint.

use estimand_tensor::{Array, Result};

use super::Estimator;
use crate::session::TrainSession;

impl Estimator {
    /// Sets the initial values of the model function, and then those of the warm start.
    pub(super) fn initialize(&self, session: &mut TrainSession, initial_values: Vec<(String, Array)>) -> Result<()> {
        session.place()?;
        for (name, value) in initial_values {
            session.set_value(&name, &value).map_err(|e| e.context("in the initial values of the model"))?;
        }
        match &self.warm_start_from {
            Some(settings) => settings.apply(session),
            None => Ok(()),
        }
    }
}
