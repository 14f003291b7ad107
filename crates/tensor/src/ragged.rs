//! Ragged arrays: rows of different length.

use std::sync::Arc;

use crate::cpu::combine::check_splits;
use crate::{Array, Error, Result};

/// Rows of different length: row `i` is `values[row_splits[i]..row_splits[i + 1]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Ragged {
    values: Array,
    row_splits: Arc<[i64]>,
}

impl Ragged {
    /// Creates a ragged array. Checks that the splits start at 0, never decrease, and end at the
    /// number of values.
    pub fn new(values: Array, row_splits: impl Into<Arc<[i64]>>) -> Result<Ragged> {
        let row_splits = row_splits.into();
        let Some(&n_values) = values.dims().first() else {
            return Err(Error::shape("the values of a ragged array need at least one axis"));
        };
        check_splits(&row_splits, n_values).map_err(|bad| Error::shape(bad.to_string()))?;
        Ok(Ragged { values, row_splits })
    }

    /// All values, row after row.
    pub fn values(&self) -> &Array {
        &self.values
    }

    /// The start of each row, followed by the number of values; one longer than the number of rows.
    pub fn row_splits(&self) -> &[i64] {
        &self.row_splits
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.row_splits.len() - 1
    }

    /// The values of one row; shares the buffer.
    pub fn row(&self, i: usize) -> Result<Array> {
        if i >= self.n_rows() {
            return Err(Error::index(format!(
                "row {i} is out of range for a ragged array with {} rows",
                self.n_rows()
            )));
        }
        self.values.rows(self.row_splits[i] as usize..self.row_splits[i + 1] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_refusals() {
        let values = Array::from([1i64, 2, 3]);
        let r = Ragged::new(values.clone(), [0, 2, 2, 3]).unwrap();
        assert_eq!(r.row(0).unwrap().as_slice::<i64>().unwrap(), [1, 2]);
        assert!(r.row(1).unwrap().is_empty());
        assert!(r.row(3).is_err());
        for (splits, text) in [
            (&[][..], "at least [0]"),
            (&[1, 3][..], "starts at 1"),
            (&[0, 2][..], "ends at 2, but there are 3"),
            (&[0, 2, 1, 3][..], "falls from 2 to 1 at row 1"),
        ] {
            let e = Ragged::new(values.clone(), splits).unwrap_err().to_string();
            assert!(e.contains(text), "{e}");
        }
    }
}
