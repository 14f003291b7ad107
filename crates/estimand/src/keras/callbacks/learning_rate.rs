//! Callbacks that change the learning rate between epochs.

use estimand_tensor::{Error, Result};
use tracing::info;

use super::watched;
use crate::criterion::Direction;
use crate::keras::{Callback, Logs, Model};

/// Sets the learning rate before each epoch, to a function of the epoch and of the current rate.
/// The rate joins the logs as `lr`.
///
/// ```
/// use estimand::keras::{Compile, Fit, LearningRateScheduler, Sequential};
/// use estimand::prelude::*;
///
/// let (x, y) = (Array::from([0f32, 1.0]), Array::from([1f32, 3.0]));
/// let mut model = Sequential::new().input([1]).add(Dense::new(1)).build()?;
/// model.compile(Compile::new(Optimizer::keras(Sgd::default(), 0.5), "mse"))?;
/// let halved = LearningRateScheduler::new(|epoch, rate| if epoch == 0 { rate } else { rate / 2.0 });
/// let history = model.fit(Fit::new((&x, &y)).epochs(3).verbose(0).callback(halved))?;
/// assert_eq!(history["lr"], [0.5, 0.25, 0.125]);
/// # Ok::<(), Error>(())
/// ```
pub struct LearningRateScheduler<'a> {
    schedule: Box<dyn FnMut(usize, f64) -> f64 + 'a>,
}

impl<'a> LearningRateScheduler<'a> {
    /// The rate of an epoch, from its number and the rate before it.
    pub fn new(schedule: impl FnMut(usize, f64) -> f64 + 'a) -> LearningRateScheduler<'a> {
        LearningRateScheduler { schedule: Box::new(schedule) }
    }
}

impl Callback for LearningRateScheduler<'_> {
    fn on_epoch_begin(&mut self, model: &mut Model, epoch: usize) -> Result<()> {
        let rate = (self.schedule)(epoch, model.learning_rate()?);
        let place = |error: Error| error.context(format!("in LearningRateScheduler, at epoch {epoch}"));
        model.set_learning_rate(rate).map_err(place)
    }

    fn on_epoch_end(&mut self, model: &mut Model, _epoch: usize, logs: &mut Logs) -> Result<()> {
        logs.insert("lr".to_string(), model.learning_rate()?);
        Ok(())
    }
}

/// Lowers the learning rate when a metric has stopped improving. The rate joins the logs as `lr`.
#[derive(Clone, Debug)]
#[must_use]
pub struct ReduceLrOnPlateau {
    monitor: String,
    direction: Direction,
    factor: f64,
    patience: usize,
    min_delta: f64,
    cooldown: usize,
    min_lr: f64,
    best: f64,
    waited: usize,
    cooling: usize,
}

impl ReduceLrOnPlateau {
    /// Watches an entry of the logs that should fall, such as `val_loss`.
    pub fn lower_is_better(monitor: &str) -> ReduceLrOnPlateau {
        ReduceLrOnPlateau::new(monitor, Direction::Lower)
    }

    /// Watches an entry of the logs that should rise, such as `val_accuracy`.
    pub fn higher_is_better(monitor: &str) -> ReduceLrOnPlateau {
        ReduceLrOnPlateau::new(monitor, Direction::Higher)
    }

    fn new(monitor: &str, direction: Direction) -> ReduceLrOnPlateau {
        ReduceLrOnPlateau {
            monitor: monitor.to_string(),
            direction,
            factor: 0.1,
            patience: 10,
            min_delta: 1e-4,
            cooldown: 0,
            min_lr: 0.0,
            best: direction.worst(),
            waited: 0,
            cooling: 0,
        }
    }

    /// The factor of the new rate, below 1. By default 0.1.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// The number of epochs without an improvement before the rate falls. By default 10.
    pub fn patience(mut self, epochs: usize) -> Self {
        self.patience = epochs;
        self
    }

    /// The smallest improvement that counts. By default 0.0001.
    pub fn min_delta(mut self, delta: f64) -> Self {
        self.min_delta = delta;
        self
    }

    /// The number of epochs to wait after the rate fell. By default 0.
    pub fn cooldown(mut self, epochs: usize) -> Self {
        self.cooldown = epochs;
        self
    }

    /// The smallest rate. By default 0.
    pub fn min_lr(mut self, rate: f64) -> Self {
        self.min_lr = rate;
        self
    }

    /// Whether a value is an improvement.
    fn is_better(&self, value: f64) -> bool {
        match self.direction {
            // TF: the margin is on the side of the best value.
            Direction::Lower => value < self.best - self.min_delta,
            Direction::Higher => value > self.best + self.min_delta,
        }
    }
}

impl Callback for ReduceLrOnPlateau {
    fn on_train_begin(&mut self, _model: &mut Model) -> Result<()> {
        if !(self.factor < 1.0 && self.factor >= 0.0) {
            let text = format!("the factor of ReduceLrOnPlateau is {}; expected a number from 0 to 1", self.factor);
            return Err(Error::config(text).help("the new rate is the factor times the old one, and must be lower"));
        }
        (self.best, self.waited, self.cooling) = (self.direction.worst(), 0, 0);
        Ok(())
    }

    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, logs: &mut Logs) -> Result<()> {
        let rate = model.learning_rate()?;
        logs.insert("lr".to_string(), rate);
        let Some(value) = watched(logs, &self.monitor, "ReduceLrOnPlateau") else { return Ok(()) };
        if self.cooling > 0 {
            (self.cooling, self.waited) = (self.cooling - 1, 0);
        }
        if self.is_better(value) {
            (self.best, self.waited) = (value, 0);
        } else if self.cooling == 0 {
            self.waited += 1;
            if self.waited >= self.patience && rate > f64::from(self.min_lr as f32) {
                let rate = (rate * self.factor).max(self.min_lr);
                model.set_learning_rate(rate)?;
                info!("Epoch {}: ReduceLrOnPlateau reducing learning rate to {rate}.", epoch + 1);
                (self.cooling, self.waited) = (self.cooldown, 0);
            }
        }
        Ok(())
    }
}
