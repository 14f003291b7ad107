//! Ids that select rows, and the error for an id out of range.

use std::fmt;

/// An integer type of ids.
pub trait Id: crate::Element + Eq {
    /// The id as a position below `limit`, or `None` if it is negative or too large.
    fn position(self, limit: usize) -> Option<usize>;

    /// The id as an i64.
    fn widen(self) -> i64;
}

impl Id for i32 {
    #[inline(always)]
    fn position(self, limit: usize) -> Option<usize> {
        i64::from(self).position(limit)
    }

    #[inline(always)]
    fn widen(self) -> i64 {
        i64::from(self)
    }
}

impl Id for i64 {
    #[inline(always)]
    fn position(self, limit: usize) -> Option<usize> {
        // As an unsigned number, a negative id is larger than any limit.
        ((self as u64) < limit as u64).then_some(self as usize)
    }

    #[inline(always)]
    fn widen(self) -> i64 {
        self
    }
}

/// An id outside the axis it indexes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadIndex {
    /// The position among the ids, in row-major order.
    pub position: usize,
    /// The id.
    pub index: i64,
    /// The number of positions of the axis; the id must be below it.
    pub limit: usize,
}

impl fmt::Display for BadIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "index {} at position {} is not in [0, {})", self.index, self.position, self.limit)
    }
}

impl std::error::Error for BadIndex {}

/// Checks all ids against one limit.
pub(super) fn check<I: Id>(ids: &[I], limit: usize) -> Result<(), BadIndex> {
    // A block without an early exit lets the comparison vectorise.
    for (number, block) in ids.chunks(1024).enumerate() {
        if !block.iter().fold(true, |good, id| good & id.position(limit).is_some()) {
            for (i, id) in block.iter().enumerate() {
                if id.position(limit).is_none() {
                    return Err(BadIndex { position: number * 1024 + i, index: id.widen(), limit });
                }
            }
        }
    }
    Ok(())
}

/// Checks ids [n, dims.len()] of coordinates, each against its own axis.
pub(super) fn check_coordinates<I: Id>(ids: &[I], dims: &[usize]) -> Result<(), BadIndex> {
    if dims.is_empty() {
        return Ok(());
    }
    for (position, id) in ids.iter().enumerate() {
        let limit = dims[position % dims.len()];
        if id.position(limit).is_none() {
            return Err(BadIndex { position, index: id.widen(), limit });
        }
    }
    Ok(())
}

/// The row of an array of `dims` that one tuple of checked coordinates selects.
#[inline(always)]
pub(super) fn row_of<I: Id>(coordinates: &[I], dims: &[usize]) -> usize {
    coordinates.iter().zip(dims).fold(0, |row, (id, &len)| row * len + id.widen() as usize)
}
