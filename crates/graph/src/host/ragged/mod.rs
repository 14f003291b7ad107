//! Ragged features: rows of different lengths as two tensors, values and row splits.

mod concat;
mod filter;
mod from_dense;
mod from_rows;
mod lookup_ids;
mod multi_hot;
mod row_ids;
mod to_steps;

pub use concat::RaggedConcat;
pub use filter::RaggedFilter;
pub use from_dense::FromDense;
pub use from_rows::FromRows;
pub use lookup_ids::{IdSource, LookupIds};
pub use multi_hot::MultiHot;
pub use row_ids::RowIds;
pub use to_steps::ToSteps;

use std::borrow::Cow;

use estimand_tensor::cpu::combine::check_splits;
use estimand_tensor::{Array, DType, Error, Result, TensorSpec};

use crate::op::expect::{expect_dtype, expect_equal, expect_rank};

/// Checks that an input is a list of row splits.
fn expect_splits(x: &TensorSpec) -> Result<()> {
    expect_dtype(DType::I64, x, "list of row_splits")?;
    expect_rank(1, x, "list of row_splits")
}

/// Checks and returns the row splits of `n` values.
fn splits(x: &Array, n: usize) -> Result<&[i64]> {
    let splits = x.as_slice::<i64>()?;
    check_splits(splits, n).map_err(|bad| Error::shape(bad.to_string()))?;
    Ok(splits)
}

/// Ids of i32 or i64 as i64.
fn wide_ids(x: &Array) -> Result<Cow<'_, [i64]>> {
    Ok(match x.dtype() {
        DType::I64 => Cow::Borrowed(x.as_slice()?),
        _ => Cow::Owned(x.as_slice::<i32>()?.iter().map(|&id| id.into()).collect()),
    })
}

/// Checks that an input is a list of weights of these ids.
fn expect_weights(weights: &TensorSpec, ids: &TensorSpec) -> Result<()> {
    expect_dtype(DType::F32, weights, "list of weights")?;
    expect_equal("list of weights", &weights.shape, &ids.shape)
}

/// Checks and returns the weights of `n` ids, if there are any.
fn check_weights(weights: Option<&Array>, n: usize) -> Result<Option<&[f32]>> {
    let weights = weights.map(|w| w.as_slice::<f32>()).transpose()?;
    match weights.filter(|w| w.len() != n) {
        None => Ok(weights),
        Some(weights) => {
            Err(Error::shape(format!("there are {} weights for {n} ids; expected one for each id", weights.len()))
                .help("give every id a weight; in a dense feature, a weight of 0 counts as missing"))
        }
    }
}

/// The row splits after only some of the values were kept.
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
