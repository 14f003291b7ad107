//! Concatenation and splitting.

use estimand_graph::Tensor;
use estimand_graph::op::Slice;
use estimand_graph::op::reading::{Reading, axis as axis_of, refuse, with_size};
use estimand_tensor::{Dim, Error, Result};

use super::super::node_reader::{NodeReader, Outputs, one};
use super::super::numbers::{MOST, Number, Numbers, are_few};
use super::follow::joined;

pub(super) fn pack(call: &mut NodeReader<'_, '_>) -> Outputs {
    let axis = call.int_or("axis", 0)?;
    if let Some(numbers) = joined(call, 0..call.n_inputs(), 0)? {
        return one(numbers);
    }
    if axis == 0
        && let Some(numbers) = stacked(call)?
    {
        return one(numbers);
    }
    let parts = call.tensors(0..call.n_inputs())?;
    if parts.is_empty() {
        return Err(Error::config("the node has no inputs to stack"));
    }
    one(Tensor::stack(&parts.iter().collect::<Vec<_>>(), axis))
}

/// Stacks tracked numbers of equal sizes; `None` if an input is not tracked.
fn stacked(call: &NodeReader<'_, '_>) -> Result<Option<Numbers>> {
    let Some(mut all) = (if call.n_inputs() > 0 { call.numbers(0)? } else { None }) else { return Ok(None) };
    let dims = all.dims.clone();
    for i in 1..call.n_inputs() {
        match call.numbers(i)? {
            Some(other) if other.dims == dims && other.dtype == all.dtype => all.elements.extend(other.elements),
            _ => return Ok(None),
        }
    }
    all.dims.insert(0, call.n_inputs());
    Ok(Some(all).filter(|all| are_few(&all.dims) && all.dims.len() <= MOST))
}

pub(super) fn unpack(call: &mut NodeReader<'_, '_>) -> Outputs {
    let axis = call.int_or("axis", 0)?;
    if let Some(numbers) = call.numbers(0)?
        && numbers.dims.len() == 1
    {
        let scalar = |n: &Number| Numbers::scalar(numbers.dtype, n.clone()).into();
        return Ok(numbers.elements.iter().map(scalar).collect());
    }
    let tensor = call.tensor(0)?;
    let n = call.int_or("num", 0)?;
    let axis = axis_of(axis, tensor.rank())?;
    let n = usize::try_from(n).map_err(|_| Error::config(format!("the number of parts is {n}; expected 0 or more")))?;
    let parts = equal_parts(call, &tensor, axis, n, 1)?;
    Ok(parts.iter().map(|part| part.squeeze(&[axis as i64]).into()).collect())
}

/// Splits an axis into `n` parts of one size. The size of the axis may be unknown.
fn equal_parts(call: &NodeReader<'_, '_>, tensor: &Tensor, axis: usize, n: usize, size: usize) -> Result<Vec<Tensor>> {
    let whole = tensor.shape().dims()[axis].known();
    if whole.is_some_and(|whole| n.checked_mul(size) != Some(whole)) {
        return Err(Error::shape(format!(
            "{n} parts of size {size} along axis {axis} of {}; expected parts as large as the axis",
            tensor.spec()
        )));
    }
    // A few bytes ask for any number of parts, of which each is a slice and a reshape.
    call.reader.nodes.library().add_parts(n.saturating_mul(2))?;
    parts(call, tensor, axis, &vec![size; n])
}

/// Splits an axis into parts of known sizes. If the size of the axis is unknown, the run checks
/// that it is that of the parts together.
fn parts(call: &NodeReader<'_, '_>, tensor: &Tensor, axis: usize, sizes: &[usize]) -> Result<Vec<Tensor>> {
    let whole = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
    let whole = whole.ok_or_else(|| Error::shape("the parts are too large together"))?;
    if let Some(n) = tensor.shape().dims()[axis].known()
        && n != whole
    {
        return Err(Error::shape(format!("the parts have the sizes {sizes:?}, but axis {axis} has size {n}")));
    }
    let tensor = &with_size(tensor, axis, Dim::Known(whole));
    let mut first = 0usize;
    let mut parts = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let mut begin = vec![0; tensor.rank()];
        let mut shape = tensor.shape().clone();
        begin[axis] = first;
        shape.0[axis] = Dim::Known(size);
        first += size;
        parts.push(call.add(Slice { begin, size: shape }, &[tensor])?.remove(0));
    }
    Ok(parts)
}

/// Moves elements along axes; those that leave at the end come in at the beginning.
pub(super) fn roll(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (tensor, shifts, axes) = (call.tensor(0)?, call.integers(1)?, call.integers(2)?);
    if shifts.len() != axes.len() {
        return Err(Error::config(format!("the shifts are {shifts:?} and the axes {axes:?}; expected as many")));
    }
    let mut rolled = tensor;
    for (shift, axis) in shifts.into_iter().zip(axes) {
        let axis = axis_of(axis, rolled.rank())?;
        let size = rolled.shape().dims()[axis].known();
        let n = size.ok_or_else(|| refuse(format!("a roll of axis {axis}, whose size only a run tells")))?;
        let first = if n == 0 { 0 } else { shift.rem_euclid(n as i64) as usize };
        if first > 0 {
            let parts = parts(call, &rolled, axis, &[n - first, first])?;
            rolled = Tensor::concat(&[&parts[1], &parts[0]], axis as i64);
        }
    }
    one(rolled)
}

pub(super) fn split(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (axis, tensor) = (call.integer(0)?, call.tensor(1)?);
    let n = call.int_or("num_split", 1)?;
    let axis = axis_of(axis, tensor.rank())?;
    match (tensor.shape().dims()[axis].known(), usize::try_from(n)) {
        (Some(size), Ok(n)) if n > 0 && size % n == 0 => {
            let parts = equal_parts(call, &tensor, axis, n, size / n)?;
            Ok(parts.into_iter().map(Into::into).collect())
        }
        _ => Err(refuse(format!("a split of {} into {n} equal parts along axis {axis}", tensor.spec()))),
    }
}

pub(super) fn split_sizes(call: &mut NodeReader<'_, '_>) -> Outputs {
    let (tensor, mut sizes, axis) = (call.tensor(0)?, call.integers(1)?, call.integer(2)?);
    let axis = axis_of(axis, tensor.rank())?;
    let rest: i64 = sizes.iter().filter(|&&n| n != -1).fold(0, |sum, &n| sum.saturating_add(n));
    for size in sizes.iter_mut().filter(|size| **size == -1) {
        match tensor.shape().dims()[axis].known() {
            Some(n) => *size = (n as i64).saturating_sub(rest),
            None => return Err(refuse("a split of an axis of unknown size into a part of size -1")),
        }
    }
    let sizes: Option<Vec<usize>> = sizes.iter().map(|&n| usize::try_from(n).ok()).collect();
    let sizes = sizes.ok_or_else(|| Error::shape("the size of a part is negative"))?;
    Ok(parts(call, &tensor, axis, &sizes)?.into_iter().map(Into::into).collect())
}
