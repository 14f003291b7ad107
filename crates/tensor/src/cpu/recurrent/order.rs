//! The order in which tasks take rows: long ones first, so that rows of similar length are in one
//! task, which ends with its longest row.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::{Inputs, Sizes};

/// The rows of a batch, those with a late end first.
pub(super) struct Order {
    /// The step after the last one that counts, and the row. Empty if there is no mask: rows stay
    /// in their places.
    rows: SmallVec<[(Reverse<usize>, usize); 64]>,
    time: usize,
}

impl Order {
    pub(super) fn new(inputs: &Inputs<'_>, sizes: Sizes) -> Order {
        let mask = inputs.mask.unwrap_or_default();
        let end = |row: &[bool]| row.iter().rposition(|&counts| counts).map_or(0, |last| last + 1);
        let rows = mask.chunks_exact(sizes.time.max(1)).enumerate();
        let mut rows: SmallVec<_> = rows.map(|(i, row)| (Reverse(end(row)), i)).collect();
        rows.sort_unstable();
        Order { rows, time: sizes.time }
    }

    /// The row at a place.
    pub(super) fn row(&self, place: usize) -> usize {
        self.rows.get(place).map_or(place, |&(_, row)| row)
    }

    /// The step after the last one that counts in the row at a place, or in one at a later place.
    pub(super) fn end(&self, place: usize) -> usize {
        self.rows.get(place).map_or(self.time, |&(Reverse(end), _)| end)
    }
}
