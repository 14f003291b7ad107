//! Adds rows at ids: `ScatterNd`, and the gradients of lookups, dense or as unique rows.
//!
//! An output element is summed in the order of the positions that refer to it, whichever task
//! computes it: a task owns columns (or rows, when they are narrow) of the output and reads all
//! ids. So the bits do not depend on the cut.

use super::index::{BadIndex, Id, check, check_coordinates, row_of};
use super::number::Number;
use super::prefetch::{AHEAD, Prefetch};
use super::size::product;
use crate::parallel::{DisjointMut, Pool};
use std::ops::Range;

/// Computes `out[ids[k], :] += x[k, :]` for rows of `width`. An id outside the rows of `out` is an
/// error, and nothing is added.
pub fn scatter_add<T: Number, I: Id>(
    pool: &Pool,
    width: usize,
    ids: &[I],
    x: &[T],
    out: &mut [T],
) -> Result<(), BadIndex> {
    if width == 0 {
        return Ok(());
    }
    check(ids, out.len() / width)?;
    accumulate(pool, width, x, out, &|k| Some(ids[k].widen() as usize), &T::plus);
    Ok(())
}

/// Writes zeros of [dims.., inner] with row `x[k, :]` added at the coordinates `ids[k, :]`.
pub fn scatter_nd<T: Number, I: Id>(
    pool: &Pool,
    dims: &[usize],
    inner: usize,
    ids: &[I],
    x: &[T],
    out: &mut [T],
) -> Result<(), BadIndex> {
    assert_eq!(out.len(), product(&[product(dims), inner]), "output of {dims:?} x {inner}");
    check_coordinates(ids, dims)?;
    out.fill(T::ZERO);
    accumulate(pool, inner, x, out, &|k| Some(row_of(&ids[k * dims.len()..][..dims.len()], dims)), &T::plus);
    Ok(())
}

/// Computes `out[r, :] = combine(out[r, :], x[k, :])` for every row k of `x` in order, if
/// `target(k)` is `Some(r)`.
///
/// Targets must be below the number of rows of `out`.
pub(super) fn accumulate<T: Number>(
    pool: &Pool,
    width: usize,
    x: &[T],
    out: &mut [T],
    target: &(impl Fn(usize) -> Option<usize> + Sync),
    combine: &(impl Fn(T, T) -> T + Sync),
) {
    if width == 0 || out.is_empty() {
        return;
    }
    let n_out = out.len() / width;
    let cut = Cut::new(x.len() / width, width, n_out, size_of::<T>());
    let table = Prefetch::new(out.as_ptr(), out.len(), width);
    let n = x.len() / width;
    let out = DisjointMut::new(out);
    cut.run(pool, &|columns, rows| {
        for (k, values) in x.chunks_exact(width).enumerate() {
            if table.pays
                && k + AHEAD < n
                && let Some(row) = target(k + AHEAD).filter(|row| rows.contains(row))
            {
                table.row(row, columns.clone());
            }
            if let Some(row) = target(k).filter(|row| rows.contains(row)) {
                // SAFETY: tasks of one cut share no (row, column) of the output, and `row` belongs
                // to this task.
                let sums = unsafe { out.slice(row * width + columns.start, columns.len()) };
                for (sum, value) in sums.iter_mut().zip(&values[columns.clone()]) {
                    *sum = combine(*sum, *value);
                }
            }
        }
    });
}

/// The number of `u32` of scratch memory that [`unique`] needs for `n` ids.
pub fn unique_scratch_len(n: usize) -> usize {
    product(&[2, n]).next_power_of_two()
}

