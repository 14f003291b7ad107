//! Operators that move elements: shapes, slices, borders, repetitions, rows by their indices.

use estimand_tensor::{Array, Error, Result};

use super::call::Call;
use super::values::{axis, broadcast, expand, longs, mapped, pick, place, sizes, strides, whole};

/// The sizes from an axis to another one.
pub(super) fn shape(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    let rank = x.rank() as i64;
    let clamped = |n: i64| (if n < 0 { n + rank } else { n }).clamp(0, rank) as usize;
    let (start, end) = (clamped(call.int("start", 0)?), clamped(call.int("end", rank)?));
    let sizes: Vec<i64> = x.dims()[start..end.max(start)].iter().map(|&n| n as i64).collect();
    longs(&[sizes.len()], sizes)
}

/// -1 is the size that is left, and 0 that of the input, unless `allowzero` is set.
pub(super) fn reshape(call: &Call<'_>) -> Result<Array> {
    let (x, wanted, zeros) = (call.x(0)?, call.ints_of(1)?, call.flag("allowzero", false)?);
    let copied = |(i, &n): (usize, &i64)| match (n, x.dims().get(i)) {
        (0, Some(&own)) if !zeros => Ok(own as i64),
        (0, None) if !zeros => Err(Error::shape(format!("axis {i} copies a size that {:?} does not have", x.dims()))),
        _ => Ok(n),
    };
    let mut dims = wanted.iter().enumerate().map(copied).collect::<Result<Vec<i64>>>()?;
    if let Some(open) = dims.iter().position(|&n| n == -1) {
        dims[open] = 1;
        let rest: usize = sizes(&dims)?.iter().product();
        let left = x.len().checked_div(rest).filter(|n| n * rest == x.len());
        let left = left.ok_or_else(|| Error::shape(format!("{:?} cannot be reshaped to {wanted:?}", x.dims())))?;
        dims[open] = left as i64;
    }
    x.reshape(sizes(&dims)?)
}

/// New axes of size 1.
pub(super) fn unsqueeze(call: &Call<'_>) -> Result<Array> {
    let (x, axes) = (call.x(0)?, call.ints_of(1)?);
    let rank = x.rank() + axes.len();
    let axes = axes.into_iter().map(|number| axis(number, rank)).collect::<Result<Vec<usize>>>()?;
    let mut own = x.dims().iter().copied();
    let dims: Vec<usize> = (0..rank).filter_map(|i| if axes.contains(&i) { Some(1) } else { own.next() }).collect();
    x.reshape(dims)
}

/// The axes in another order.
pub(super) fn transpose(call: &Call<'_>) -> Result<Array> {
    let x = call.x(0)?;
    let perm = match call.ints("perm")? {
        Some(perm) => perm.iter().map(|&number| axis(number, x.rank())).collect::<Result<Vec<usize>>>()?,
        None => (0..x.rank()).rev().collect(),
    };
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    if sorted != (0..x.rank()).collect::<Vec<_>>() {
        return Err(Error::shape(format!("{perm:?} is no order of the axes of {:?}", x.dims())));
    }
    let strides = strides(x.dims());
    mapped(x, None, &perm.iter().map(|&axis| whole(x.dims()[axis], strides[axis])).collect::<Vec<_>>())
}

/// Inputs joined along an axis.
pub(super) fn concat(call: &Call<'_>) -> Result<Array> {
    let parts = call.all()?;
    let first = parts.first().ok_or_else(|| Error::config("the node has no inputs"))?;
    let along = axis(call.int("axis", 0)?, first.rank())?;
    joined(&parts, along)
}

/// Arrays joined along an axis.
pub(super) fn joined(parts: &[&Array], along: usize) -> Result<Array> {
    let mut dims = parts[0].dims().to_vec();
    dims[along] = 0;
    for part in parts {
        let fits = |(i, &n): (usize, &usize)| i == along || n == dims[i];
        if part.rank() != dims.len() || !part.dims().iter().enumerate().all(fits) {
            let text = format!("{:?} and {:?} cannot be joined along axis {along}", parts[0].dims(), part.dims());
            return Err(Error::shape(text));
        }
        dims[along] += part.dims()[along];
    }
    let outer: usize = dims[..along].iter().product();
    let width = |part: &Array| part.dims()[along..].iter().product::<usize>();
    let widths: Vec<usize> = parts.iter().map(|part| width(part)).collect();
    let line = |line: usize| widths.iter().enumerate().flat_map(move |(p, &n)| (0..n).map(move |i| (p, line * n + i)));
    pick(parts, &dims, (0..outer).flat_map(line))
}

