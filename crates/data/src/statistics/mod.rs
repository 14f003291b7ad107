//! Statistics of the columns of a dataset: counts, moments, quantiles, frequent terms. One pass
//! over the rows covers all columns.
//!
//! ```
//! use estimand_data::Dataset;
//! use estimand_tensor::{Array, Result};
//!
//! let data = Dataset::from_arrays([
//!     ("age", Array::from([39.0f32, 50.0, f32::NAN, 38.0])),
//!     ("job", Array::from_strings([4], ["clerk", "farmer", "clerk", ""])?),
//! ]);
//! let statistics = data.statistics()?;
//! let age = statistics.numbers("age")?;
//! assert_eq!((age.n_missing, age.mean, age.max), (1, (39.0 + 50.0 + 38.0) / 3.0, 50.0));
//! assert_eq!(age.quantile(0.5), 39.0);
//! let jobs = statistics.terms("job")?;
//! assert_eq!(jobs.top(1, 1), [("clerk".to_string(), 2)]);
//! let vocabulary = jobs.vocabulary(100, 1)?;
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! Every number is the same, bit by bit, for any number of threads and however the rows are cut
//! into pieces: values are summarised in blocks of fixed size, and blocks are merged in order.
//!
//! `pass.rs` reads the rows and divides the work, and `column.rs` collects one column. `numbers.rs`
//! builds on `moments.rs` and `quantiles.rs`; `terms.rs` builds on
//! [`TermCounts`](estimand_tensor::vocabulary::TermCounts). `table.rs` prints.

mod column;
mod moments;
mod numbers;
mod pass;
mod quantiles;
mod table;
mod terms;

pub use column::{ColumnStatistics, RowLengths};
pub use numbers::NumberStatistics;
pub use pass::StatisticsPass;
pub use terms::TermStatistics;

use std::fmt;

use estimand_tensor::{DType, Error, Result};

use crate::Dataset;

/// The role of a column.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// A feature.
    Feature,
    /// A label.
    Label,
    /// The weights of the rows.
    Weights,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Feature => "feature",
            Role::Label => "label",
            Role::Weights => "weights",
        })
    }
}

/// The statistics of all columns of a dataset. Prints itself as a table.
#[derive(Debug)]
pub struct Statistics {
    n_rows: u64,
    columns: Vec<ColumnStatistics>,
}

impl Statistics {
    /// Reads all rows of a dataset once, on all cores. [`StatisticsPass`] has options.
    pub fn of(data: &Dataset) -> Result<Statistics> {
        StatisticsPass::new().run(data)
    }

    /// The number of rows.
    pub fn n_rows(&self) -> u64 {
        self.n_rows
    }

    /// All columns: features, labels, weights. Empty if there were no rows.
    pub fn columns(&self) -> &[ColumnStatistics] {
        &self.columns
    }

    /// The column with a name; the weights have the empty name.
    pub fn column(&self, name: &str) -> Result<&ColumnStatistics> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let names = self.columns.iter().map(|column| column.name.as_str());
            Error::unknown("column", name, names).context("in the statistics")
        })
    }

    /// The statistics of a column's numbers; an error if it holds strings.
    pub fn numbers(&self, name: &str) -> Result<&NumberStatistics> {
        let column = self.column(name)?;
        column.numbers.as_ref().ok_or_else(|| {
            Error::dtype(None, column.dtype, format!("column `{name}` holds {}, not numbers", column.dtype))
                .help("ask for its `terms`")
        })
    }

    /// The statistics of a column's terms: strings, integers or booleans. An error if it holds
    /// floats.
    pub fn terms(&self, name: &str) -> Result<&TermStatistics> {
        let column = self.column(name)?;
        column.terms.as_ref().ok_or_else(|| {
            Error::dtype(Some(DType::Str), column.dtype, format!("column `{name}` holds {}, not terms", column.dtype))
                .help("ask for its `numbers`")
        })
    }
}

impl Dataset {
    /// Computes the statistics of all columns. Reads all rows once, on all cores, like
    /// [`Statistics::of`].
    pub fn statistics(&self) -> Result<Statistics> {
        Statistics::of(self)
    }
}
