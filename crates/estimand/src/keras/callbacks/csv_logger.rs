//! Writes the logs of epochs to a CSV file.

use std::path::PathBuf;

use estimand_tensor::{Error, Result};

use crate::hook::{LogFile, quoted};
use crate::keras::{Callback, Logs, Model};

/// Writes a row for each epoch: its number, and the entries of its logs in alphabetic order, as
/// Keras' `CSVLogger` does.
///
/// Rows are written by the log of [`CsvLogHook`](crate::hook::CsvLogHook). With
/// [`append`](CsvLogger::append), a training that goes on after a crash first cuts off the rows of
/// epochs that it repeats.
#[must_use]
pub struct CsvLogger {
    path: PathBuf,
    append: bool,
    keys: Vec<String>,
    file: Option<LogFile>,
}

impl CsvLogger {
    /// Writes to a new file; an old one is replaced.
    pub fn new(path: impl Into<PathBuf>) -> CsvLogger {
        CsvLogger { path: path.into(), append: false, keys: Vec::new(), file: None }
    }

    /// Goes on with an old file. By default it is replaced.
    pub fn append(mut self) -> CsvLogger {
        self.append = true;
        self
    }

    fn header(&self) -> String {
        let names = self.keys.iter().map(|key| quoted(key));
        std::iter::once("epoch".to_string()).chain(names).collect::<Vec<_>>().join(",") + "\n"
    }
}

impl Callback for CsvLogger {
    fn on_train_begin(&mut self, _model: &mut Model) -> Result<()> {
        (self.file, self.keys) = (None, Vec::new());
        Ok(())
    }

    fn on_epoch_end(&mut self, _model: &mut Model, epoch: usize, logs: &mut Logs) -> Result<()> {
        if self.keys.is_empty() {
            self.keys = logs.keys().cloned().collect();
            self.keys.sort_unstable();
            if !self.keys.iter().any(|key| key.starts_with("val_")) {
                // TF: a validation may begin in a later epoch.
                let of_validation: Vec<String> = self.keys.iter().map(|key| format!("val_{key}")).collect();
                self.keys.extend(of_validation);
            }
        }
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                if !self.append && self.path.exists() {
                    std::fs::remove_file(&self.path).map_err(|e| Error::io(&self.path, "remove", &e))?;
                }
                // The file keeps rows up to a number; rows of this epoch and later ones go.
                LogFile::open_before(self.path.clone(), &self.header(), epoch as u64)?
            }
        };
        let value = |key: &String| logs.get(key).map_or("NA".to_string(), f64::to_string);
        let row = std::iter::once(epoch.to_string()).chain(self.keys.iter().map(value));
        file.append(&(row.collect::<Vec<_>>().join(",") + "\n"))?;
        self.file = Some(file);
        Ok(())
    }

    fn on_train_end(&mut self, _model: &mut Model, _logs: &Logs) -> Result<()> {
        self.file.take().map_or(Ok(()), |mut file| file.sync())
    }
}