/// Every n-th element between a start and an end, which are clamped.
pub(super) fn slice(call: &Call<'_>) -> Result<Array> {
    let (x, starts, ends) = (call.x(0)?, call.ints_of(1)?, call.ints_of(2)?);
    let axes = match call.optional(3) {
        Some(_) => call.ints_of(3)?,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = match call.optional(4) {
        Some(_) => call.ints_of(4)?,
        None => vec![1; starts.len()],
    };
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return Err(Error::shape("the lists of starts, ends, axes and steps are not of one length"));
    }
    let strides = strides(x.dims());
    let mut kept: Vec<Vec<Option<usize>>> =
        x.dims().iter().zip(&strides).map(|(&n, &stride)| whole(n, stride)).collect();
    for (((start, end), number), step) in starts.into_iter().zip(ends).zip(axes).zip(steps) {
        let axis = axis(number, x.rank())?;
        let size = x.dims()[axis] as i64;
        let from_end = |n: i64| if n < 0 { n.saturating_add(size) } else { n };
        let mut offsets = Vec::new();
        let stride = strides[axis];
        match step {
            0 => return Err(Error::config("a step is 0")),
            _ if size == 0 => {}
            1.. => {
                let end = from_end(end).clamp(0, size);
                let mut i = from_end(start).clamp(0, size);
                while i < end {
                    offsets.push(Some(i as usize * stride));
                    i = i.saturating_add(step);
                }
            }
            _ => {
                let end = from_end(end).clamp(-1, size - 1);
                let mut i = from_end(start).clamp(0, size - 1);
                while i > end {
                    offsets.push(Some(i as usize * stride));
                    i = i.saturating_add(step);
                }
            }
        }
        kept[axis] = offsets;
    }
    mapped(x, None, &kept)
}

/// Slices of an axis by their indices.
pub(super) fn gather(call: &Call<'_>) -> Result<Array> {
    let (x, indices) = (call.x(0)?, call.x(1)?);
    let along = axis(call.int("axis", 0)?, x.rank())?;
    let (size, strides) = (x.dims()[along], strides(x.dims()));
    let offset = |index: i64| match place(index, size) {
        Some(i) => Ok(Some(i * strides[along])),
        None => Err(Error::index(format!("index {index} is out of range for an axis of {size}"))),
    };
    let picked = call.ints_of(1)?.into_iter().map(offset).collect::<Result<Vec<_>>>()?;
    let kept = |i: usize| whole(x.dims()[i], strides[i]);
    let axes: Vec<Vec<Option<usize>>> =
        (0..along).map(kept).chain([picked]).chain((along + 1..x.rank()).map(kept)).collect();
    let dims = [&x.dims()[..along], indices.dims(), &x.dims()[along + 1..]].concat();
    mapped(x, None, &axes)?.reshape(dims)
}

/// Repeats axes of size 1. A 1 in the shape keeps the size of the input.
pub(super) fn expand_to(call: &Call<'_>) -> Result<Array> {
    let (x, wanted) = (call.x(0)?, sizes(&call.ints_of(1)?)?);
    expand(x, &broadcast(x.dims(), &wanted)?)
}

/// Repeats the input along each axis.
pub(super) fn tile(call: &Call<'_>) -> Result<Array> {
    let (x, repeats) = (call.x(0)?, sizes(&call.ints_of(1)?)?);
    if repeats.len() != x.rank() {
        return Err(Error::shape(format!("{} repeats for {} axes", repeats.len(), x.rank())));
    }
    let strides = strides(x.dims());
    let axis = |(axis, &n): (usize, &usize)| whole(x.dims()[axis], strides[axis]).repeat(n);
    mapped(x, None, &repeats.iter().enumerate().map(axis).collect::<Vec<_>>())
}

/// Borders of a value, or mirrored without the edge. Those before all axes come first. A border
/// below 0 cuts.
pub(super) fn pad(call: &Call<'_>) -> Result<Array> {
    let (x, borders, fill) = (call.x(0)?, call.ints_of(1)?, call.optional(2));
    let mode = call.word("mode", "constant")?;
    if !matches!(mode, "constant" | "reflect") {
        return call.unknown_word("mode", mode);
    }
    let rank = x.rank();
    if borders.len() != 2 * rank {
        return Err(Error::shape(format!("{} borders for {rank} axes", borders.len())));
    }
    let zero = Array::zeros(x.dtype(), [])?;
    let strides = strides(x.dims());
    let one = |axis: usize| -> Result<Vec<Option<usize>>> {
        let size = x.dims()[axis] as i64;
        let offset = |i: i64| match (0..size).contains(&i) {
            true => Ok(Some(i as usize * strides[axis])),
            false if mode == "constant" => Ok(None),
            false => {
                let mirrored = if i < 0 { -i } else { 2 * (size - 1) - i };
                match (0..size).contains(&mirrored) {
                    true => Ok(Some(mirrored as usize * strides[axis])),
                    false => Err(Error::shape(format!("a mirrored border is wider than an axis of {size}"))),
                }
            }
        };
        (-borders[axis]..size + borders[rank + axis]).map(offset).collect()
    };
    let axes = (0..rank).map(one).collect::<Result<Vec<_>>>()?;
    mapped(x, Some(fill.unwrap_or(&zero)), &axes)
}
