//! The order in which tasks take rows: long ones first, so that rows of similar length are in one
//! task, which ends with its longest row. Steps after the end of a row are left out of products.

use std::cmp::Reverse;

use super::{Inputs, Recurrent, Sizes, take};
use crate::cpu::matmul::Pieces;

/// The rows of a batch, those with a late end first.
pub(super) struct Order<'a> {
    /// The step after the last one that counts, and the row. Empty if there is no mask: rows stay
    /// in their places.
    rows: &'a [[u32; 2]],
    /// The number of steps up to the end of each row in its place, and of the rows before it.
    steps: &'a [u32],
    time: usize,
}

impl<'a> Order<'a> {
    /// The scratch memory of a row.
    pub(super) fn row_len(step: &Recurrent) -> usize {
        if step.masked { 3 } else { 0 }
    }

    pub(super) fn new(inputs: &Inputs<'_>, sizes: Sizes, scratch: &mut &'a mut [f32]) -> Order<'a> {
        let (mask, time) = (inputs.mask.unwrap_or_default(), sizes.time);
        let n_rows = mask.len().checked_div(time).unwrap_or(0);
        assert!(mask.len() <= u32::MAX as usize, "{sizes:?} has too many rows or steps");
        let end = |row: &[bool]| row.iter().rposition(|&counts| counts).map_or(0, |last| last + 1);
        // SAFETY: all bits are valid in both types, and a pair is aligned as a float is.
        let (_, rows, _) = unsafe { take(scratch, 2 * n_rows).align_to_mut::<[u32; 2]>() };
        for (i, (to, row)) in rows.iter_mut().zip(mask.chunks_exact(time.max(1))).enumerate() {
            *to = [end(row) as u32, i as u32];
        }
        // SAFETY: as above.
        let (_, steps, _) = unsafe { take(scratch, n_rows).align_to_mut::<u32>() };
        let mut before = 0;
        for (steps, [end, _]) in steps.iter_mut().zip(&*rows) {
            before += end;
            *steps = before;
        }
        rows.sort_unstable_by_key(|&[end, row]| (Reverse(end), row));
        Order { rows, steps, time }
    }

    /// The steps that products over all steps add up: up to the end of each row. None if there is
    /// no mask: all of them.
    pub(super) fn pieces(&self) -> Option<Pieces<'a>> {
        (!self.rows.is_empty()).then_some(Pieces { ends: self.steps, step: self.time })
    }

    /// The place of a step among those of [`Self::pieces`], unless it comes after the row's end.
    pub(super) fn place(&self, row: usize, t: usize) -> Option<usize> {
        let Some(pieces) = self.pieces() else { return Some(row * self.time + t) };
        let place = pieces.start(row) + t;
        (place < pieces.ends[row] as usize).then_some(place)
    }

    /// The row at a place.
    pub(super) fn row(&self, place: usize) -> usize {
        self.rows.get(place).map_or(place, |&[_, row]| row as usize)
    }

    /// The step after the last one that counts in the row at a place, or in one at a later place.
    pub(super) fn end(&self, place: usize) -> usize {
        self.rows.get(place).map_or(self.time, |&[end, _]| end as usize)
    }

    /// The number of rows of `n` from a place on that have not ended at a step: the first ones.
    pub(super) fn not_ended(&self, place: usize, n: usize, t: usize) -> usize {
        (0..n).take_while(|i| t < self.end(place + i)).count()
    }
}
