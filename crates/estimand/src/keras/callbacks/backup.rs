//! Saves a training so that it can go on after a crash.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use estimand_checkpoint::{BundleReader, latest_checkpoint};
use estimand_data::Position;
use estimand_tensor::{Array, Error, Result};
use tracing::info;

use crate::keras::model::{Place, Resume};
use crate::keras::{Callback, Logs, Model};
use crate::own_entries::{OWN, is_own, own_number};
use crate::saver::{Retention, Saver};

/// Saves the training after each epoch. A `fit` that was killed goes on where it was saved, and
/// ends with the same weights, bit for bit, as one that was not.
///
/// Run the same program again: its `fit` restores the weights, the state of the optimizer, the
/// learning rate and the position in the data before the first step. The backup is removed when
/// `fit` ends. As in Keras, other callbacks begin anew.
#[must_use]
pub struct BackupAndRestore {
    folder: PathBuf,
    every_batches: Option<usize>,
    keeps: bool,
    saver: Option<Saver>,
    epoch: usize,
    n_batches: usize,
}

impl BackupAndRestore {
    /// Saves to a folder of its own.
    pub fn new(folder: impl Into<PathBuf>) -> BackupAndRestore {
        let folder = folder.into();
        BackupAndRestore { folder, every_batches: None, keeps: false, saver: None, epoch: 0, n_batches: 0 }
    }

    /// Saves after every `n` batches instead of after epochs. Losses and metrics of an epoch that
    /// was resumed count the batches from there on, as in Keras.
    pub fn every_batches(mut self, n: usize) -> BackupAndRestore {
        self.every_batches = Some(n);
        self
    }

    /// Keeps the backup when `fit` ends: `delete_checkpoint=False`. By default it is removed.
    pub fn keep(mut self) -> BackupAndRestore {
        self.keeps = true;
        self
    }

    fn files(&self) -> PathBuf {
        // TF: Keras' name of the folder.
        self.folder.join("chief")
    }

    fn save(&mut self, model: &Model, epoch: usize, batch: usize) -> Result<()> {
        let Some(saver) = &mut self.saver else { return Err(Error::internal("a backup before on_train_begin")) };
        let (values, n_bytes) = model.backup(epoch, batch)?;
        let step = model.n_steps();
        saver.save(step, n_bytes, Arc::new(BTreeSet::new()), None, |each| {
            values.into_iter().try_for_each(|(name, value)| each(name, value))
        })?;
        // A crash right after this call must find it.
        saver.wait()
    }
}

impl Callback for BackupAndRestore {
    fn on_train_begin(&mut self, model: &mut Model) -> Result<()> {
        if self.every_batches == Some(0) {
            return Err(Error::config("BackupAndRestore saves after every 0 batches; expected at least 1"));
        }
        (self.epoch, self.n_batches) = (0, 0);
        let files = self.files();
        std::fs::create_dir_all(&files).map_err(|e| Error::io(&files, "make the folder", &e))?;
        if let Some(prefix) = latest_checkpoint(&files)? {
            let reader = BundleReader::open(&prefix)?;
            let place = |error: Error| error.context(format!("in the backup {}", prefix.display()));
            model.restore_backup(&reader).map_err(place)?;
        }
        self.saver = Some(Saver::new(&files, Retention { keep_max: Some(1), ..Retention::default() })?);
        Ok(())
    }

    fn on_epoch_begin(&mut self, _model: &mut Model, epoch: usize) -> Result<()> {
        self.epoch = epoch;
        Ok(())
    }

    fn on_train_batch_end(&mut self, model: &mut Model, batch: usize, _logs: &Logs) -> Result<()> {
        let Some(every) = self.every_batches else { return Ok(()) };
        self.n_batches += 1;
        if self.n_batches < every {
            return Ok(());
        }
        self.n_batches = 0;
        self.save(model, self.epoch, batch + 1)
    }

    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, _logs: &mut Logs) -> Result<()> {
        if self.every_batches.is_some() { Ok(()) } else { self.save(model, epoch + 1, 0) }
    }

    fn on_train_end(&mut self, _model: &mut Model, _logs: &Logs) -> Result<()> {
        self.saver = None;
        let files = self.files();
        match self.keeps || !files.exists() {
            true => Ok(()),
            false => std::fs::remove_dir_all(&files).map_err(|e| Error::io(&files, "remove", &e)),
        }
    }

    fn wants_batch_logs(&self) -> bool {
        self.every_batches.is_some()
    }
}

