//! Saves the weights after epochs.

use std::path::PathBuf;

use estimand_tensor::{Error, Result};
use tracing::info;

use super::watched;
use crate::criterion::Direction;
use crate::keras::{Callback, Logs, Model};

/// Saves the weights after each epoch, or after epochs that are better than all before.
///
/// The path may contain `{epoch}` and names of the logs, with Python's formats:
/// `weights-{epoch:02d}-{val_loss:.2f}`. Epochs count from 1 there, as in Keras. It writes
/// TensorFlow's checkpoints, as [`Model::save_weights`] does: Keras' `save_weights_only=True`.
#[derive(Clone, Debug)]
#[must_use]
pub struct ModelCheckpoint {
    path: String,
    best: Option<(String, Direction)>,
    every_batches: Option<usize>,
    value: f64,
    epoch: usize,
    n_batches: usize,
}

impl ModelCheckpoint {
    /// Saves after each epoch.
    pub fn new(path: impl Into<String>) -> ModelCheckpoint {
        ModelCheckpoint { path: path.into(), best: None, every_batches: None, value: 0.0, epoch: 0, n_batches: 0 }
    }

    /// Saves only if an entry of the logs is lower than in all epochs before: `save_best_only`.
    pub fn lowest(self, monitor: &str) -> ModelCheckpoint {
        self.only(monitor, Direction::Lower)
    }

    /// Saves only if an entry of the logs is higher than in all epochs before: `save_best_only`.
    pub fn highest(self, monitor: &str) -> ModelCheckpoint {
        self.only(monitor, Direction::Higher)
    }

    fn only(mut self, monitor: &str, direction: Direction) -> ModelCheckpoint {
        (self.best, self.value) = (Some((monitor.to_string(), direction)), direction.worst());
        self
    }

    /// The best value before this training: `initial_value_threshold`. Call it after `lowest` or
    /// `highest`.
    pub fn initial_value(mut self, value: f64) -> ModelCheckpoint {
        self.value = value;
        self
    }

    /// Saves after every `n` batches instead of after epochs: `save_freq`.
    pub fn every_batches(mut self, n: usize) -> ModelCheckpoint {
        self.every_batches = Some(n);
        self
    }

    fn save(&mut self, model: &mut Model, batch: Option<usize>, logs: &Logs) -> Result<()> {
        if let Some((monitor, direction)) = &self.best {
            let Some(value) = watched(logs, monitor, "ModelCheckpoint") else { return Ok(()) };
            if !direction.beats(value, self.value, 0.0) {
                return Ok(());
            }
            info!("Epoch {}: {monitor} improved from {:.5} to {value:.5}", self.epoch + 1, self.value);
            self.value = value;
        }
        let path = PathBuf::from(formatted(&self.path, self.epoch + 1, batch, logs)?);
        model.save_weights(path)
    }
}

impl Callback for ModelCheckpoint {
    fn on_epoch_begin(&mut self, _model: &mut Model, epoch: usize) -> Result<()> {
        self.epoch = epoch;
        Ok(())
    }

    fn on_train_batch_end(&mut self, model: &mut Model, batch: usize, logs: &Logs) -> Result<()> {
        let Some(every) = self.every_batches else { return Ok(()) };
        self.n_batches += 1;
        if self.n_batches < every {
            return Ok(());
        }
        self.n_batches = 0;
        self.save(model, Some(batch + 1), logs)
    }

    fn on_epoch_end(&mut self, model: &mut Model, _epoch: usize, logs: &mut Logs) -> Result<()> {
        if self.every_batches.is_some() { Ok(()) } else { self.save(model, None, logs) }
    }

    fn wants_batch_logs(&self) -> bool {
        self.every_batches.is_some()
    }
}

/// Fills in a path: `{epoch:03d}`, `{val_loss:.2f}`, `{accuracy}`.
fn formatted(path: &str, epoch: usize, batch: Option<usize>, logs: &Logs) -> Result<String> {
    let (mut text, mut rest) = (String::new(), path);
    while let Some((before, after)) = rest.split_once('{') {
        let refused = |why: String| Error::config(format!("the path `{path}` of ModelCheckpoint {why}"));
        let Some((field, after)) = after.split_once('}') else {
            return Err(refused("has a `{` without its `}`".to_string()));
        };
        let (name, format) = field.split_once(':').unwrap_or((field, ""));
        text += before;
        let whole = match name {
            "epoch" => Some(epoch),
            "batch" => batch,
            _ => None,
        };
        let bad = || refused(format!("has the format `{format}`; expected one like `02d` or `.2f`"));
        text += &match whole {
            Some(n) => {
                let width = format.trim_end_matches('d');
                match (width.is_empty(), width.parse::<usize>()) {
                    (true, _) => n.to_string(),
                    (false, Ok(width)) if format.starts_with('0') => format!("{n:0width$}"),
                    (false, Ok(width)) => format!("{n:width$}"),
                    (false, Err(_)) => return Err(bad()),
                }
            }
            None => {
                let known = logs.keys().map(String::as_str).chain(["epoch"]);
                let value = logs.get(name).ok_or_else(|| Error::unknown("entry of the logs", name, known))?;
                let digits = format.strip_prefix('.').and_then(|format| format.strip_suffix('f'));
                match (format.is_empty(), digits.map(str::parse::<usize>)) {
                    (true, _) => value.to_string(),
                    (false, Some(Ok(digits))) => format!("{value:.digits$}"),
                    _ => return Err(bad()),
                }
            }
        };
        rest = after;
    }
    Ok(text + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's `format` makes of these paths.
    #[test]
    fn paths_are_formatted_as_in_python() {
        let logs: Logs = [("val_loss".to_string(), 0.126)].into_iter().collect();
        let of = |path: &str| formatted(path, 7, None, &logs);
        assert_eq!(of("a/w-{epoch:03d}-{val_loss:.2f}.ckpt").unwrap(), "a/w-007-0.13.ckpt");
        assert_eq!(of("{epoch}{val_loss}").unwrap(), "70.126");
        for (path, part) in [("{val_los}", "did you mean `val_loss`?"), ("{epoch", "without its"), ("{epoch:x}", "02d")]
        {
            let error = of(path).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
