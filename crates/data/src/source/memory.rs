//! Rows in memory. Pieces share the memory of the arrays, and any row can be read by its index.

use estimand_tensor::{Batch, BatchSpec, Error, Feature, Result};

use crate::Position;
use crate::rows;
use crate::stage::{Indexed, InputContext, Stage, Stream, StreamItem};

/// The stage of rows in memory. The position is the number of the next row.
pub(crate) struct Memory {
    /// The rows, or the error in the arrays.
    rows: Result<Batch>,
}

impl Memory {
    pub(crate) fn from_arrays<N: AsRef<str>, F: Into<Feature>>(features: impl IntoIterator<Item = (N, F)>) -> Memory {
        let mut rows = Ok(Batch::new());
        for (name, feature) in features {
            let name = name.as_ref();
            rows = rows.and_then(|rows: Batch| {
                if rows.features().contains_key(name) {
                    return Err(
                        Error::config(format!("there are two arrays named `{name}`")).help("give them different names")
                    );
                }
                rows.with_feature(name, feature)
            });
        }
        Memory { rows: rows.map_err(|e| e.context("in the arrays of the dataset")) }
    }

    pub(crate) fn from_batch(batch: Batch) -> Memory {
        Memory { rows: Ok(batch) }
    }

    pub(crate) fn from_rows(rows: Result<Batch>) -> Memory {
        Memory { rows }
    }
}

impl Stage for Memory {
    fn describe(&self) -> String {
        match &self.rows {
            Err(error) => format!("arrays: {}", error.message()),
            Ok(rows) => {
                let names: Vec<_> = rows.features().keys().map(|name| format!("`{name}`")).collect();
                format!("arrays: {} rows of {}", rows.n_rows(), names.join(", "))
            }
        }
    }

    fn check(&self) -> Result<()> {
        let rows = self.rows.as_ref().map_err(Error::clone)?;
        if rows.features().is_empty() && rows.labels().is_empty() {
            return Err(Error::config("the dataset has no arrays").help("give it at least one named array"));
        }
        Ok(())
    }

    fn spec(&self) -> Result<BatchSpec> {
        self.rows.as_ref().map(rows::spec_of).map_err(Error::clone)
    }

    fn label_spec(&self) -> Result<BatchSpec> {
        self.rows.as_ref().map(|rows| rows::specs_of(rows).1).map_err(Error::clone)
    }

    fn indexed(&self) -> Option<&dyn Indexed> {
        self.rows.is_ok().then_some(self)
    }

    fn open(&self, _cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        open(self.rows.clone()?, from)
    }
}

/// Opens a stream over the rows of a batch from a position on.
pub(crate) fn open(rows: Batch, from: &Position) -> Result<Box<dyn Stream>> {
    let ([next], []) = from.parts()?;
    let next = usize::try_from(next).ok().filter(|&next| next <= rows.n_rows()).ok_or_else(|| {
        Error::config(format!("the position is after row {next}, but the arrays have {} rows", rows.n_rows()))
            .help("resume with the data that the position was taken from")
    })?;
    Ok(Box::new(Rows { rows, next, spare: None }))
}

impl Indexed for Memory {
    fn n_rows(&self) -> Result<u64> {
        self.rows.as_ref().map(|rows| rows.n_rows() as u64).map_err(Error::clone)
    }

    fn gather(&self, numbers: &[u64]) -> Result<Batch> {
        self.gather_into(numbers, Batch::new())
    }

    fn gather_into(&self, numbers: &[u64], spare: Batch) -> Result<Batch> {
        rows::gather_into(self.rows.as_ref().map_err(Error::clone)?, numbers, spare)
    }
}

struct Rows {
    rows: Batch,
    next: usize,
    spare: Option<StreamItem>,
}

impl Stream for Rows {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let end = self.next.saturating_add(want).min(self.rows.n_rows());
        if end == self.next {
            return Ok(None);
        }
        let StreamItem { batch, after } = self.spare.take().unwrap_or_default();
        let batch = rows::slice_into(&self.rows, self.next..end, batch)?;
        self.next = end;
        Ok(Some(StreamItem { batch, after: after.renew(end as u64, None) }))
    }

    fn recycle(&mut self, item: StreamItem) {
        self.spare = Some(item);
    }
}
