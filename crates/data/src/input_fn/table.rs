//! An input function over the rows of a table: TensorFlow's `pandas_input_fn`.

use super::{BATCH_SIZE, batches};
use crate::Dataset;

/// Starts an input function over a table: rows of a CSV file, of Arrow or Parquet files, of an
/// `.npz` file, or any other dataset of single rows.
///
/// ```
/// use estimand_data::{Dataset, input_fn};
/// use estimand_tensor::{Array, Result};
///
/// # let file = std::env::temp_dir().join(format!("estimand-doc-table-{}.csv", std::process::id()));
/// # std::fs::write(&file, "age,hours,income\n39,40,0\n50,13,0\n38,40,1\n").unwrap();
/// let train = input_fn::table(Dataset::from_csv(&file)).target_column("income").batch_size(2).shuffle(false);
/// let batches: Vec<_> = train.iter().collect::<Result<_>>()?;
/// assert_eq!(batches[0].labels()["income"].n_rows(), Some(2));
/// assert_eq!(batches[1].n_rows(), 1);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub fn table(rows: impl Into<Dataset>) -> TableInput {
    TableInput { rows: rows.into(), batch_size: BATCH_SIZE, n_epochs: Some(1) }
}

/// A builder of an input function over a table. [`shuffle`](TableInput::shuffle) finishes it,
/// because every caller must choose whether to shuffle.
#[derive(Clone, Debug)]
#[must_use]
pub struct TableInput {
    rows: Dataset,
    batch_size: usize,
    n_epochs: Option<u64>,
}

impl TableInput {
    /// The column that is the label; a column that does not exist is an error of the dataset. By
    /// default, the labels of the table, if it has some.
    pub fn target_column(mut self, name: &str) -> TableInput {
        self.rows = self.rows.label(name);
        self
    }

    /// The number of rows in a batch; only the last batch may have fewer. By default, 128.
    pub fn batch_size(mut self, n: usize) -> TableInput {
        self.batch_size = n;
        self
    }

    /// The number of passes over the rows; `None` repeats without end. By default, 1.
    pub fn n_epochs(mut self, n: Option<u64>) -> TableInput {
        self.n_epochs = n;
        self
    }

    /// Builds the dataset of batches. Rows keep the order of the table, or get a new random order
    /// each epoch, for which all rows are held in memory.
    ///
    /// The order depends on the run's seed and the epoch. A table that does not fit into memory is
    /// shuffled with [`Dataset::shuffle`] and a smaller buffer instead.
    pub fn shuffle(self, shuffle: bool) -> Dataset {
        batches(self.rows, shuffle, self.n_epochs, self.batch_size)
    }
}
