//! The patches of an image that a pooling window sees, one after the other.

use std::ops::Range;

use super::PoolShape;
use crate::cpu::cut::Task;

/// The part of an image that the window sees at one of its positions.
pub(super) struct Patch {
    /// The offset of the output pixel's first channel.
    pub out: usize,
    /// The offset of the first pixel, then the number of pixels and their distances.
    first: usize,
    pub rows: usize,
    pub columns: usize,
    row_step: usize,
    column_step: usize,
}

impl Patch {
    /// Calls `body` with the offset of channel `channel` of each pixel, row by row.
    #[inline(always)]
    pub fn for_each_pixel(&self, channel: usize, mut body: impl FnMut(usize)) {
        let mut row = self.first + channel;
        // 2 x 2 is the usual size: unrolled, there is little between one load and the next.
        if (self.rows, self.columns) == (2, 2) {
            let next = row + self.row_step;
            for at in [row, row + self.column_step, next, next + self.column_step] {
                body(at);
            }
            return;
        }
        for _ in 0..self.rows {
            let mut at = row;
            for _ in 0..self.columns {
                body(at);
                at = at.wrapping_add(self.column_step);
            }
            // After the last row there may be no valid address: the window may be higher than the
            // image.
            row = row.wrapping_add(self.row_step);
        }
    }
}

/// Calls `body` with the patch of every output pixel of the task.
#[inline(always)]
pub(super) fn for_each_patch(shape: &PoolShape, task: &Task, mut body: impl FnMut(&Patch)) {
    let PoolShape { height, width, channels, window, .. } = *shape;
    let (out_height, out_width) = (shape.out_height(), shape.out_width());
    let whole = window.positions_whole(1, width, out_width);
    // A window that sees only margin has no first pixel.
    let begin = |axis: usize, position: usize, taps: &Range<usize>| match taps.is_empty() {
        true => 0,
        false => window.element(axis, position, taps.start),
    };
    for image in task.images.clone() {
        for oy in task.rows.clone() {
            let rows = window.taps_inside(0, oy, height);
            let first_row = (image * height + begin(0, oy, &rows)) * width;
            for ox in 0..out_width {
                // Only at the margin are divisions needed.
                let columns = if whole.contains(&ox) { 0..window.size[1] } else { window.taps_inside(1, ox, width) };
                body(&Patch {
                    out: ((image * out_height + oy) * out_width + ox) * channels,
                    first: (first_row + begin(1, ox, &columns)) * channels,
                    rows: rows.len(),
                    columns: columns.len(),
                    row_step: window.dilation[0].wrapping_mul(width * channels),
                    column_step: window.dilation[1].wrapping_mul(channels),
                });
            }
        }
    }
}
