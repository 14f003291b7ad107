//! An input function over arrays in memory: TensorFlow's `numpy_input_fn`.

use estimand_tensor::{Array, Batch, Error, Feature, Result};

use super::{BATCH_SIZE, batches};
use crate::Dataset;
use crate::source::memory::Memory;

/// Starts an input function over arrays in memory: one array without a name, or several named ones,
/// which are sorted by name.
pub fn arrays(x: impl Into<Columns>) -> ArraysInput {
    ArraysInput { x: x.into(), y: None, batch_size: BATCH_SIZE, n_epochs: Some(1) }
}

/// One array, or several arrays with names.
#[derive(Clone, Debug)]
pub struct Columns(Vec<(String, Feature)>);

impl From<Array> for Columns {
    fn from(array: Array) -> Columns {
        Columns(vec![(String::new(), array.into())])
    }
}

impl<N: Into<String>, F: Into<Feature>> From<Vec<(N, F)>> for Columns {
    fn from(columns: Vec<(N, F)>) -> Columns {
        let mut columns: Vec<_> = columns.into_iter().map(|(name, column)| (name.into(), column.into())).collect();
        // TF: sorted by name, whatever order they were given in.
        columns.sort_by(|(a, _), (b, _)| a.cmp(b));
        Columns(columns)
    }
}

impl<N: Into<String>, F: Into<Feature>, const K: usize> From<[(N, F); K]> for Columns {
    fn from(columns: [(N, F); K]) -> Columns {
        Vec::from(columns).into()
    }
}

/// A builder of an input function. [`shuffle`](ArraysInput::shuffle) finishes it, because every
/// caller must choose whether to shuffle.
#[derive(Clone, Debug)]
#[must_use]
pub struct ArraysInput {
    x: Columns,
    y: Option<Columns>,
    batch_size: usize,
    n_epochs: Option<u64>,
}

impl ArraysInput {
    /// The labels: one array, or several with names. By default, there are none.
    pub fn labels(mut self, y: impl Into<Columns>) -> ArraysInput {
        self.y = Some(y.into());
        self
    }

    /// The number of rows in a batch; only the last batch may have fewer. By default, 128.
    pub fn batch_size(mut self, n: usize) -> ArraysInput {
        self.batch_size = n;
        self
    }

    /// The number of passes over the rows; `None` repeats without end. By default, 1.
    pub fn n_epochs(mut self, n: Option<u64>) -> ArraysInput {
        self.n_epochs = n;
        self
    }

    /// Builds the dataset of batches. Rows keep the order of the arrays, or get a new random order
    /// each epoch.
    ///
    /// The order depends on the run's seed and the epoch. Mistakes are reported by the dataset.
    pub fn shuffle(self, shuffle: bool) -> Dataset {
        let rows = self.rows().map_err(|e| e.context("in the arrays of the input function"));
        batches(Dataset::new(Memory::from_rows(rows)), shuffle, self.n_epochs, self.batch_size)
    }

    fn rows(&self) -> Result<Batch> {
        let labels = self.y.as_ref().map_or(&[][..], |y| &y.0);
        if self.x.0.is_empty() || self.y.as_ref().is_some_and(|y| y.0.is_empty()) {
            let what = if self.x.0.is_empty() { "x" } else { "y" };
            return Err(Error::config(format!("{what} has no arrays")).help("give it at least one, or leave y out"));
        }
        let mut rows = Batch::new();
        for (name, column) in &self.x.0 {
            if rows.features().contains_key(name.as_str()) {
                return Err(Error::config(format!("x has two arrays named `{name}`")).help("give them different names"));
            }
            rows = rows.with_feature(name, column.clone())?;
        }
        for (name, column) in labels {
            if rows.labels().contains_key(name.as_str()) {
                return Err(Error::config(format!("y has two arrays named `{name}`")).help("give them different names"));
            }
            if !name.is_empty() && rows.features().contains_key(name.as_str()) {
                let message = format!("x and y both have an array named `{name}`");
                return Err(Error::config(message).help("rename one of them"));
            }
            rows = rows.with_label(name, column.clone())?;
        }
        Ok(rows)
    }
}
