//! A callback made of closures.

use estimand_tensor::Result;

use crate::keras::{Callback, Logs, Model};

type OnModel<'a> = Box<dyn FnMut(&mut Model) -> Result<()> + 'a>;
type OnNumber<'a> = Box<dyn FnMut(&mut Model, usize) -> Result<()> + 'a>;
type OnLogs<'a> = Box<dyn FnMut(&mut Model, usize, &mut Logs) -> Result<()> + 'a>;
type OnBatchLogs<'a> = Box<dyn FnMut(&mut Model, usize, &Logs) -> Result<()> + 'a>;

/// Calls closures at the events of a training.
///
/// ```
/// use estimand::keras::{Compile, Fit, LambdaCallback, Sequential};
/// use estimand::prelude::*;
///
/// let (x, y) = (Array::from([0f32, 1.0]), Array::from([1f32, 3.0]));
/// let mut model = Sequential::new().input([1]).add(Dense::new(1)).build()?;
/// model.compile(Compile::new("sgd", "mse"))?;
/// let mut losses = Vec::new();
/// let callback = LambdaCallback::new().on_epoch_end(|_, _, logs| {
///     losses.push(logs["loss"]);
///     Ok(())
/// });
/// model.fit(Fit::new((&x, &y)).epochs(3).verbose(0).callback(callback))?;
/// assert_eq!(losses.len(), 3);
/// # Ok::<(), Error>(())
/// ```
#[derive(Default)]
#[must_use]
pub struct LambdaCallback<'a> {
    train_begin: Option<OnModel<'a>>,
    train_end: Option<OnModel<'a>>,
    epoch_begin: Option<OnNumber<'a>>,
    epoch_end: Option<OnLogs<'a>>,
    batch_begin: Option<OnNumber<'a>>,
    batch_end: Option<OnBatchLogs<'a>>,
}

impl<'a> LambdaCallback<'a> {
    /// A callback that does nothing.
    pub fn new() -> LambdaCallback<'a> {
        LambdaCallback::default()
    }

    /// Called once before the first epoch.
    pub fn on_train_begin(mut self, f: impl FnMut(&mut Model) -> Result<()> + 'a) -> Self {
        self.train_begin = Some(Box::new(f));
        self
    }

    /// Called once after the last epoch.
    pub fn on_train_end(mut self, f: impl FnMut(&mut Model) -> Result<()> + 'a) -> Self {
        self.train_end = Some(Box::new(f));
        self
    }

    /// Called before each epoch.
    pub fn on_epoch_begin(mut self, f: impl FnMut(&mut Model, usize) -> Result<()> + 'a) -> Self {
        self.epoch_begin = Some(Box::new(f));
        self
    }

    /// Called after each epoch with its logs.
    pub fn on_epoch_end(mut self, f: impl FnMut(&mut Model, usize, &mut Logs) -> Result<()> + 'a) -> Self {
        self.epoch_end = Some(Box::new(f));
        self
    }

    /// Called before each training step.
    pub fn on_train_batch_begin(mut self, f: impl FnMut(&mut Model, usize) -> Result<()> + 'a) -> Self {
        self.batch_begin = Some(Box::new(f));
        self
    }

    /// Called after each training step with the logs of the epoch so far.
    pub fn on_train_batch_end(mut self, f: impl FnMut(&mut Model, usize, &Logs) -> Result<()> + 'a) -> Self {
        self.batch_end = Some(Box::new(f));
        self
    }
}

impl Callback for LambdaCallback<'_> {
    fn on_train_begin(&mut self, model: &mut Model) -> Result<()> {
        self.train_begin.as_mut().map_or(Ok(()), |f| f(model))
    }

    fn on_train_end(&mut self, model: &mut Model, _logs: &Logs) -> Result<()> {
        self.train_end.as_mut().map_or(Ok(()), |f| f(model))
    }

    fn on_epoch_begin(&mut self, model: &mut Model, epoch: usize) -> Result<()> {
        self.epoch_begin.as_mut().map_or(Ok(()), |f| f(model, epoch))
    }

    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, logs: &mut Logs) -> Result<()> {
        self.epoch_end.as_mut().map_or(Ok(()), |f| f(model, epoch, logs))
    }

    fn on_train_batch_begin(&mut self, model: &mut Model, batch: usize) -> Result<()> {
        self.batch_begin.as_mut().map_or(Ok(()), |f| f(model, batch))
    }

    fn on_train_batch_end(&mut self, model: &mut Model, batch: usize, logs: &Logs) -> Result<()> {
        self.batch_end.as_mut().map_or(Ok(()), |f| f(model, batch, logs))
    }

    fn wants_batch_logs(&self) -> bool {
        self.batch_end.is_some()
    }
}
