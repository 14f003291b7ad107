//! Sparse rows in memory, as the three arrays of a CSR matrix.

use estimand_tensor::{Array, Batch, DType, Error, Ragged, Result};

use super::libsvm::LABEL;
use super::memory::Memory;
use crate::Dataset;
use crate::transform::sparse_to_dense::{IDS, SparseToDense, VALUES};

/// A CSR matrix as a source of rows; [`dataset`](Csr::dataset) builds the [`Dataset`].
///
/// The arrays are `indptr`, `indices` and `data` of `scipy.sparse.csr_matrix`: row `i` has the
/// values `values[indptr[i]..indptr[i + 1]]` in the columns `indices[indptr[i]..indptr[i + 1]]`,
/// counted from 0. Rows have the features of [`LibSvm`](crate::LibSvm): ragged `ids` and `values`,
/// or one dense feature.
///
/// ```
/// use estimand_data::Csr;
/// use estimand_tensor::{Array, Ragged};
///
/// // [[0.5, 0, 2], [0, 0, 0], [0, 1.5, 0]]
/// let matrix = Csr::new([0i64, 2, 2, 3], [0i32, 2, 1], [0.5f32, 2.0, 1.5]).labels([1i64, 0, 1]);
/// let batch = matrix.clone().dataset().batch(3).iter().next().unwrap()?;
/// assert_eq!(batch.features()["ids"], Ragged::new(Array::from([0i64, 2, 1]), [0, 2, 2, 3])?.into());
/// assert_eq!(batch.labels()["label"], Array::from([1i64, 0, 1]).into());
///
/// let row = matrix.n_features(3).dense().dataset().iter().next().unwrap()?;
/// assert_eq!(row.features()["features"], Array::from_vec([1, 3], vec![0.5f32, 0.0, 2.0])?.into());
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Csr {
    indptr: Array,
    indices: Array,
    values: Array,
    n_features: Option<usize>,
    labels: Option<Array>,
    is_dense: bool,
}

impl Dataset {
    /// Creates a dataset from the arrays of a CSR matrix: ragged features `ids` and `values`.
    /// [`Csr`] has options, labels among them.
    pub fn from_csr(indptr: impl Into<Array>, indices: impl Into<Array>, values: impl Into<Array>) -> Dataset {
        Csr::new(indptr, indices, values).dataset()
    }
}

impl Csr {
    /// Takes the arrays of a matrix. `indptr` and `indices` are i32 or i64. Values may be any
    /// numbers; they become f32.
    pub fn new(indptr: impl Into<Array>, indices: impl Into<Array>, values: impl Into<Array>) -> Csr {
        let (indptr, indices, values) = (indptr.into(), indices.into(), values.into());
        Csr { indptr, indices, values, n_features: None, labels: None, is_dense: false }
    }

    /// The number of columns. A larger index is an error. By default, the largest index plus 1.
    pub fn n_features(mut self, n: usize) -> Csr {
        self.n_features = Some(n);
        self
    }

    /// The labels, one for each row; they become the label `label`. By default, there are none.
    pub fn labels(mut self, labels: impl Into<Array>) -> Csr {
        self.labels = Some(labels.into());
        self
    }

    /// Makes one dense feature `features` (f32, one value per column) of each row. By default, rows
    /// are the ragged features `ids` and `values`.
    pub fn dense(mut self) -> Csr {
        self.is_dense = true;
        self
    }

    /// Builds the dataset. A mistake in the arrays is reported by [`Dataset::spec`], or as the
    /// first item of the iteration.
    pub fn dataset(self) -> Dataset {
        let checked = self.rows().map_err(|e| e.context("in the arrays of the CSR matrix"));
        let (rows, width) = match checked {
            Ok((rows, width)) => (Ok(rows), width),
            Err(error) => (Err(error), 0),
        };
        let rows = Dataset::new(Memory::from_rows(rows));
        match self.is_dense {
            true => Dataset::new(SparseToDense::new(rows, move || Ok(width))),
            false => rows,
        }
    }

    /// The rows, and the number of columns.
    fn rows(&self) -> Result<(Batch, usize)> {
        let indptr = integers("indptr", &self.indptr)?;
        let ids = integers("indices", &self.indices)?;
        if !self.values.dtype().is_number() || self.values.rank() != 1 {
            let (dtype, dims) = (self.values.dtype(), self.values.dims());
            return Err(Error::config(format!("the values are {dtype}{dims:?}; expected numbers along one axis")));
        }
        if self.values.len() != ids.len() {
            return Err(Error::shape(format!(
                "there are {} indices and {} values; expected as many",
                ids.len(),
                self.values.len()
            )));
        }
        let largest = ids.as_slice::<i64>()?.iter().copied().max();
        if let Some(negative) = ids.as_slice::<i64>()?.iter().find(|&&id| id < 0) {
            return Err(Error::index(format!("an index is {negative}; expected 0 or more")));
        }
        let found = usize::try_from(largest.map_or(0, |largest| largest as u64 + 1)).unwrap_or(usize::MAX);
        let width = self.n_features.unwrap_or(found);
        if found > width {
            return Err(Error::index(format!("an index is {}, but the matrix has {width} columns", found - 1)));
        }
        let splits = indptr.as_slice::<i64>()?;
        let of_indptr = |e: Error| e.context("in indptr");
        let ids = Ragged::new(ids, splits).map_err(of_indptr)?;
        let values = Ragged::new(self.values.cast(DType::F32)?, splits).map_err(of_indptr)?;
        let batch = Batch::new().with_feature(IDS, ids)?.with_feature(VALUES, values)?;
        match &self.labels {
            Some(labels) => Ok((batch.with_label(LABEL, labels.clone())?, width)),
            None => Ok((batch, width)),
        }
    }
}

impl From<Csr> for Dataset {
    fn from(csr: Csr) -> Dataset {
        csr.dataset()
    }
}

/// An array of integers along one axis, as i64.
fn integers(name: &str, array: &Array) -> Result<Array> {
    match (array.dtype(), array.rank()) {
        (DType::I32 | DType::I64, 1) => array.cast(DType::I64),
        (dtype, _) => {
            let message = format!("{name} is {dtype}{:?}; expected i32 or i64 along one axis", array.dims());
            Err(Error::dtype(Some(DType::I64), dtype, message))
        }
    }
}
