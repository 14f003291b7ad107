//! Stops a training whose loss is not a number.

use estimand_tensor::{Result, warn};

use crate::keras::{Callback, Logs, Model};

/// Ends the training as soon as the loss of the epoch so far is NaN or infinite.
#[derive(Clone, Copy, Debug, Default)]
pub struct TerminateOnNan;

impl Callback for TerminateOnNan {
    fn on_train_batch_end(&mut self, model: &mut Model, batch: usize, logs: &Logs) -> Result<()> {
        if logs.get("loss").is_some_and(|loss| !loss.is_finite()) {
            warn!("Batch {batch}: Invalid loss, terminating training");
            model.stop_training();
        }
        Ok(())
    }

    fn wants_batch_logs(&self) -> bool {
        true
    }
}
