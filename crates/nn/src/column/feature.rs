//! Access to raw features for columns: finds them by name, checks their type, and handles missing
//! values.

use estimand_graph::{RaggedTensor, Tensor};
use estimand_tensor::{DType, Error, Result};

use crate::inputs::{Input, Inputs};

/// The kind of values that a categorical column reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CategoryKind {
    Text,
    Integers,
}

impl CategoryKind {
    /// The kind for a column's dtype. Other dtypes are an error.
    pub(super) fn of(dtype: DType) -> Result<CategoryKind> {
        match dtype {
            DType::Str => Ok(CategoryKind::Text),
            DType::I32 | DType::I64 => Ok(CategoryKind::Integers),
            other => Err(Error::dtype(
                Some(DType::Str),
                other,
                format!("categories cannot be {other}; expected strings or integers"),
            )
            .help("use bucketized_column for numbers")),
        }
    }

    fn describe(self) -> &'static str {
        match self {
            CategoryKind::Text => "strings",
            CategoryKind::Integers => "integers",
        }
    }
}

/// The rows of a feature. Reports an error if the feature is not of the kind that the column reads.
///
/// TF: missing values, `""` and -1, are dropped from a dense feature; in a ragged feature they are
/// values like others (cases 9 and 10).
pub(super) fn categories(features: &Inputs, key: &str, takes: CategoryKind) -> Result<RaggedTensor> {
    let input = features.find(key)?;
    let values = match input {
        Input::Dense(dense) => dense,
        Input::Ragged(rows) => &rows.values,
    };
    if !values.is_poisoned() && CategoryKind::of(values.dtype()).ok() != Some(takes) {
        return Err(other_type(key, values.dtype(), takes));
    }
    Ok(match input {
        Input::Dense(dense) => RaggedTensor::from_dense(dense),
        Input::Ragged(rows) => rows.clone(),
    })
}

fn other_type(key: &str, dtype: DType, takes: CategoryKind) -> Error {
    let error =
        Error::dtype(None, dtype, format!("feature `{key}` holds {dtype}; the column takes {}", takes.describe()));
    match (takes, dtype) {
        (CategoryKind::Text, DType::I32 | DType::I64) => {
            error.help("call .dtype(DType::I64) on the column, or make the feature strings")
        }
        (CategoryKind::Integers, DType::Str) => {
            error.help("make the feature integers, or make the column one of strings")
        }
        _ => error.help("give the feature strings or integers; use bucketized_column for numbers"),
    }
}

/// A dense feature of numbers, `[batch, dims...]`.
pub(super) fn numbers(features: &Inputs, key: &str, dims: &[usize]) -> Result<Tensor> {
    let dense = match features.find(key)? {
        Input::Dense(dense) => dense,
        Input::Ragged(_) => {
            return Err(Error::shape(format!(
                "feature `{key}` has rows of different length; a numeric column takes {dims:?} numbers a row"
            ))
            .help("parse it as a dense feature with a default, or use sequence_numeric_column"));
        }
    };
    if dense.is_poisoned() {
        return Ok(dense.clone());
    }
    expect_numbers(key, dense.dtype())?;
    let inner = dense.shape().dims().get(1..).unwrap_or_default();
    let n: Option<usize> = inner.iter().map(|dim| dim.known()).product();
    if dense.rank() == 0 || n != Some(dims.iter().product()) {
        let help = match n {
            Some(n) if dense.rank() <= 2 => format!("call .shape([{n}]) on the column"),
            Some(_) => format!("call .shape({inner:?}) on the column"),
            None => "use sequence_numeric_column for rows of different length".to_string(),
        };
        return Err(Error::shape(format!(
            "feature `{key}` is {}; the column takes {dims:?} numbers a row",
            dense.spec()
        ))
        .help(help));
    }
    let fits = inner.iter().map(|dim| dim.known()).eq(dims.iter().copied().map(Some));
    if fits { Ok(dense.clone()) } else { Ok(dense.reshape(rows_of(dims))) }
}

/// Reports an error for strings, which are no numbers.
pub(super) fn expect_numbers(key: &str, dtype: DType) -> Result<()> {
    match dtype {
        DType::Str => Err(Error::dtype(
            Some(DType::F32),
            dtype,
            format!("feature `{key}` holds strings; the column takes numbers"),
        )
        .help("read it as numbers, or use a categorical column")),
        _ => Ok(()),
    }
}

/// Sizes for `reshape`: any number of rows with these sizes.
pub(super) fn rows_of(dims: &[usize]) -> Vec<i64> {
    std::iter::once(-1).chain(dims.iter().map(|&n| n as i64)).collect()
}
