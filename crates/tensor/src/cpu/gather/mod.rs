//! Selects rows by ids: embedding lookups, `GatherV2`, `GatherNd`.

use super::index::{BadIndex, Id, check, check_coordinates, row_of};
use super::prefetch::{AHEAD, Prefetch};
use super::size::product;
use super::split::for_each_rows;
use crate::parallel::Pool;

/// The sizes of a gather: `x` is [batch, outer, limit, inner], ids are [batch, n_ids], the output
/// is [batch, outer, n_ids, inner].
///
/// A lookup of rows has `batch` = `outer` = 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GatherDims {
    /// Product of the leading dims that `x` and the ids share (`batch_dims`).
    pub batch: usize,
    /// Product of the dims between those and the gathered axis.
    pub outer: usize,
    /// Length of the gathered axis.
    pub limit: usize,
    /// Ids per batch.
    pub n_ids: usize,
    /// Product of the dims after the gathered axis.
    pub inner: usize,
}

/// Computes `out[b, o, k, :] = x[b, o, ids[b, k], :]`. Returns the first id that is out of range,
/// before anything is written.
pub fn gather<I: Id>(
    pool: &Pool,
    dims: GatherDims,
    elem_size: usize,
    x: &[u8],
    ids: &[I],
    out: &mut [u8],
) -> Result<(), BadIndex> {
    let GatherDims { batch, outer, limit, n_ids, inner } = dims;
    let width = product(&[inner, elem_size]);
    assert_eq!(ids.len(), product(&[batch, n_ids]), "ids of {dims:?}");
    assert_eq!(x.len(), product(&[batch, outer, limit, width]), "table of {dims:?}");
    assert_eq!(out.len(), product(&[batch, outer, n_ids, width]), "output of {dims:?}");
    check(ids, limit)?;
    if (batch, outer) == (1, 1) {
        // Plain lookups of rows need no division per row.
        copy_rows(pool, width, x, out, &|row| ids[row].widen() as usize);
        return Ok(());
    }
    copy_rows(pool, width, x, out, &|row| {
        let (plane, k) = (row / n_ids, row % n_ids);
        plane * limit + ids[plane / outer * n_ids + k].widen() as usize
    });
    Ok(())
}

/// Computes `out[k, :] = x[ids[k, 0], ids[k, 1], .., :]`. `dims` are the indexed axes of `x`,
/// `inner` is the product of the others.
pub fn gather_nd<I: Id>(
    pool: &Pool,
    dims: &[usize],
    inner: usize,
    elem_size: usize,
    x: &[u8],
    ids: &[I],
    out: &mut [u8],
) -> Result<(), BadIndex> {
    let width = product(&[inner, elem_size]);
    assert_eq!(x.len(), product(&[product(dims), width]), "array of {dims:?} x {inner}");
    check_coordinates(ids, dims)?;
    copy_rows(pool, width, x, out, &|row| row_of(&ids[row * dims.len()..][..dims.len()], dims));
    Ok(())
}

/// Copies row `source(i)` of `x` to row i of `out`. Rows have `width` bytes.
fn copy_rows(pool: &Pool, width: usize, x: &[u8], out: &mut [u8], source: &(impl Fn(usize) -> usize + Sync)) {
    match width {
        0 => {}
        1 => copy_elements::<1>(pool, x, out, source),
        4 => copy_elements::<4>(pool, x, out, source),
        8 => copy_elements::<8>(pool, x, out, source),
        16 => copy_elements::<16>(pool, x, out, source),
        32 => copy_elements::<32>(pool, x, out, source),
        64 => copy_elements::<64>(pool, x, out, source),
        _ => {
            let table = Prefetch::new(x.as_ptr(), x.len(), width);
            for_each_rows(pool, out, width, &|first, part| {
                let last = first + part.len() / width;
                for (row, values) in (first..).zip(part.chunks_exact_mut(width)) {
                    if table.pays && row + AHEAD < last {
                        table.row(source(row + AHEAD), 0..width);
                    }
                    let from = source(row) * width;
                    values.copy_from_slice(&x[from..from + width]);
                }
            });
        }
    }
}

/// Copies rows of at most one cache line without a call to `memcpy` and without prefetching (the
/// CPU overlaps plain loads by itself).
fn copy_elements<const N: usize>(pool: &Pool, x: &[u8], out: &mut [u8], source: &(impl Fn(usize) -> usize + Sync)) {
    let x = x.as_chunks::<N>().0;
    for_each_rows(pool, out.as_chunks_mut::<N>().0, 1, &|first, part| {
        for (row, value) in (first..).zip(part) {
            *value = x[source(row)];
        }
    });
}

#[cfg(test)]
mod tests;
