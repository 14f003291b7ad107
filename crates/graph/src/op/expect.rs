//! Checks of an op's inputs, each with the error it reports.

use estimand_tensor::{DType, Dim, Error, Result, Shape, TensorSpec};

use crate::op::AxisSet;

pub(crate) fn number(dtype: DType) -> Result<()> {
    accepts(dtype.is_number(), dtype)
}

pub(crate) fn accepts(yes: bool, dtype: DType) -> Result<()> {
    if yes {
        return Ok(());
    }
    let error = Error::dtype(None, dtype, format!("the operation is not defined on {dtype}"));
    Err(if dtype == DType::Str { error } else { error.help("use .cast(..) to convert it first") })
}

pub(crate) fn expect_dtype(expected: DType, x: &TensorSpec, what: &str) -> Result<()> {
    if x.dtype == expected {
        return Ok(());
    }
    Err(Error::dtype(Some(expected), x.dtype, format!("the {what} is {}, expected {expected}", x.dtype))
        .help(format!("use .cast(DType::{expected:?})")))
}

pub(crate) fn same_dtype(a: &TensorSpec, b: &TensorSpec) -> Result<()> {
    if a.dtype == b.dtype {
        return Ok(());
    }
    Err(Error::dtype(Some(a.dtype), b.dtype, format!("the dtypes {} and {} differ", a.dtype, b.dtype))
        .help(format!("use .cast(DType::{:?}) on one of them", a.dtype)))
}

pub(crate) fn floats(x: &[&TensorSpec]) -> Result<()> {
    for spec in x {
        accepts(spec.dtype.is_float(), spec.dtype)?;
        same_dtype(x[0], spec)?;
    }
    Ok(())
}

pub(crate) fn integer_ids(x: &TensorSpec, what: &str) -> Result<()> {
    if matches!(x.dtype, DType::I32 | DType::I64) {
        return Ok(());
    }
    Err(Error::dtype(Some(DType::I64), x.dtype, format!("the {what} are {}, expected i32 or i64", x.dtype))
        .help("use .cast(DType::I64)"))
}

pub(crate) fn expect_rank(rank: usize, x: &TensorSpec, what: &str) -> Result<()> {
    if x.shape.rank() == rank {
        return Ok(());
    }
    let error = Error::shape(format!("the {what} is {x}, expected {rank} axes"));
    Err(if rank > 0 { error.help("use .reshape(..) or .expand_dims(..)") } else { error })
}

pub(crate) fn expect_rank_of(n: usize, x: &TensorSpec, what: &str) -> Result<()> {
    if x.shape.rank() == n {
        return Ok(());
    }
    Err(Error::shape(format!("there are {n} {what} for {x}, which has {} axes", x.shape.rank())))
}

pub(crate) fn expect_equal(what: &str, actual: &Shape, expected: &Shape) -> Result<()> {
    // Two different symbols may still be equal at run time; known sizes must agree now.
    let clash = |(a, b): (&Dim, &Dim)| matches!((a.known(), b.known()), (Some(a), Some(b)) if a != b);
    if actual.rank() != expected.rank() || actual.dims().iter().zip(expected.dims()).any(clash) {
        return Err(Error::shape(format!("the {what} is {actual}, expected {expected}")));
    }
    Ok(())
}

pub(crate) fn axis_of(axis: usize, x: &TensorSpec) -> Result<usize> {
    if axis < x.shape.rank() {
        return Ok(axis);
    }
    Err(Error::shape(format!("axis {axis} is out of range for {x}, which has {} axes", x.shape.rank())))
}

pub(crate) fn within_rank(axes: AxisSet, x: &TensorSpec) -> Result<()> {
    match axes.iter().last() {
        Some(last) => axis_of(last, x).map(drop),
        None => Ok(()),
    }
}

pub(crate) fn index_depth(indices: &TensorSpec, params: &Shape) -> Result<usize> {
    integer_ids(indices, "indices")?;
    match indices.shape.dims().last().map(|d| d.known()) {
        Some(Some(depth)) if depth <= params.rank() => Ok(depth),
        _ => Err(Error::shape(format!(
            "the indices into {params} are {}; the last axis must be known and at most {}",
            indices.shape,
            params.rank()
        ))),
    }
}
