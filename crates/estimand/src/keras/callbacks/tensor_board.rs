//! Writes the logs of epochs for TensorBoard.

use std::path::PathBuf;

use estimand_tensor::Result;

use crate::events::EventWriter;
use crate::keras::{Callback, Logs, Model};

/// Writes event files under Keras' names: `epoch_loss` and the like in `train` and `validation`
/// below the folder, and `evaluation_loss_vs_iterations` of each evaluation.
#[must_use]
pub struct TensorBoard {
    folder: PathBuf,
    every_batches: Option<usize>,
    histogram_freq: usize,
    train: Option<EventWriter>,
    validation: Option<EventWriter>,
    n_batches: u64,
}

impl TensorBoard {
    /// Writes below a folder.
    pub fn new(folder: impl Into<PathBuf>) -> TensorBoard {
        TensorBoard {
            folder: folder.into(),
            every_batches: None,
            histogram_freq: 0,
            train: None,
            validation: None,
            n_batches: 0,
        }
    }

    /// Also writes the logs of every `n`-th batch, as `batch_loss` and the like. By default only
    /// those of epochs. This is Keras' `update_freq`.
    pub fn update_freq(mut self, n: usize) -> TensorBoard {
        self.every_batches = Some(n.max(1));
        self
    }

    /// Writes histograms of the weights after every `n`-th epoch. By default none.
    pub fn histogram_freq(mut self, n: usize) -> TensorBoard {
        self.histogram_freq = n;
        self
    }
}

/// The writer of a folder, made when it is first needed.
fn open(writer: &mut Option<EventWriter>, folder: PathBuf) -> Result<&mut EventWriter> {
    let new = match writer.take() {
        Some(open) => open,
        None => EventWriter::create(folder)?,
    };
    Ok(writer.insert(new))
}

impl Callback for TensorBoard {
    fn on_train_batch_end(&mut self, _model: &mut Model, _batch: usize, logs: &Logs) -> Result<()> {
        let step = self.n_batches;
        self.n_batches += 1;
        if self.every_batches.is_some_and(|n| step.is_multiple_of(n as u64)) {
            let writer = open(&mut self.train, self.folder.join("train"))?;
            for (name, value) in logs {
                writer.scalar(step, &format!("batch_{name}"), *value as f32)?;
            }
        }
        Ok(())
    }

    fn on_test_end(&mut self, model: &mut Model, logs: &Logs) -> Result<()> {
        let writer = open(&mut self.validation, self.folder.join("validation"))?;
        for (name, value) in logs {
            writer.scalar(model.n_steps(), &format!("evaluation_{name}_vs_iterations"), *value as f32)?;
        }
        Ok(())
    }

    fn on_epoch_end(&mut self, model: &mut Model, epoch: usize, logs: &mut Logs) -> Result<()> {
        for (name, value) in logs.iter() {
            let (writer, folder, name) = match name.strip_prefix("val_") {
                Some(name) => (&mut self.validation, "validation", name),
                None => (&mut self.train, "train", name.as_str()),
            };
            let writer = open(writer, self.folder.join(folder))?;
            writer.scalar(epoch as u64, &format!("epoch_{name}"), *value as f32)?;
        }
        if model.has_schedule() {
            let rate = model.learning_rate()? as f32;
            open(&mut self.train, self.folder.join("train"))?.scalar(epoch as u64, "epoch_learning_rate", rate)?;
        }
        if self.histogram_freq > 0 && epoch.is_multiple_of(self.histogram_freq) {
            let writer = open(&mut self.train, self.folder.join("train"))?;
            let names: Vec<String> = model.weight_names().map(str::to_string).collect();
            for (name, weight) in names.iter().zip(model.get_weights()?) {
                writer.histogram(epoch as u64, &format!("{name}_0"), &weight)?;
            }
        }
        Ok(())
    }

    fn on_train_end(&mut self, _model: &mut Model, _logs: &Logs) -> Result<()> {
        for writer in [self.train.take(), self.validation.take()].iter_mut().flatten() {
            writer.sync()?;
        }
        Ok(())
    }

    fn wants_batch_logs(&self) -> bool {
        self.every_batches.is_some()
    }
}
