//! Reduces rows by segment: TensorFlow's `Segment*` over sorted ids, and `UnsortedSegment*`.
//!
//! A segment is reduced in the order of its positions, by one task. Empty segments follow
//! TensorFlow: 0, or 1 for a product; an unsorted maximum or minimum yields the dtype's lowest or
//! highest finite value instead. A NaN makes its segment NaN, also for maximum and minimum, where
//! TensorFlow's answer depends on the position.

use super::index::{BadIndex, Id};
use super::number::Number;
use super::scatter::accumulate;
use super::split::for_each_rows;
use crate::parallel::Pool;
use std::fmt;

/// The way the rows of a segment are reduced.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    /// The sum of the rows.
    Sum,
    /// The sum divided by the number of rows.
    Mean,
    /// The largest, element by element.
    Max,
    /// The smallest, element by element.
    Min,
    /// The product of the rows.
    Prod,
}

/// The reason why segment ids are invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadSegment {
    /// An id is not a segment.
    OutOfRange(BadIndex),
    /// The id at this position is smaller than the one before.
    NotSorted {
        /// The position among the ids.
        position: usize,
    },
}

impl fmt::Display for BadSegment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSegment::OutOfRange(bad) => write!(f, "segment {bad}"),
            BadSegment::NotSorted { position } => {
                write!(
                    f,
                    "the segment ids are not sorted: the id at position {position} is smaller than the one before it"
                )
            }
        }
    }
}

impl std::error::Error for BadSegment {}

/// Reduces segments of ascending ids: `out[s, :]` is the reduction of the rows `x[k, :]` with
/// `ids[k] == s`.
pub fn segment<T: Number, I: Id>(
    pool: &Pool,
    reduction: Reduction,
    width: usize,
    ids: &[I],
    x: &[T],
    out: &mut [T],
) -> Result<(), BadSegment> {
    if width == 0 {
        return Ok(());
    }
    check_sorted(ids, out.len() / width)?;
    match reduction {
        Reduction::Sum | Reduction::Mean => {
            segments(pool, width, ids, x, out, T::ZERO, reduction == Reduction::Mean, &T::plus);
        }
        Reduction::Max => segments(pool, width, ids, x, out, T::ZERO, false, &larger),
        Reduction::Min => segments(pool, width, ids, x, out, T::ZERO, false, &smaller),
        Reduction::Prod => segments(pool, width, ids, x, out, T::ONE, false, &T::times),
    }
    Ok(())
}

/// The number of `u32` of scratch memory that [`unsorted_segment`] needs.
pub fn unsorted_segment_scratch_len(reduction: Reduction, n_segments: usize) -> usize {
    if reduction == Reduction::Mean { n_segments } else { 0 }
}

/// Like [`segment`], for ids in any order. Rows with a negative id are dropped.
///
/// `scratch` must have [`unsorted_segment_scratch_len`] elements.
pub fn unsorted_segment<T: Number, I: Id>(
    pool: &Pool,
    reduction: Reduction,
    width: usize,
    ids: &[I],
    x: &[T],
    out: &mut [T],
    scratch: &mut [u32],
) -> Result<(), BadIndex> {
    if width == 0 {
        return Ok(());
    }
    let limit = out.len() / width;
    for (position, id) in ids.iter().enumerate() {
        if id.widen() >= 0 && id.position(limit).is_none() {
            return Err(BadIndex { position, index: id.widen(), limit });
        }
    }
    let target = |k: usize| ids[k].position(limit);
    match reduction {
        Reduction::Sum | Reduction::Mean => {
            out.fill(T::ZERO);
            accumulate(pool, width, x, out, &target, &T::plus);
        }
        Reduction::Max => {
            out.fill(T::LOWEST);
            accumulate(pool, width, x, out, &target, &larger);
        }
        Reduction::Min => {
            out.fill(T::HIGHEST);
            accumulate(pool, width, x, out, &target, &smaller);
        }
        Reduction::Prod => {
            out.fill(T::ONE);
            accumulate(pool, width, x, out, &target, &T::times);
        }
    }
    if reduction == Reduction::Mean {
        let counts = &mut scratch[..limit];
        counts.fill(0);
        (0..ids.len()).filter_map(target).for_each(|segment| counts[segment] += 1);
        for (sums, &count) in out.chunks_exact_mut(width).zip(&*counts) {
            divide(sums, count.max(1) as usize);
        }
    }
    Ok(())
}

/// Reduces each segment of ascending ids. Tasks are ranges of segments and find their first
/// position by bisection.
#[allow(clippy::too_many_arguments)] // one call per reduction, so that each gets its own loop
fn segments<T: Number, I: Id>(
    pool: &Pool,
    width: usize,
    ids: &[I],
    x: &[T],
    out: &mut [T],
    empty: T,
    mean: bool,
    combine: &(impl Fn(T, T) -> T + Sync),
) {
    for_each_rows(pool, out, width, &|first, part| {
        let mut k = ids.partition_point(|id| id.widen() < first as i64);
        for (segment, row) in (first as i64..).zip(part.chunks_exact_mut(width)) {
            let start = k;
            while k < ids.len() && ids[k].widen() == segment {
                let values = &x[k * width..(k + 1) * width];
                if k == start {
                    row.copy_from_slice(values);
                } else {
                    row.iter_mut().zip(values).for_each(|(sum, value)| *sum = combine(*sum, *value));
                }
                k += 1;
            }
            if k == start {
                row.fill(empty);
            } else if mean {
                divide(row, k - start);
            }
        }
    });
}

fn divide<T: Number>(row: &mut [T], count: usize) {
    let count = T::from_count(count);
    row.iter_mut().for_each(|sum| *sum = sum.over(count));
}

#[inline(always)]
fn larger<T: Number>(a: T, b: T) -> T {
    if b > a || b.is_nan() { b } else { a }
}

#[inline(always)]
fn smaller<T: Number>(a: T, b: T) -> T {
    if b < a || b.is_nan() { b } else { a }
}

fn check_sorted<I: Id>(ids: &[I], limit: usize) -> Result<(), BadSegment> {
    let mut before = 0;
    for (position, id) in ids.iter().enumerate() {
        let index = id.widen();
        if id.position(limit).is_none() {
            return Err(BadSegment::OutOfRange(BadIndex { position, index, limit }));
        }
        if index < before {
            return Err(BadSegment::NotSorted { position });
        }
        before = index;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
