//! Counts the numbers of a CSV source that were missing and became 0, and says so once.

use std::collections::HashMap;

use estimand_tensor::Result;

use super::format::CsvFormat;
use crate::files::stream::FileStream;
use crate::stage::{Stream, StreamItem};
use crate::told::Told;

/// A reader that stops before the end is told of missing numbers if it read this many rows. A
/// reader of fewer rows only takes a sample.
const ENOUGH: u64 = 1_000;

/// The rows of CSV files. Counts the missing numbers of columns whose type was inferred: there, 0
/// was not the user's choice.
pub(crate) struct CountedStream {
    rows: FileStream<CsvFormat>,
    files: String,
    n_rows: u64,
    /// The number of missing values of each counted column. There may be a million columns.
    columns: HashMap<String, u64>,
    /// The counted columns with missing values, in the order in which they were found.
    found: Vec<String>,
    told: Told,
}

impl CountedStream {
    pub(crate) fn new(rows: FileStream<CsvFormat>, format: &CsvFormat, files: String, told: Told) -> CountedStream {
        let inferred = format.columns.iter().filter(|column| column.is_inferred());
        let columns = inferred.map(|column| (column.name.clone(), 0)).collect();
        CountedStream { rows, files, n_rows: 0, columns, found: Vec::new(), told }
    }

    fn tell(&mut self) {
        if self.found.is_empty() || !self.told.is_first() {
            return;
        }
        let (n_rows, columns) = (self.n_rows, &self.columns);
        let counts = super::listed(self.found.iter().map(|name| format!("{} of {n_rows} `{name}`", columns[name])));
        estimand_tensor::warn!(
            "{counts} were missing in {} and became 0: declare the column with feature(name, FeatureSpec::dense_or(..)) to \
             choose a value, or find the rows with Batch::missing",
            self.files
        );
    }
}

impl Stream for CountedStream {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let pulled = self.rows.pull(want)?;
        match &pulled {
            Some(item) => {
                self.n_rows += item.batch.n_rows() as u64;
                for (name, missing) in item.batch.all_missing() {
                    let n_missing = missing.as_slice::<bool>()?.iter().filter(|&&missing| missing).count() as u64;
                    if let Some(n) = self.columns.get_mut(name).filter(|_| n_missing > 0) {
                        if *n == 0 {
                            self.found.push(name.to_string());
                        }
                        *n += n_missing;
                    }
                }
            }
            None => self.tell(),
        }
        Ok(pulled)
    }
}

/// A reader may stop before the end.
impl Drop for CountedStream {
    fn drop(&mut self) {
        if self.n_rows >= ENOUGH {
            self.tell();
        }
    }
}
