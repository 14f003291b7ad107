//! `fit`: the training loop of a model, and the history of its losses and metrics.

use std::time::Instant;

use estimand_data::{InputContext, Stream};
use estimand_tensor::{Array, Error, Mode, Result, warn};
use indexmap::IndexMap;

use super::callback::{Callback, Callbacks};
use super::data::{Batches, Data};
use super::evaluate::Evaluate;
use super::layout::Layout;
use super::model::{Model, Place};
use super::programs::{Running, StepProgram};
use super::verbose::{EpochLine, Verbose};
use crate::RunConfig;
use crate::feeding::Feeder;

/// Losses and metrics by Keras' names, such as `loss` and `val_accuracy`.
pub type Logs = IndexMap<String, f64>;

/// The arguments of [`Model::fit`].
///
/// ```
/// use estimand::keras::{Compile, Fit, Sequential};
/// use estimand::prelude::*;
///
/// let x = Array::from_vec([8, 1], (0..8).map(|i| i as f32 / 8.0).collect())?;
/// let y = Array::from_vec([8, 1], (0..8).map(|i| i as f32 / 4.0).collect())?;
/// let mut model = Sequential::new().input([1]).add(Dense::new(1)).build()?;
/// model.compile(Compile::new(Optimizer::new(Sgd::default(), 0.5), "mse").metric("mae"))?;
/// let history = model.fit(Fit::new((&x, &y)).epochs(200).batch_size(4).verbose(0))?;
/// assert!(history["loss"][199] < 1e-3);
/// assert_eq!(history.keys().collect::<Vec<_>>(), ["loss", "mae"]);
/// # Ok::<(), Error>(())
/// ```
#[must_use]
pub struct Fit<'a> {
    data: Data,
    batch_size: Option<usize>,
    epochs: usize,
    initial_epoch: usize,
    steps_per_epoch: Option<usize>,
    shuffle: bool,
    validation: Option<Data>,
    validation_split: Option<f64>,
    validation_batch_size: Option<usize>,
    validation_freq: usize,
    class_weight: Option<Vec<(usize, f64)>>,
    verbose: u8,
    callbacks: Vec<Box<dyn Callback + 'a>>,
}

