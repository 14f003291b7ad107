//! Callbacks: code that `fit`, `evaluate` and `predict` call between their steps, under Keras'
//! names and in Keras' order.

use estimand_tensor::Result;

use super::history::Logs;
use super::model::Model;

/// Code that runs at the events of a training, with Keras' names.
///
/// All methods do nothing by default. `model` is the model that is trained:
/// [`stop_training`](Model::stop_training) ends the training, and its weights may be read and set.
pub trait Callback {
    /// Called once before the first epoch.
    fn on_train_begin(&mut self, model: &mut Model) -> Result<()> {
        let _ = model;
        Ok(())
    }

    /// Called once after the last epoch, with the logs of the last epoch.
    fn on_train_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        let _ = (model, logs);
        Ok(())
    }

    /// Called before an epoch, counted from 0.
    fn on_epoch_begin(&mut self, model: &mut Model, epoch: usize) -> Result<()> {
        let _ = (model, epoch);
        Ok(())
    }

    /// Called after an epoch and its validation. Entries that are added to the logs reach later
    /// callbacks and the history.
    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, logs: &mut Logs) -> Result<()> {
        let _ = (model, epoch, logs);
        Ok(())
    }

    /// Called before a training step, counted from 0 in each epoch.
    fn on_train_batch_begin(&mut self, model: &mut Model, batch: usize) -> Result<()> {
        let _ = (model, batch);
        Ok(())
    }

    /// Called after a training step with the logs of the epoch so far, if
    /// [`wants_batch_logs`](Callback::wants_batch_logs).
    fn on_train_batch_end(&mut self, model: &mut Model, batch: usize, logs: &Logs) -> Result<()> {
        let _ = (model, batch, logs);
        Ok(())
    }

    /// Called before an evaluation, also that of a training's validation.
    fn on_test_begin(&mut self, model: &mut Model) -> Result<()> {
        let _ = model;
        Ok(())
    }

    /// Called after an evaluation with its results.
    fn on_test_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        let _ = (model, logs);
        Ok(())
    }

    /// Called before each batch of an evaluation.
    fn on_test_batch_begin(&mut self, model: &mut Model, batch: usize) -> Result<()> {
        let _ = (model, batch);
        Ok(())
    }

    /// Called after each batch of an evaluation, if
    /// [`wants_batch_logs`](Callback::wants_batch_logs).
    fn on_test_batch_end(&mut self, model: &mut Model, batch: usize, logs: &Logs) -> Result<()> {
        let _ = (model, batch, logs);
        Ok(())
    }

    /// Called before a prediction.
    fn on_predict_begin(&mut self, model: &mut Model) -> Result<()> {
        let _ = model;
        Ok(())
    }

    /// Called after a prediction.
    fn on_predict_end(&mut self, model: &mut Model) -> Result<()> {
        let _ = model;
        Ok(())
    }

    /// Called before each batch of a prediction.
    fn on_predict_batch_begin(&mut self, model: &mut Model, batch: usize) -> Result<()> {
        let _ = (model, batch);
        Ok(())
    }

    /// Called after each batch of a prediction.
    fn on_predict_batch_end(&mut self, model: &mut Model, batch: usize) -> Result<()> {
        let _ = (model, batch);
        Ok(())
    }

    /// Whether the ends of batches matter to it. Their logs take some time, so they are computed
    /// only if a callback wants them. By default it does not.
    fn wants_batch_logs(&self) -> bool {
        false
    }
}

/// The callbacks of a run, in order.
pub(super) struct Callbacks<'a>(Vec<Box<dyn Callback + 'a>>);

macro_rules! events {
    ($($event:ident($($argument:ident: $kind:ty),*);)*) => {$(
        pub fn $event(&mut self, model: &mut Model $(, $argument: $kind)*) -> Result<()> {
            self.0.iter_mut().try_for_each(|callback| callback.$event(model $(, $argument)*))
        }
    )*};
}

impl<'a> Callbacks<'a> {
    pub fn new(callbacks: Vec<Box<dyn Callback + 'a>>) -> Callbacks<'a> {
        Callbacks(callbacks)
    }

    pub fn want_batch_logs(&self) -> bool {
        self.0.iter().any(|callback| callback.wants_batch_logs())
    }

    events! {
        on_train_begin();
        on_train_end(logs: &Logs);
        on_epoch_begin(epoch: usize);
        on_epoch_end(epoch: usize, logs: &mut Logs);
        on_train_batch_begin(batch: usize);
        on_train_batch_end(batch: usize, logs: &Logs);
        on_test_begin();
        on_test_end(logs: &Logs);
        on_test_batch_begin(batch: usize);
        on_test_batch_end(batch: usize, logs: &Logs);
        on_predict_begin();
        on_predict_end();
        on_predict_batch_begin(batch: usize);
        on_predict_batch_end(batch: usize);
    }
}

impl Model {
    /// Ends a training after the current step, as Keras' `model.stop_training = True`.
    pub fn stop_training(&mut self) {
        self.stop_training = true;
    }
}
