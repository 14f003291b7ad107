//! The order in which tasks take rows: long ones first, so that rows of similar length are in one
//! task, which ends with its longest row. Steps after the end of a row are left out of products.

use std::cmp::Reverse;

use super::{Inputs, Recurrent, Sizes, take};
use crate::cpu::matmul::Pieces;

/// Writes for each row the number of steps up to its end, and up to the ends of the rows before it.
/// A row ends after its last step that counts. `mask` is `[rows, time]`.
pub fn ends(mask: &[bool], time: usize, to: &mut [u32]) {
    assert!(mask.len() == to.len() * time && mask.len() <= u32::MAX as usize, "{} steps in rows of {time}", mask.len());
    let mut before = 0;
    for (i, to) in to.iter_mut().enumerate() {
        let row = &mask[i * time..(i + 1) * time];
        before += row.iter().rposition(|&counts| counts).map_or(0, |last| last as u32 + 1);
        *to = before;
    }
}

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
        // SAFETY: all bits are valid in both types, which are aligned alike.
        let (_, steps, _) = unsafe { take(scratch, n_rows).align_to_mut::<u32>() };
        ends(if n_rows == 0 { &[] } else { mask }, time, steps);
        // SAFETY: as above, for pairs.
        let (_, rows, _) = unsafe { take(scratch, 2 * n_rows).align_to_mut::<[u32; 2]>() };
        let mut before = 0;
        for (i, (to, steps)) in rows.iter_mut().zip(&*steps).enumerate() {
            *to = [steps - before, i as u32];
            before = *steps;
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