impl<'a> Fit<'a> {
    /// Trains for one epoch on `(x, y)`, `(x, y, weights)` or a dataset of batches.
    pub fn new(data: impl Into<Data>) -> Fit<'a> {
        Fit {
            data: data.into(),
            batch_size: None,
            epochs: 1,
            initial_epoch: 0,
            steps_per_epoch: None,
            shuffle: true,
            validation: None,
            validation_split: None,
            validation_batch_size: None,
            validation_freq: 1,
            class_weight: None,
            verbose: 1,
            callbacks: Vec::new(),
        }
    }

    /// The number of rows in a batch of arrays. By default 32. A dataset has its own batches.
    pub fn batch_size(mut self, n: usize) -> Fit<'a> {
        self.batch_size = Some(n);
        self
    }

    /// The epoch to train up to. By default 1.
    pub fn epochs(mut self, n: usize) -> Fit<'a> {
        self.epochs = n;
        self
    }

    /// The epoch to begin with, for a training that goes on. By default 0.
    pub fn initial_epoch(mut self, epoch: usize) -> Fit<'a> {
        self.initial_epoch = epoch;
        self
    }

    /// The number of batches in an epoch. By default an epoch ends with the data. With it, the next
    /// epoch goes on where the last one stopped.
    pub fn steps_per_epoch(mut self, n: usize) -> Fit<'a> {
        self.steps_per_epoch = Some(n);
        self
    }

    /// Whether the rows of arrays get a new order in each epoch. By default they do. A dataset has
    /// its own `shuffle`.
    pub fn shuffle(mut self, shuffle: bool) -> Fit<'a> {
        self.shuffle = shuffle;
        self
    }

    /// Evaluates the model on this data after each epoch.
    pub fn validation_data(mut self, data: impl Into<Data>) -> Fit<'a> {
        self.validation = Some(data.into());
        self
    }

    /// Evaluates the model on the last rows of the arrays, this fraction of them, and trains on the
    /// others.
    pub fn validation_split(mut self, fraction: f64) -> Fit<'a> {
        self.validation_split = Some(fraction);
        self
    }

    /// The batch size of the validation. By default that of the training.
    pub fn validation_batch_size(mut self, n: usize) -> Fit<'a> {
        self.validation_batch_size = Some(n);
        self
    }

    /// Validates after every `n`-th epoch only. By default after each.
    pub fn validation_freq(mut self, n: usize) -> Fit<'a> {
        self.validation_freq = n;
        self
    }

    /// The weights of classes in the loss. As in Keras, every class from 0 on needs one.
    pub fn class_weight(mut self, weights: impl IntoIterator<Item = (usize, f64)>) -> Fit<'a> {
        self.class_weight = Some(weights.into_iter().collect());
        self
    }

    /// What is shown on stderr: 0 for nothing, 1 for a progress bar, 2 for one line an epoch. By
    /// default 1.
    pub fn verbose(mut self, level: u8) -> Fit<'a> {
        self.verbose = level;
        self
    }

    /// Adds a callback. Callbacks are called in the order they were added.
    pub fn callback(mut self, callback: impl Callback + 'a) -> Fit<'a> {
        self.callbacks.push(Box::new(callback));
        self
    }

    fn check(&self) -> Result<()> {
        if self.validation.is_some() && self.validation_split.is_some() {
            return Err(Error::config("validation_data and validation_split are set; expected one of them"));
        }
        if self.validation_freq == 0 || self.steps_per_epoch == Some(0) {
            return Err(Error::config("validation_freq and steps_per_epoch are at least 1; one of them is 0"));
        }
        Verbose::check(self.verbose)
    }

    /// The weights of all classes, from 0 on.
    fn classes(&self) -> Result<Option<Vec<f32>>> {
        let Some(given) = &self.class_weight else { return Ok(None) };
        let mut sorted = given.clone();
        sorted.sort_by_key(|(class, _)| *class);
        if sorted.is_empty() || sorted.iter().enumerate().any(|(i, (class, _))| i != *class) {
            let classes: Vec<usize> = sorted.iter().map(|(class, _)| *class).collect();
            return Err(Error::config(format!("class_weight has the classes {classes:?}; expected all from 0 on"))
                .help("give every class a weight, 1 where nothing changes"));
        }
        Ok(Some(sorted.into_iter().map(|(_, weight)| weight as f32).collect()))
    }
}

impl<D: Into<Data>> From<D> for Fit<'_> {
    fn from(data: D) -> Self {
        Fit::new(data)
    }
}

/// The losses and metrics of each epoch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// One list for each name, with one value for each epoch that has it.
    pub history: IndexMap<String, Vec<f64>>,
    /// The epochs, from 0.
    pub epoch: Vec<usize>,
}

impl History {
    /// The names, in Keras' order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.history.keys().map(String::as_str)
    }

    /// The values of a name. For an unknown name, the error suggests the nearest one.
    pub fn get(&self, name: &str) -> Result<&[f64]> {
        let found = self.history.get(name).map(Vec::as_slice);
        found.ok_or_else(|| Error::unknown("entry of the history", name, self.keys()))
    }

    pub(super) fn add(&mut self, epoch: usize, logs: &Logs) {
        self.epoch.push(epoch);
        for (name, value) in logs {
            self.history.entry(name.clone()).or_default().push(*value);
        }
    }
}

/// Panics for a name that the history does not have; [`History::get`] returns an error.
impl std::ops::Index<&str> for History {
    type Output = [f64];

    fn index(&self, name: &str) -> &[f64] {
        &self.history[name]
    }
}

/// An open stream of batches, and the program that runs on them.
pub(super) struct Source {
    pub program: StepProgram,
    feeder: Feeder,
    /// The epoch it was opened for.
    epoch: usize,
}

