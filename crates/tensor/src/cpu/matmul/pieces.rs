//! Rows of an array that is cut into pieces, such as the steps of sequences: the first rows of each
//! piece count, and the others are left out.

use std::ops::Range;

/// Rows of an array that is cut into pieces of `step` rows: the first ones of each piece.
#[derive(Clone, Copy, Debug)]
pub struct Pieces<'a> {
    /// The number of rows that are taken of each piece and of the pieces before it.
    pub ends: &'a [u32],
    /// The number of rows of a piece.
    pub step: usize,
}

/// The part of a product that is computed.
#[derive(Clone, Copy, Default, Debug)]
pub enum Only<'a> {
    /// All of it.
    #[default]
    Everything,
    /// Rows of A, and so of the result. Its other rows become zero.
    Rows(Pieces<'a>),
    /// Columns of A and rows of B: some k. The others are known to add nothing.
    Terms(Pieces<'a>),
}

impl<'a> Pieces<'a> {
    /// The number of rows that are taken of the pieces before a piece.
    pub(crate) fn start(&self, piece: usize) -> usize {
        piece.checked_sub(1).map_or(0, |before| self.ends[before] as usize)
    }

    /// The piece that holds row `at` of those that are taken.
    pub(crate) fn piece(&self, at: usize) -> usize {
        self.ends.partition_point(|&end| end as usize <= at)
    }

    /// The rows of a range of the array that are taken, piece by piece, and after each of them the
    /// rows that are left out. Both may be empty.
    pub(crate) fn within(self, rows: Range<usize>) -> impl Iterator<Item = [Range<usize>; 2]> + use<'a> {
        let (step, first) = (self.step.max(1), rows.start / self.step.max(1));
        let inside = move |from: usize, to: usize| from.clamp(rows.start, rows.end)..to.clamp(rows.start, rows.end);
        let last = rows.end.div_ceil(step).min(self.ends.len());
        (first..last).map(move |piece| {
            let end = piece * step + self.ends[piece] as usize - self.start(piece);
            [inside(piece * step, end), inside(end, (piece + 1) * step)]
        })
    }

    /// Whether these are rows of an array of `n` rows.
    pub(crate) fn fits(&self, n: usize) -> bool {
        let mut lens = (0..self.ends.len()).map(|piece| (self.ends[piece] as usize).checked_sub(self.start(piece)));
        self.ends.len().checked_mul(self.step) == Some(n) && lens.all(|len| len.is_some_and(|len| len <= self.step))
    }
}
