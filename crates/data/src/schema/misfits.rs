//! The rows and columns that do not fit a schema. All are counted, and the first of every column
//! are listed.

use std::collections::HashMap;
use std::fmt;

use estimand_tensor::{Error, ErrorKind, Result};

/// The largest number of misfits listed per column; more are only counted.
const LISTED: usize = 10;

/// A report of the values that do not fit a schema. Prints one line per misfit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfits {
    /// The number of rows checked.
    pub n_rows: u64,
    /// The number of values and columns that do not fit.
    pub n_misfits: u64,
    /// The first ten misfits of every column.
    pub listed: Vec<Misfit>,
}

/// One value or column that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Misfit {
    /// The column.
    pub column: String,
    /// The row, from 1; `None` if the whole column does not fit.
    pub row: Option<u64>,
    /// The problem, with the value found and the value expected.
    pub problem: String,
}

impl Misfits {
    /// Whether everything fits.
    pub fn is_empty(&self) -> bool {
        self.n_misfits == 0
    }

    /// Returns an error that lists the first misfits, if there are any.
    pub fn into_result(self) -> Result<()> {
        let Some(first) = self.listed.first() else { return Ok(()) };
        let kind = ErrorKind::Data { path: None, row: first.row, column: Some(first.column.clone()) };
        let message = format!("{} values do not fit the schema:\n{}", self.n_misfits, self.to_string().trim_end());
        Err(Error::new(kind, message).help("correct the data, or the schema"))
    }
}

impl fmt::Display for Misfits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.listed.iter().try_for_each(|misfit| writeln!(f, "{misfit}"))?;
        match self.n_misfits - self.listed.len() as u64 {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row {
            Some(row) => write!(f, "column `{}`, row {row}: {}", self.column, self.problem),
            None => write!(f, "column `{}`: {}", self.column, self.problem),
        }
    }
}

/// The misfits found so far.
#[derive(Default)]
pub(super) struct Found {
    n_misfits: u64,
    listed: Vec<Misfit>,
    /// For each column with misfits, the indices of its misfits in the list.
    of_column: HashMap<String, Vec<usize>>,
}

impl Found {
    /// Adds a misfit. Formats the problem only if it is listed.
    pub(super) fn add(&mut self, column: &str, row: Option<u64>, problem: impl FnOnce() -> String) {
        self.n_misfits += 1;
        let own = match self.of_column.get_mut(column) {
            Some(own) => own,
            None => self.of_column.entry(column.to_string()).or_default(),
        };
        if own.len() < LISTED {
            own.push(self.listed.len());
            self.listed.push(Misfit { column: column.to_string(), row, problem: problem() });
        }
    }

    /// Adds a misfit of a whole column, once, although every batch shows it.
    pub(super) fn add_once(&mut self, column: &str, problem: String) {
        let own = self.of_column.get(column).map_or(&[][..], Vec::as_slice);
        if !own.iter().any(|i| self.listed[*i].problem == problem) {
            self.add(column, None, || problem);
        }
    }

    pub(super) fn finish(self, n_rows: u64) -> Misfits {
        Misfits { n_rows, n_misfits: self.n_misfits, listed: self.listed }
    }
}
