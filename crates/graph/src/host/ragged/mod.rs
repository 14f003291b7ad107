//! Ragged features: rows of different length as two tensors, values and row splits.

mod concat;
mod filter;
mod from_dense;
mod lookup_ids;
mod row_ids;

pub(crate) use concat::RaggedConcat;
pub(crate) use filter::RaggedFilter;
pub(crate) use from_dense::FromDense;
pub(crate) use lookup_ids::LookupIds;
pub(crate) use row_ids::RowIds;

use estimand_tensor::cpu::combine::check_splits;
use estimand_tensor::{Array, DType, Error, Result, TensorSpec};

use crate::infer::expect::{expect_dtype, expect_rank};

/// Checks that an input is a list of row splits.
fn expect_splits(x: &TensorSpec) -> Result<()> {
    expect_dtype(DType::I64, x, "list of row_splits")?;
    expect_rank(1, x, "list of row_splits")
}

/// The row splits of `n` values.
fn splits(x: &Array, n: usize) -> Result<&[i64]> {
    let splits = x.as_slice::<i64>()?;
    check_splits(splits, n).map_err(|bad| Error::shape(bad.to_string()))?;
    Ok(splits)
}

/// The splits of rows after only some of their values were kept.
fn kept_splits(splits: &[i64], keep: impl Fn(usize) -> bool) -> Vec<i64> {
    let mut kept = Vec::with_capacity(splits.len());
    let mut n = 0;
    kept.push(0);
    for row in splits.windows(2) {
        n += (row[0] as usize..row[1] as usize).filter(|&i| keep(i)).count() as i64;
        kept.push(n);
    }
    kept
}