/// The entries of a backup beside the variables.
const EPOCH: &str = "keras/epoch";
const BATCH: &str = "keras/batch";
const STEP: &str = "keras/step";
const SEED: &str = "keras/seed";
const RATE: &str = "keras/learning_rate";
const STREAM: &str = "keras/stream";
const POSITION: &str = "keras/position";

impl Model {
    /// All values of a training that goes on with this batch of this epoch, and their size.
    fn backup(&self, epoch: usize, batch: usize) -> Result<(Vec<(String, Array)>, u64)> {
        let mut values = Vec::new();
        for name in self.state_names() {
            values.push((name.to_string(), self.weights.read(name)?));
        }
        let mut own = |name: &str, value: Array| values.push((format!("{OWN}{name}"), value));
        own(EPOCH, Array::scalar(epoch as i64));
        own(BATCH, Array::scalar(batch as i64));
        own(STEP, Array::scalar(self.weights.step as i64));
        own(SEED, Array::scalar(self.weights.seed as i64));
        if let Some(rate) = self.rate {
            own(RATE, Array::scalar(rate));
        }
        if let Some(place) = &self.place {
            let bytes = place.position.to_bytes();
            own(STREAM, Array::scalar(place.epoch as i64));
            own(POSITION, Array::from_vec([bytes.len()], bytes)?);
        }
        let n_bytes = values.iter().map(|(_, value)| (value.len() * value.dtype().size()) as u64).sum();
        Ok((values, n_bytes))
    }

    /// Takes the values of a backup. Variables that no program has made yet get theirs later.
    fn restore_backup(&mut self, reader: &BundleReader) -> Result<()> {
        let number = |name: &str| -> Result<usize> {
            let found = own_number(reader, name)?;
            found.map(|n| n as usize).ok_or_else(|| {
                Error::data(format!("there is no `{name}`: this is not a backup of a Keras model"))
                    .help("give BackupAndRestore a folder of its own")
            })
        };
        let (epoch, batch) = (number(EPOCH)?, number(BATCH)?);
        for name in self.weight_names() {
            if !reader.contains(name) {
                return Err(Error::data(format!("there is no weight `{name}`: it is a backup of another model"))
                    .help("remove the folder to begin anew"));
            }
        }
        let position = format!("{OWN}{POSITION}");
        let place = match reader.contains(&position) {
            true => {
                let position = Position::from_bytes(reader.read(&position)?.as_slice::<u8>()?)?;
                Some(Place { epoch: number(STREAM)?, position })
            }
            false => None,
        };
        self.drop_waiting_slots();
        let names: Vec<String> = reader.names().filter(|name| !is_own(name)).map(str::to_string).collect();
        for name in names {
            let value = reader.read(&name)?;
            match self.weights.holds(&name) {
                true => self.weights.write(&name, &value)?,
                false => drop(self.weights.pending.insert(name, value)),
            }
        }
        let rate = format!("{OWN}{RATE}");
        if self.rate.is_some() && reader.contains(&rate) {
            self.rate = Some(reader.read(&rate)?.item::<f32>()?);
            self.write_rate()?;
        }
        (self.weights.step, self.weights.seed) = (number(STEP)? as u64, number(SEED)? as u64);
        info!("Resuming the training at epoch {}, batch {batch}.", epoch + 1);
        self.resume = Some(Resume { epoch, batch, place });
        Ok(())
    }

    /// After the training step was built, all restored values must have found their variables.
    pub(in crate::keras) fn check_restored(&mut self) -> Result<()> {
        let left: Vec<String> = std::mem::take(&mut self.weights.pending).into_keys().collect();
        match left.is_empty() {
            true => Ok(()),
            false => {
                Err(Error::data(format!("the backup has values that the model does not have: {}", left.join(", ")))
                    .help("it is of another model or optimizer: remove its folder to begin anew"))
            }
        }
    }
}