/// Finds the distinct ids in order of first appearance, and the position of each id among them.
///
/// Returns the number of distinct ids; `unique[..count]` and all of `inverse` are written. Both
/// have the length of `ids`, which must be below 2^31; `scratch` has [`unique_scratch_len`].
pub fn unique<I: Id>(ids: &[I], unique: &mut [I], inverse: &mut [i32], scratch: &mut [u32]) -> usize {
    const EMPTY: u32 = u32::MAX;
    let size = unique_scratch_len(ids.len());
    let table = &mut scratch[..size];
    table.fill(EMPTY);
    let shift = 64 - size.trailing_zeros().max(1);
    let mut count = 0;
    for (id, place) in ids.iter().zip(inverse) {
        // Multiplying by 2^64 / golden ratio spreads runs of ids over the table; the high bits are
        // the best mixed.
        let mut slot = ((id.widen() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize & (size - 1);
        let found = loop {
            match table[slot] {
                EMPTY => {
                    table[slot] = count as u32;
                    unique[count] = *id;
                    count += 1;
                    break count - 1;
                }
                seen if unique[seen as usize] == *id => break seen as usize,
                _ => slot = (slot + 1) & (size - 1),
            }
        };
        *place = found as i32;
    }
    count
}

/// Sums the rows of `x` with the same position: `out[inverse[k], :] += x[k, :]`, starting from
/// zero, with `inverse` from [`unique`]. `out` has one row per unique id.
pub fn sum_rows<T: Number>(pool: &Pool, width: usize, inverse: &[i32], x: &[T], out: &mut [T]) {
    if width == 0 || out.is_empty() {
        return;
    }
    let n_out = out.len() / width;
    let cut = Cut::by_rows(inverse.len(), width, n_out, size_of::<T>());
    let out = DisjointMut::new(out);
    cut.run(pool, &|_, rows| {
        let (mut seen, mut k) = (0, 0);
        while k < inverse.len() {
            // Positions are numbered by first appearance. As long as each one is the next new
            // number, rows are copied as a block.
            let n_new = inverse[k..].iter().zip(seen..).take_while(|(place, next)| **place as usize == *next).count();
            let (first, last) = (rows.start.max(seen), rows.end.min(seen + n_new));
            if first < last {
                // SAFETY: tasks of one cut share no row of the output.
                let block = unsafe { out.slice(first * width, (last - first) * width) };
                block.copy_from_slice(&x[(k + first - seen) * width..][..block.len()]);
            }
            seen += n_new;
            k += n_new;
            if k < inverse.len() {
                let row = inverse[k] as usize;
                if rows.contains(&row) {
                    // SAFETY: as above.
                    let sums = unsafe { out.slice(row * width, width) };
                    sums.iter_mut().zip(&x[k * width..]).for_each(|(sum, value)| *sum = sum.plus(*value));
                }
                k += 1;
            }
        }
    });
}

/// Sums the rows of a gradient by id: [`unique`] and [`sum_rows`] in one. Returns the number of
/// unique ids.
#[allow(clippy::too_many_arguments)] // the buffers of two kernels
pub fn unique_rows<T: Number, I: Id>(
    pool: &Pool,
    width: usize,
    ids: &[I],
    x: &[T],
    unique_ids: &mut [I],
    inverse: &mut [i32],
    out: &mut [T],
    scratch: &mut [u32],
) -> usize {
    let count = unique(ids, unique_ids, inverse, scratch);
    sum_rows(pool, width, inverse, x, &mut out[..product(&[count, width])]);
    count
}

/// The tasks of a scatter's output: column blocks if rows are wide, otherwise row ranges.
pub(super) struct Cut {
    width: usize,
    columns: usize,
    n_rows: usize,
    rows: usize,
}

impl Cut {
    /// Work of fewer bytes is one task.
    const SMALL: usize = 256 << 10;
    /// The number of row ranges of a narrow scatter: each task reads all ids, so more tasks would
    /// cost more than they gain.
    const RANGES: usize = 4;

    /// The cut for `n` rows of `width` elements of `size` bytes that are added to any of `n_rows`.
    pub(super) fn new(n: usize, width: usize, n_rows: usize, size: usize) -> Cut {
        let line = 64 / size;
        if n.saturating_mul(width).saturating_mul(size) < Cut::SMALL || width < 2 * line {
            Cut::by_rows(n, width, n_rows, size)
        } else {
            Cut { width, columns: (width / 8).next_multiple_of(line), n_rows, rows: n_rows }
        }
    }

    /// Like `new`, but never cuts a row.
    fn by_rows(n: usize, width: usize, n_rows: usize, size: usize) -> Cut {
        let ranges = if n.saturating_mul(width).saturating_mul(size) < Cut::SMALL { 1 } else { Cut::RANGES };
        Cut { width, columns: width, n_rows, rows: n_rows.div_ceil(ranges) }
    }

    /// Whether the whole output is one block.
    pub(super) fn is_one_task(&self) -> bool {
        self.columns == self.width && self.rows == self.n_rows
    }

    /// Calls `work(columns, rows)` for every block of the cut.
    pub(super) fn run(&self, pool: &Pool, work: &(dyn Fn(Range<usize>, Range<usize>) + Sync)) {
        let (across, down) = (self.width.div_ceil(self.columns), self.n_rows.div_ceil(self.rows));
        pool.run(across * down, &|task| {
            let (column, row) = (task % across * self.columns, task / across * self.rows);
            work(column..self.width.min(column + self.columns), row..self.n_rows.min(row + self.rows));
        });
    }
}

#[cfg(test)]
mod tests;
