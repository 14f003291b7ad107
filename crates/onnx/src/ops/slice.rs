//! Slices and reversed axes.

use estimand_graph::op::{Reverse, Slice, StridedSlice};
use estimand_tensor::{Dim, Result};

use super::At;

/// An end before the first element, for a slice that runs backwards.
pub(super) const BEFORE_FIRST: i64 = i64::MIN + 1;

/// A box of the input.
pub(super) fn slice(at: &mut At<'_, '_, '_, '_>, op: &Slice) -> Result<String> {
    let x = at.x(0)?;
    let begin: Vec<i64> = op.begin.iter().map(|&n| n as i64).collect();
    let sizes: Vec<Dim> = op.size.dims().to_vec();
    let cut = |(i, dim): (usize, &Dim)| (begin[i] != 0 || *dim != at.dims(0)[i]).then_some(i);
    let axes: Vec<usize> = sizes.iter().enumerate().filter_map(cut).collect();
    if axes.is_empty() {
        return Ok(x);
    }
    let of_axes = |values: &[i64]| axes.iter().map(|&i| values[i]).collect::<Vec<i64>>();
    let starts = at.ints(of_axes(&begin))?;
    let cut: Vec<Dim> = axes.iter().map(|&i| sizes[i]).collect();
    let sizes = at.shape(&cut)?;
    let ends = at.add("Add", &[&starts, &sizes]);
    let axes = at.ints(axes.iter().map(|&i| i as i64))?;
    Ok(at.add("Slice", &[&x, &starts, &ends, &axes]))
}

/// Every n-th element.
pub(super) fn strided_slice(at: &mut At<'_, '_, '_, '_>, op: &StridedSlice) -> Result<String> {
    let x = at.x(0)?;
    let end = |i: usize| -> i64 {
        let (begin, stride, size) = (op.begin[i] as i64, op.strides[i], op.size[i] as i64);
        let last = begin + (size - 1) * stride;
        match (size, stride > 0) {
            (0, _) => begin,
            (_, true) => last + 1,
            (_, false) if last == 0 => BEFORE_FIRST,
            (_, false) => last - 1,
        }
    };
    let rank = op.begin.len();
    let starts = at.ints(op.begin.iter().map(|&n| n as i64))?;
    let ends = at.ints((0..rank).map(end))?;
    let axes = at.ints(0..rank as i64)?;
    let steps = at.ints(op.strides.iter().copied())?;
    Ok(at.add("Slice", &[&x, &starts, &ends, &axes, &steps]))
}

/// Reverses axes.
pub(super) fn reverse(at: &mut At<'_, '_, '_, '_>, op: &Reverse) -> Result<String> {
    let x = at.x(0)?;
    let axes: Vec<i64> = op.axes.iter().map(|axis| axis as i64).collect();
    let n = axes.len();
    if n == 0 {
        return Ok(x);
    }
    let (starts, ends, steps) = (at.ints(vec![-1; n])?, at.ints(vec![BEFORE_FIRST; n])?, at.ints(vec![-1; n])?);
    let axes = at.ints(axes)?;
    Ok(at.add("Slice", &[&x, &starts, &ends, &axes, &steps]))
}
