//! `EarlyStopping` as a callback of `fit`.

use estimand_tensor::Result;
use tracing::info;

use super::watched;
use crate::EarlyStopping;
use crate::keras::{Callback, Logs, Model};

/// Watches an entry of the logs, such as `val_loss`, after each epoch. As in Keras, it begins anew
/// with each `fit`.
///
/// With [`restore_best`](EarlyStopping::restore_best), a training that it ends gets the weights of
/// the best epoch. As in tf.keras 2.15, a training that reaches its last epoch keeps its weights.
impl Callback for EarlyStopping {
    fn on_train_begin(&mut self, _model: &mut Model) -> Result<()> {
        self.check()?;
        self.forget();
        Ok(())
    }

    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, logs: &mut Logs) -> Result<()> {
        let Some(value) = watched(logs, self.metric(), "EarlyStopping") else { return Ok(()) };
        let reason = self.update(epoch as u64, value);
        let is_best = self.best().is_some_and(|best| best.step == epoch as u64);
        if self.restores_best() && (is_best || self.best_weights().is_none()) {
            self.keep(model.get_weights()?);
        }
        // TF: the first epoch never ends a training.
        if let Some(reason) = reason.filter(|_| epoch > 0) {
            info!("Epoch {}: early stopping: {reason}", epoch + 1);
            model.stop_training();
            if let Some(weights) = self.best_weights() {
                model.set_weights(weights)?;
            }
        }
        Ok(())
    }
}
