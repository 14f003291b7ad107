//! The error of a column, with its row.

use estimand_tensor::Error;

/// A column that cannot be read: the reason, and the first bad row, if it is a single row.
#[derive(Debug)]
pub(crate) struct Bad {
    pub(crate) row: Option<usize>,
    pub(crate) error: Error,
}

impl From<Error> for Bad {
    fn from(error: Error) -> Bad {
        Bad { row: None, error }
    }
}

impl Bad {
    pub(crate) fn at(row: usize, message: impl Into<String>) -> Bad {
        Bad { row: Some(row), error: Error::config(message) }
    }
}
