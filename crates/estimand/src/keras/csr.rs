//! Rows of which most numbers are zero. They become dense a batch at a time.

use std::ops::Range;

use estimand_data::Dataset;
use estimand_tensor::{Array, Batch, Error, Feature, Ragged, Result};

/// Rows in the form of SciPy's `csr_matrix`: of each row, the columns that are not zero and their
/// values.
///
/// ```
/// use estimand::keras::{Compile, CsrRows, Fit, Sequential};
/// use estimand::prelude::*;
///
/// // [[0, 2, 0], [1, 0, 3], [0, 0, 0]]
/// let x = CsrRows::new(3, vec![0, 1, 3, 3], vec![1, 0, 2], vec![2.0, 1.0, 3.0])?;
/// let mut model = Sequential::new().input([3]).add(Dense::new(1)).build()?;
/// model.compile(Compile::new("sgd", "mse"))?;
/// model.fit(Fit::new((x, Array::from([1f32, 2.0, 3.0]))).verbose(0))?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CsrRows {
    n_columns: usize,
    columns: Ragged,
    values: Ragged,
}

/// The names of the two ragged features that rows travel in.
const COLUMNS: &str = "csr/columns";
const VALUES: &str = "csr/values";

impl CsrRows {
    /// Row `i` has the columns `indices[indptr[i]..indptr[i + 1]]` with these `data`. A column that
    /// occurs twice in a row is summed, as in SciPy.
    pub fn new(n_columns: usize, indptr: Vec<i64>, indices: Vec<i64>, data: Vec<f32>) -> Result<CsrRows> {
        if indices.len() != data.len() {
            let text = format!("CSR rows have {} column numbers and {} values", indices.len(), data.len());
            return Err(Error::shape(text).help("each value has one column"));
        }
        if let Some(bad) = indices.iter().find(|&&column| column < 0 || column >= n_columns as i64) {
            return Err(Error::index(format!("CSR rows have the column {bad}; they have {n_columns} columns")));
        }
        let n = indices.len();
        let columns = Ragged::new(Array::from_vec([n], indices)?, indptr.clone())?;
        let values = Ragged::new(Array::from_vec([n], data)?, indptr)?;
        Ok(CsrRows { n_columns, columns, values })
    }

    /// The number of rows.
    pub fn n_rows(&self) -> usize {
        self.columns.n_rows()
    }

    /// Some of the rows.
    pub(super) fn rows(&self, range: Range<usize>) -> Result<CsrRows> {
        let splits = self.columns.row_splits();
        let (first, last) = (splits[range.start], splits[range.end]);
        let own: Vec<i64> = splits[range.start..=range.end].iter().map(|split| split - first).collect();
        let inner = first as usize..last as usize;
        CsrRows::new(
            self.n_columns,
            own,
            self.columns.values().as_slice::<i64>()?[inner.clone()].to_vec(),
            self.values.values().as_slice::<f32>()?[inner].to_vec(),
        )
    }

    /// All rows as one dense array.
    pub(super) fn dense(&self) -> Result<Array> {
        dense(self.n_columns, &self.columns, &self.values)
    }

    /// The rows as features of a batch, still sparse.
    pub(super) fn batch(&self) -> Result<Batch> {
        Batch::new().with_feature(COLUMNS, self.columns.clone())?.with_feature(VALUES, self.values.clone())
    }

    /// Makes the rows of batches dense, under a name.
    pub(super) fn densified(&self, batches: &Dataset, name: &str) -> Dataset {
        let (n_columns, name) = (self.n_columns, name.to_string());
        batches.map(move |batch| {
            let ragged = |name: &str| match batch.feature(name)? {
                Feature::Ragged(ragged) => Ok(ragged.clone()),
                Feature::Dense(_) => Err(Error::internal("CSR rows became dense on their way")),
            };
            let rows = dense(n_columns, &ragged(COLUMNS)?, &ragged(VALUES)?)?;
            let mut made = Batch::new().with_feature(&name, rows)?;
            for (name, label) in batch.labels() {
                made = made.with_label(name, label.clone())?;
            }
            match batch.weights() {
                Some(weights) => made.with_weights(weights.clone()),
                None => Ok(made),
            }
        })
    }
}

fn dense(n_columns: usize, columns: &Ragged, values: &Ragged) -> Result<Array> {
    let (indices, numbers) = (columns.values().as_slice::<i64>()?, values.values().as_slice::<f32>()?);
    let n = columns.n_rows();
    let mut rows = vec![0f32; n * n_columns];
    for (row, ends) in columns.row_splits().windows(2).enumerate() {
        for i in ends[0] as usize..ends[1] as usize {
            rows[row * n_columns + indices[i] as usize] += numbers[i];
        }
    }
    Array::from_vec([n, n_columns], rows)
}
