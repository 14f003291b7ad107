//! The values that a model begins with when its folder has no checkpoint.

use estimand_graph::Role;
use estimand_graph::checkpoint::BundleReader;
use estimand_tensor::{Array, Result};
use tracing::info;

use super::{Estimator, checkpoint_at};
use crate::session::TrainSession;

impl Estimator {
    /// Sets what the model function asked for, and then the trainable variables to what the warm start has.
    pub(super) fn initialize(&self, session: &mut TrainSession, initial_values: Vec<(String, Array)>) -> Result<()> {
        for (name, value) in initial_values {
            session.set_value(&name, &value).map_err(|e| e.context("in the initial values of the model"))?;
        }
        let Some(from) = &self.warm_start_from else { return Ok(()) };
        let prefix = checkpoint_at(from)?;
        info!("Warm-starting from {}", prefix.display());
        let reader = BundleReader::open(&prefix)?;
        let trainable = session.body().variables().iter();
        let names: Vec<String> = trainable
            .filter(|(_, spec)| spec.role == Role::Model { trainable: true })
            .map(|(_, spec)| spec.name.clone())
            .collect();
        for name in names {
            let value = reader.read(&name)?;
            session.set_value(&name, &value).map_err(|e| e.context(format!("in {}", prefix.display())))?;
        }
        Ok(())
    }
}
