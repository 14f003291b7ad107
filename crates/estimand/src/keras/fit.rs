//! `Fit`: the arguments of a training.

use estimand_tensor::{Error, Result};

use super::callback::Callback;
use super::data::Data;
use super::verbose::Verbose;

/// The arguments of [`Model::fit`](super::Model::fit).
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
    pub(super) data: Data,
    pub(super) batch_size: Option<usize>,
    pub(super) epochs: usize,
    pub(super) initial_epoch: usize,
    pub(super) steps_per_epoch: Option<usize>,
    pub(super) shuffle: bool,
    pub(super) validation: Option<Data>,
    pub(super) validation_split: Option<f64>,
    pub(super) validation_batch_size: Option<usize>,
    pub(super) validation_freq: usize,
    class_weight: Option<Vec<(usize, f64)>>,
    pub(super) verbose: u8,
    pub(super) callbacks: Vec<Box<dyn Callback + 'a>>,
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

    pub(super) fn check(&self) -> Result<()> {
        if self.validation.is_some() && self.validation_split.is_some() {
            return Err(Error::config("validation_data and validation_split are set; expected one of them"));
        }
        if self.validation_freq == 0 || self.steps_per_epoch == Some(0) {
            return Err(Error::config("validation_freq and steps_per_epoch are at least 1; one of them is 0"));
        }
        Verbose::check(self.verbose)
    }

    /// The weights of all classes, from 0 on.
    pub(super) fn classes(&self) -> Result<Option<Vec<f32>>> {
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
