//! Finds suspicious columns of a dataset: constant, like an id, leaking the label, a copy of
//! another, or mostly missing.
//!
//! `table.rs` reads the first rows of a dataset and assigns a code to each distinct value.
//! `alone.rs` examines one column, `leak.rs` a column and a label, `duplicate.rs` two columns.

mod alone;
mod association;
mod duplicate;
mod leak;
mod table;

use std::fmt;

use estimand_data::Dataset;
use estimand_tensor::{Error, Result};

use table::{Column, Role, Table};

/// The minimum number of rows for findings about ids, leaks and copies.
const MIN_ROWS: usize = 50;

/// Examines the columns of a dataset in one pass over its first rows.
///
/// ```
/// use estimand::prelude::*;
/// use estimand::report::{ColumnCheck, Suspicion};
///
/// let answer: Vec<i64> = (0..200).map(|row| row * 7 % 11 % 2).collect();
/// let data = Dataset::from_arrays([
///     ("paid", Array::from(answer.iter().map(|&y| y as f32 * 3.0).collect::<Vec<_>>())),
///     ("country", Array::from_strings([200], vec!["nl"; 200])?),
///     ("bought", Array::from(answer)),
/// ]);
/// let examined = ColumnCheck::new().max_rows(10_000).run(&data.label("bought"))?;
/// let found: Vec<_> = examined.findings.iter().map(|f| (f.column.as_str(), f.suspicion)).collect();
/// assert_eq!(found, [("paid", Suspicion::Leaking), ("country", Suspicion::Constant)]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ColumnCheck {
    max_rows: usize,
}

impl Default for ColumnCheck {
    fn default() -> ColumnCheck {
        ColumnCheck { max_rows: 100_000 }
    }
}

impl ColumnCheck {
    /// Makes a check with all defaults.
    pub fn new() -> ColumnCheck {
        ColumnCheck::default()
    }

    /// Sets the maximum number of rows. By default, 100,000; fewer for more than a hundred columns.
    pub fn max_rows(self, max_rows: usize) -> ColumnCheck {
        ColumnCheck { max_rows }
    }

    /// Reads the rows and examines every column. The input may repeat.
    pub fn run(&self, data: &Dataset) -> Result<Examined> {
        if self.max_rows == 0 {
            return Err(Error::config("max_rows is 0; expected at least 1"));
        }
        let table = Table::read(data, self.max_rows)?;
        if table.n_rows == 0 {
            return Err(Error::data("no columns to examine: the dataset has no rows")
                .help("check its files, its filters and its shard: together they leave no rows"));
        }
        let mut findings = Vec::new();
        let mut plain: Vec<&Column> = Vec::new();
        for column in &table.columns {
            let alone = alone::look(column, &table);
            // A constant or id-like column is not compared with other columns.
            if !alone.iter().any(|finding| finding.suspicion != Suspicion::MostlyMissing) {
                plain.push(column);
            }
            findings.extend(alone);
        }
        if table.n_rows >= MIN_ROWS {
            let (labels, features): (Vec<&Column>, Vec<&Column>) =
                plain.into_iter().partition(|column| column.role == Role::Label);
            for label in labels {
                findings.extend(features.iter().filter_map(|feature| leak::look(feature, label)));
            }
            findings.extend(duplicate::look(&features));
        }
        findings.sort_by_key(|finding| finding.suspicion);
        Ok(Examined {
            n_rows: table.n_rows,
            is_all: table.is_all,
            n_columns: table.columns.len(),
            not_examined: table.not_examined,
            plan: data.fingerprint(),
            rows: table.fingerprint,
            findings,
        })
    }
}

/// The result of examining the columns of a dataset.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Examined {
    /// The number of rows that were read.
    pub n_rows: usize,
    /// Whether these are all rows of the dataset.
    pub is_all: bool,
    /// The number of columns that were examined, including labels.
    pub n_columns: usize,
    /// Columns with several values per row, which were not examined.
    pub not_examined: Vec<String>,
    /// The fingerprint of the plan: [`Dataset::fingerprint`].
    pub plan: u64,
    /// A fingerprint of the rows that were read, in their order.
    pub rows: u64,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

impl Examined {
    /// `the first 100000 rows of 14 columns`
    pub(super) fn extent(&self) -> String {
        let rows = if self.is_all { "all" } else { "the first" };
        format!("{rows} {} rows of {} columns", self.n_rows, self.n_columns)
    }
}

/// Why a column is suspicious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Suspicion {
    /// It alone predicts the label nearly perfectly.
    Leaking,
    /// It has one value, or none.
    Constant,
    /// Nearly every row has a unique value.
    IdLike,
    /// It has the same content as another column.
    Duplicate,
    /// More than half of its values are missing.
    MostlyMissing,
}

impl fmt::Display for Suspicion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Suspicion::Leaking => "leaking",
            Suspicion::Constant => "constant",
            Suspicion::IdLike => "id-like",
            Suspicion::Duplicate => "duplicate",
            Suspicion::MostlyMissing => "mostly missing",
        })
    }
}

/// A suspicious column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Finding {
    /// The name of the column.
    pub column: String,
    /// The suspicion.
    pub suspicion: Suspicion,
    /// The evidence, in numbers.
    pub evidence: String,
    /// The advice.
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`, {}: {}; {}", self.column, self.suspicion, self.evidence, self.advice)
    }
}

/// Formats a share: `99.2 %`.
fn percent(share: f64) -> String {
    let digits = format!("{:.2}", 100.0 * share);
    format!("{} %", digits.trim_end_matches('0').trim_end_matches('.'))
}
