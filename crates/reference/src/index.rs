//! Indexing: gather, scatter, segments, one-hot.

use estimand_graph::Reduction;
use estimand_tensor::{DType, Dims, Error, Result};

use super::elementwise::{maximum, minimum};
use super::layout::scatter;
use super::reduce::limits;
use super::value::{Data, Wide, check_dims, count, index_of, position};

/// Checks indices and returns them as positions on an axis of size `limit`.
pub(super) fn checked_ids(what: &str, ids: &Wide, limit: usize) -> Result<Vec<usize>> {
    let check = |(at, &id): (usize, &i64)| match usize::try_from(id) {
        Ok(id) if id < limit => Ok(id),
        _ => Err(Error::index(format!(
            "{what}{:?} is {id}, which is not in [0, {limit})",
            index_of(ids.dims(), at).as_slice()
        ))),
    };
    ids.as_ints()?.iter().enumerate().map(check).collect()
}

/// Gathers slices of an axis of `params`. The first `batch_dims` axes of both are matched.
pub(super) fn gather(params: &Wide, indices: &Wide, axis: usize, batch_dims: usize) -> Result<Wide> {
    check_dims("batch of indices", &indices.dims[..batch_dims], &params.dims[..batch_dims])?;
    let ids = checked_ids("indices", indices, params.dims[axis])?;
    let (lead, rest) = (&params.dims[..axis], &params.dims[axis + 1..]);
    let picked = &indices.dims[batch_dims..];
    let dims: Dims = lead.iter().chain(picked).chain(rest).copied().collect();
    Ok(params.pick(&dims, |index| {
        let (lead, inner) = index.split_at(axis);
        let (picked, rest) = inner.split_at(picked.len());
        let at: Dims = lead[..batch_dims].iter().chain(picked).copied().collect();
        let from: Dims = lead.iter().chain([&ids[position(&indices.dims, &at)]]).chain(rest).copied().collect();
        position(&params.dims, &from)
    }))
}

/// For each row of the indices' last axis, the position in `dims` of its slice.
fn slices(indices: &Wide, dims: &[usize]) -> Result<Vec<usize>> {
    let depth = indices.dims[indices.dims.len() - 1];
    let n_rows = count(&indices.dims[..indices.dims.len() - 1]);
    let ids = indices.as_ints()?;
    let slice = |row: usize| {
        let coordinates = &ids[row * depth..(row + 1) * depth];
        let inside = |(&i, &n): (&i64, &usize)| usize::try_from(i).ok().filter(|&i| i < n);
        let index: Option<Dims> = coordinates.iter().zip(dims).map(inside).collect();
        index.map(|index| position(&dims[..depth], &index)).ok_or_else(|| {
            let at = index_of(&indices.dims[..indices.dims.len() - 1], row);
            Error::index(format!("indices{:?} is {coordinates:?}, which is not inside {dims:?}", at.as_slice()))
        })
    };
    (0..n_rows).map(slice).collect()
}

pub(super) fn gather_nd(params: &Wide, indices: &Wide) -> Result<Wide> {
    let slices = slices(indices, params.dims())?;
    let (rows, depth) = indices.dims.split_at(indices.dims.len() - 1);
    let rest = &params.dims[depth[0]..];
    let dims: Dims = rows.iter().chain(rest).copied().collect();
    Ok(params.pick(&dims, |index| {
        let (row, inner) = index.split_at(rows.len());
        slices[position(rows, row)] * count(rest) + position(rest, inner)
    }))
}

/// Zeros of `dims` with the updates added.
pub(super) fn scatter_nd(indices: &Wide, updates: &Wide, dims: &[usize]) -> Result<Wide> {
    let slices = slices(indices, dims)?;
    let (rows, depth) = indices.dims.split_at(indices.dims.len() - 1);
    let rest = &dims[depth[0]..];
    let expected: Dims = rows.iter().chain(rest).copied().collect();
    check_dims("tensor of updates", updates.dims(), &expected)?;
    scatter(updates, dims, |index| {
        let (row, inner) = index.split_at(rows.len());
        Some(slices[position(rows, row)] * count(rest) + position(rest, inner))
    })
}

/// Reduces the rows of `data` with the same id to `dims`; ids below 0 are dropped.
pub(super) fn segments(kind: Reduction, data: &Wide, ids: &Wide, dims: &[usize]) -> Result<Wide> {
    check_dims("tensor of segment ids", ids.dims(), &data.dims[..ids.dims.len()])?;
    let segments: Vec<Option<usize>> = {
        let known = |(at, &id): (usize, &i64)| match usize::try_from(id) {
            Err(_) => Ok(None),
            Ok(id) if id < dims[0] => Ok(Some(id)),
            Ok(id) => Err(Error::index(format!(
                "segment_ids{:?} is {id}, which is not below {}",
                index_of(ids.dims(), at).as_slice(),
                dims[0]
            ))),
        };
        ids.as_ints()?.iter().enumerate().map(known).collect::<Result<_>>()?
    };
    let width = count(&dims[1..]);
    fn fold<T: Copy>(
        values: &[T],
        segments: &[Option<usize>],
        width: usize,
        mut result: Vec<T>,
        step: impl Fn(T, T) -> T,
    ) -> Vec<T> {
        for (at, &value) in values.iter().enumerate() {
            if let Some(segment) = segments[at / width] {
                let to = segment * width + at % width;
                result[to] = step(result[to], value);
            }
        }
        result
    }
    let n = count(dims);
    Ok(match &data.data {
        Data::Float(v) => {
            // TF: an empty segment has the lowest finite number, not an infinity.
            let most = if data.dtype == DType::F32 { f64::from(f32::MAX) } else { f64::MAX };
            let result = match kind {
                Reduction::Max => fold(v, &segments, width, vec![-most; n], maximum),
                Reduction::Min => fold(v, &segments, width, vec![most; n], minimum),
                Reduction::Prod => fold(v, &segments, width, vec![1.0; n], |a, b| a * b),
                _ => fold(v, &segments, width, vec![0.0; n], |a, b| a + b),
            };
            Wide::floats(data.dtype, dims, result)
        }
        Data::Int(v) => {
            let (lowest, highest) = limits(data.dtype);
            let result = match kind {
                Reduction::Max => fold(v, &segments, width, vec![lowest; n], i64::max),
                Reduction::Min => fold(v, &segments, width, vec![highest; n], i64::min),
                Reduction::Prod => fold(v, &segments, width, vec![1; n], i64::wrapping_mul),
                _ => fold(v, &segments, width, vec![0; n], i64::wrapping_add),
            };
            Wide::ints(data.dtype, dims, result)
        }
        _ => return Err(data.wrong_kind("numbers")),
    })
}

/// Adds an axis with `on` at the index and `off` elsewhere. An index out of range sets no element.
pub(super) fn one_hot(indices: &Wide, on: &Wide, off: &Wide, axis: usize, dims: &[usize]) -> Result<Wide> {
    let ids = indices.as_ints()?;
    let both = super::layout::concat(0, &[&on.reshape(&[1])?, &off.reshape(&[1])?])?;
    Ok(both.pick(dims, |index| {
        let mut at: Dims = index.into();
        let place = at.remove(axis);
        usize::from(ids[position(&indices.dims, &at)] != place as i64)
    }))
}
