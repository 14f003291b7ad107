//! Joins strings: element by element (`StringJoin`) or along axes (`ReduceJoin`).

use super::limit::check_size;
use crate::{Dims, Error, Result, StringSlice, Strings, element_count};

/// One of the lists to join.
#[derive(Clone, Copy, Debug)]
pub enum JoinInput<'a> {
    /// The same string for every element.
    One(&'a [u8]),
    /// A string for each element.
    Each(StringSlice<'a>),
}

/// Appends `n` strings to `out`, each the inputs' strings with the separator between them.
pub fn join(inputs: &[JoinInput<'_>], separator: &[u8], n: usize, out: &mut Strings) -> Result<()> {
    check_size("a join", n.saturating_mul(size_of::<u64>()))?;
    let mut total = separator.len().saturating_mul(inputs.len().saturating_sub(1)).saturating_mul(n);
    for (i, input) in inputs.iter().enumerate() {
        let bytes = match input {
            JoinInput::One(string) => string.len().saturating_mul(n),
            JoinInput::Each(strings) if strings.len() == n => strings.packed_bytes().len(),
            JoinInput::Each(strings) => {
                return Err(Error::shape(format!("input {i} of a join has {} strings; expected {n}", strings.len()))
                    .help("give all inputs the same shape, or a single string"));
            }
        };
        total = total.saturating_add(bytes);
    }
    check_size("a join", total)?;
    out.reserve_bytes(total);
    for element in 0..n {
        for (i, input) in inputs.iter().enumerate() {
            if i > 0 {
                out.write(separator);
            }
            out.write(match input {
                JoinInput::One(string) => string,
                JoinInput::Each(strings) => strings.get(element),
            });
        }
        out.finish();
    }
    Ok(())
}

/// Joins the strings of an array of `dims` along `axes`. Returns the remaining sizes.
///
/// Axes may be counted from the end. The first axis changes fastest: over `[1, 0]` of a matrix,
/// whole rows are joined one after another. Without axes the array stays unchanged; an axis of size
/// 0 gives empty strings.
pub fn reduce_join(
    strings: StringSlice<'_>,
    dims: &[usize],
    axes: &[i64],
    keep_dims: bool,
    separator: &[u8],
) -> Result<(Strings, Dims)> {
    if element_count(dims)? != strings.len() {
        return Err(Error::shape(format!("{} strings were given for an array of {dims:?}", strings.len())));
    }
    let rank = dims.len();
    let mut is_joined = vec![false; rank];
    let mut joined = Vec::with_capacity(axes.len().min(rank));
    for &axis in axes {
        let from_start = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
        let position = from_start.and_then(|axis| usize::try_from(axis).ok()).filter(|&axis| axis < rank);
        let Some(position) = position else {
            return Err(Error::index(format!(
                "reduce_join was given axis {axis}, which is out of range for an array of {dims:?}"
            )));
        };
        if std::mem::replace(&mut is_joined[position], true) {
            return Err(Error::config(format!("reduce_join was given axis {axis} twice")));
        }
        joined.push(position);
    }
    let stride = |axis: usize| dims[axis + 1..].iter().product::<usize>();
    let kept: Vec<usize> = (0..rank).filter(|&axis| !is_joined[axis]).collect();
    let n_results = kept.iter().map(|&axis| dims[axis]).fold(1, usize::saturating_mul);
    let left = |axis| match is_joined[axis] {
        true => keep_dims.then_some(1),
        false => Some(dims[axis]),
    };
    let left: Dims = (0..rank).filter_map(left).collect();
    // An empty array may still have any number of empty results.
    check_size("a reduce_join", n_results.saturating_mul(size_of::<u64>()))?;
    if strings.is_empty() {
        return Ok(((0..n_results).map(|_| b"").collect(), left));
    }
    // The offsets from the first string of a result to all its strings, in order.
    let mut inside = vec![0];
    for &axis in &joined {
        let (n, stride) = (dims[axis], stride(axis));
        inside = (0..n).flat_map(|i| inside.iter().map(move |offset| offset + i * stride)).collect();
    }
    let separators = separator.len().saturating_mul(inside.len().saturating_sub(1)).saturating_mul(n_results);
    let total = separators.saturating_add(strings.packed_bytes().len());
    check_size("a reduce_join", total)?;
    let mut out = Strings::with_capacity(n_results);
    out.reserve_bytes(total);
    for result in 0..n_results {
        let (mut rest, mut first) = (result, 0);
        for &axis in kept.iter().rev() {
            first += rest % dims[axis] * stride(axis);
            rest /= dims[axis];
        }
        for (i, offset) in inside.iter().enumerate() {
            if i > 0 {
                out.write(separator);
            }
            out.write(strings.get(first + offset));
        }
        out.finish();
    }
    Ok((out, left))
}