impl Model {
    /// Trains the model. Returns the losses and metrics of each epoch.
    ///
    /// As in Keras, the numbers of an epoch are means over its batches, while the weights change;
    /// those of the validation are measured after the epoch.
    pub fn fit<'a>(&mut self, fit: impl Into<Fit<'a>>) -> Result<History> {
        let mut fit = fit.into();
        let place = |error: Error, model: &Model| error.context(format!("in fit of model `{}`", model.name()));
        self.check_compiled().and_then(|_| fit.check()).map_err(|error| place(error, self))?;
        let mut callbacks = Callbacks::new(std::mem::take(&mut fit.callbacks));
        self.run_fit(&fit, &mut callbacks).map_err(|error| place(error, self))
    }

    fn run_fit(&mut self, fit: &Fit<'_>, callbacks: &mut Callbacks<'_>) -> Result<History> {
        let (data, validation) = match fit.validation_split {
            Some(fraction) => fit.data.split(fraction).map(|(train, rest)| (train, Some(rest)))?,
            None => (fit.data.clone(), fit.validation.clone()),
        };
        let batches = data.batches(self, fit.batch_size, fit.shuffle)?;
        if batches.dataset.is_endless() && fit.steps_per_epoch.is_none() {
            return Err(Error::config("the dataset never ends").help("set steps_per_epoch"));
        }
        let classes = fit.classes()?;
        let n_steps = fit.steps_per_epoch.or(batches.n_batches);
        self.stop_training = false;
        let mut history = History::default();
        (self.place, self.resume) = (None, None);
        callbacks.on_train_begin(self)?;
        let mut resume = self.resume.take();
        let mut kept: Option<Source> = None;
        let mut last = Logs::new();
        if let Some(resume) = resume.as_mut().filter(|resume| fit.steps_per_epoch.is_some_and(|n| resume.batch >= n)) {
            (resume.epoch, resume.batch) = (resume.epoch + 1, 0);
        }
        for epoch in resume.as_ref().map_or(fit.initial_epoch, |resume| resume.epoch)..fit.epochs {
            let resumed = resume.take().unwrap_or_default();
            let source = match kept.take() {
                Some(source) => source,
                None => {
                    let place = resumed.place.unwrap_or(Place { epoch, ..Place::default() });
                    match self.open_at(&batches, Mode::Train, place, classes.as_deref())? {
                        Some(source) => source,
                        // A backup of the last batch of an epoch: the next epoch follows.
                        None if resumed.batch > 0 => continue,
                        None => return Err(no_batches()),
                    }
                }
            };
            self.check_restored()?;
            callbacks.on_epoch_begin(self, epoch)?;
            let mut line = EpochLine::begin(fit.verbose, epoch, fit.epochs, n_steps);
            let (source, mut logs, has_ended) =
                self.train_epoch(source, resumed.batch, fit.steps_per_epoch, callbacks, &mut line)?;
            // With a number of steps, the next epoch goes on with the same stream.
            kept = source.filter(|_| fit.steps_per_epoch.is_some());
            self.place = self.place.take().filter(|_| kept.is_some());
            if let Some(data) = validation.as_ref().filter(|_| (epoch + 1).is_multiple_of(fit.validation_freq)) {
                let size = fit.validation_batch_size.or(fit.batch_size);
                let spec = Evaluate::new(data.clone()).maybe_batch_size(size);
                let found = self.evaluate_with(&spec, callbacks)?;
                logs.extend(found.into_iter().map(|(name, value)| (format!("val_{name}"), value)));
            }
            callbacks.on_epoch_end(self, epoch, &mut logs)?;
            // TF: the progress bar and the history are the last callbacks.
            line.end(&logs);
            history.add(epoch, &logs);
            last = logs;
            if has_ended {
                warn!(
                    "The data ended before steps_per_epoch * epochs steps were done: training stops at epoch {epoch}"
                );
                break;
            }
            if self.stop_training {
                break;
            }
        }
        self.finalize_averages()?;
        callbacks.on_train_end(self, &last)?;
        Ok(history)
    }

    /// Trains on the batches of one epoch. Returns the source unless it has ended, the logs, and
    /// whether it ended before the asked number of steps.
    fn train_epoch(
        &mut self,
        mut source: Source,
        first: usize,
        steps: Option<usize>,
        callbacks: &mut Callbacks<'_>,
        line: &mut EpochLine,
    ) -> Result<(Option<Source>, Logs, bool)> {
        let (mut running, mut outputs, mut batch) = (Running::default(), Vec::new(), first);
        let mut has_ended = false;
        while steps.is_none_or(|n| batch < n) && !self.stop_training {
            let Some(mut fed) = source.feeder.next()? else {
                has_ended = true;
                break;
            };
            callbacks.on_train_batch_begin(self, batch)?;
            let place = self.place.get_or_insert_default();
            place.epoch = source.epoch;
            std::mem::swap(&mut place.position, &mut fed.after);
            source.program.run(&mut self.weights, &fed.feeds, &mut outputs)?;
            running.add(&source.program, &outputs, fed.batch().n_rows())?;
            source.feeder.recycle(fed);
            if callbacks.want_batch_logs() {
                let logs: Logs = running.values(&source.program)?.into_iter().collect();
                callbacks.on_train_batch_end(self, batch, &logs)?;
            }
            batch += 1;
            line.step(batch, || running.values(&source.program).ok());
        }
        if batch == 0 && first == 0 && !self.stop_training {
            return Err(no_batches());
        }
        let logs = running.values(&source.program)?.into_iter().collect();
        Ok(((!has_ended).then_some(source), logs, has_ended && steps.is_some()))
    }

    /// Opens a stream of batches and finds the program for them.
    pub(super) fn open(
        &mut self,
        batches: &Batches,
        mode: Mode,
        epoch: usize,
        classes: Option<&[f32]>,
    ) -> Result<Source> {
        self.open_at(batches, mode, Place { epoch, ..Place::default() }, classes)?.ok_or_else(no_batches)
    }

    /// Opens a stream at a place. There is none if the place is its end.
    fn open_at(
        &mut self,
        batches: &Batches,
        mode: Mode,
        place: Place,
        classes: Option<&[f32]>,
    ) -> Result<Option<Source>> {
        let (seed, epoch) = (self.weights.seed, place.epoch);
        let cx = InputContext { mode, seed, epoch: epoch as u64, ..InputContext::default() };
        let mut stream: Box<dyn Stream> = batches.dataset.open(&cx, &place.position)?;
        let Some(first) = stream.pull(usize::MAX)? else { return Ok(None) };
        let mut layout = Layout::of(self, &first.batch, mode)?;
        layout.class_weight = classes.map(<[f32]>::to_vec);
        let program = self.program(mode, &layout)?;
        let n_threads = RunConfig::new().n_input_threads();
        let (binding, compiled) = (program.binding.clone(), program.compiled.clone());
        let feeder = Feeder::new(Some(first), stream, binding, compiled, n_threads);
        Ok(Some(Source { program, feeder, epoch }))
    }

    /// Trains on one batch. Returns its loss and metrics, before the weights changed.
    pub fn train_on_batch(&mut self, data: impl Into<Data>) -> Result<Logs> {
        self.on_batch(&data.into(), Mode::Train)
    }

    /// Computes the loss and the metrics of one batch.
    pub fn test_on_batch(&mut self, data: impl Into<Data>) -> Result<Logs> {
        self.on_batch(&data.into(), Mode::Eval)
    }

    fn on_batch(&mut self, data: &Data, mode: Mode) -> Result<Logs> {
        self.check_compiled()?;
        let (program, outputs, n_rows) = self.run_batch(data, mode)?;
        let mut running = Running::default();
        running.add(&program, &outputs, n_rows)?;
        Ok(running.values(&program)?.into_iter().collect())
    }

    /// Runs one batch of arrays.
    pub(super) fn run_batch(&mut self, data: &Data, mode: Mode) -> Result<(StepProgram, Vec<Array>, usize)> {
        let Some(batch) = data.batch(self)? else {
            return Err(Error::config("one batch was asked for, and the data is a dataset").help("pass arrays"));
        };
        let layout = Layout::of(self, &batch, mode)?;
        let program = self.program(mode, &layout)?;
        let feeds = program.compiled.prepare(program.binding.bind(&batch, &Vec::new())?)?;
        let mut outputs = Vec::new();
        program.run(&mut self.weights, &feeds, &mut outputs)?;
        Ok((program, outputs, batch.n_rows()))
    }
}

impl Source {
    pub fn next(&mut self) -> Result<Option<crate::feeding::Fed>> {
        self.feeder.next()
    }

    pub fn recycle(&mut self, fed: crate::feeding::Fed) {
        self.feeder.recycle(fed);
    }
}

fn no_batches() -> Error {
    Error::data("the data has no batches").help("pass data with at least one row")
}

/// The time since a moment, in seconds.
pub(super) fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}
