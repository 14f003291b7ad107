//! Rows that are read into memory, all together, when they are first needed.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use estimand_tensor::{Batch, BatchSpec, Result};

use super::memory;
use crate::stage::{Indexed, InputContext, Stage, Stream};
use crate::{Position, rows};

type LoadFn = dyn Fn() -> Result<Batch> + Send + Sync;
type FilesFn = dyn Fn() -> Result<Vec<PathBuf>> + Send + Sync;

/// The stage of rows read on demand. The position is the number of the next row.
pub(crate) struct Loaded {
    description: String,
    load: Box<LoadFn>,
    /// Finds the files that the rows are read from.
    files: Box<FilesFn>,
    /// Held while reading, so that two readers do not read the rows twice.
    reading: Mutex<()>,
    rows: OnceLock<Batch>,
}

impl Loaded {
    /// Creates the stage from a function that reads the rows. [`explain`](crate::Dataset::explain)
    /// prints the description.
    pub(crate) fn new(description: String, load: impl Fn() -> Result<Batch> + Send + Sync + 'static) -> Loaded {
        let (load, files) = (Box::new(load), Box::new(|| Ok(Vec::new())));
        Loaded { description, load, files, reading: Mutex::new(()), rows: OnceLock::new() }
    }

    /// The same rows, with the files that they are read from.
    pub(crate) fn read_from(self, files: impl Fn() -> Result<Vec<PathBuf>> + Send + Sync + 'static) -> Loaded {
        Loaded { files: Box::new(files), ..self }
    }

    /// The rows, read on the first call. A failed read is tried again on the next call: the file
    /// may exist by then.
    fn rows(&self) -> Result<&Batch> {
        if let Some(rows) = self.rows.get() {
            return Ok(rows);
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = self.rows.get() {
            return Ok(rows);
        }
        let rows = (self.load)()?;
        Ok(self.rows.get_or_init(|| rows))
    }
}

impl Stage for Loaded {
    fn describe(&self) -> String {
        self.description.clone()
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        (self.files)()
    }

    fn spec(&self) -> Result<BatchSpec> {
        Ok(rows::spec_of(self.rows()?))
    }

    fn indexed(&self) -> Option<&dyn Indexed> {
        Some(self)
    }

    fn open(&self, _cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        memory::open(self.rows()?.clone(), from)
    }
}

impl Indexed for Loaded {
    fn n_rows(&self) -> Result<u64> {
        Ok(self.rows()?.n_rows() as u64)
    }

    fn gather(&self, numbers: &[u64]) -> Result<Batch> {
        self.gather_into(numbers, Batch::new())
    }

    fn gather_into(&self, numbers: &[u64], spare: Batch) -> Result<Batch> {
        rows::gather_into(self.rows()?, numbers, spare)
    }
}
