//! Copies of the operands of a filter's gradient, in the order in which the tile kernels read them.
//!
//! The left operand of this product has a row for each tap and channel, and k runs over the pixels.
//! In the image a step of k is one pixel: with many channels the next one lies on another page, so
//! the kernel waits for each. In a panel the rows of one tile lie side by side, one cache line for
//! each k. The right operand is copied where its rows share cache sets.

use std::ops::Range;

use super::ConvShape;
use super::segments::{BlockOfK, Stretches};
use crate::cpu::microkernel::{BLOCK_K, Finish, Kernels, Segment, Tile};
use crate::cpu::pack::{self, Block};
use crate::cpu::packed::PackedShape;
use crate::cpu::simd::{Simd, for_every_isa};

/// The number of floats that a panel has for each k.
const WIDTH: usize = 16;
/// The number of panels that are copied at once: they fit the second-level cache.
const PANELS: usize = 16;
/// The number of floats from one panel to the next. It is not a power of two, so that panels do not
/// share cache sets.
const STEP: usize = WIDTH * BLOCK_K + WIDTH;
/// The number of columns of the widest strip of the right operand.
const STRIP: usize = 48;

/// From this distance between pixels on (in floats), the left operand is copied, if it is used for
/// this number of columns at least.
const COPY_LEFT_FROM: usize = 256;
const COPY_LEFT_COLUMNS: usize = 48;
/// From this number of channels on, the right operand is copied, if it is used for this number of
/// rows at least.
const COPY_RIGHT_FROM: usize = 192;
const COPY_RIGHT_ROWS: usize = 48;

/// The rows of one tile: where they begin in the product and in the image, and how many.
#[derive(Clone, Copy, Default)]
struct Panel {
    row: usize,
    offset: usize,
    rows: usize,
}

/// The product of all taps with the gradients of some images.
pub(super) struct Panels<'a> {
    pub shape: &'a ConvShape,
    pub stretches: Stretches,
    /// The images, with their margin.
    pub x: &'a [f32],
    /// The gradients. Rows are read to the end of a vector.
    pub dy: &'a [f32],
    /// The rows of the product that are computed.
    pub rows: Range<usize>,
}

impl Panels<'_> {
    /// The number of floats of the copies.
    pub fn scratch_len(shape: &ConvShape) -> usize {
        let left = if Panels::copies_left(shape) { PANELS * STEP } else { 0 };
        let right = if Panels::copies_right(shape, usize::MAX) { STRIP * BLOCK_K } else { 0 };
        left + right
    }

    fn copies_left(shape: &ConvShape) -> bool {
        let step = shape.window.stride[1].saturating_mul(shape.in_channels);
        step >= COPY_LEFT_FROM && shape.out_channels >= COPY_LEFT_COLUMNS
    }

    fn copies_right(shape: &ConvShape, rows: usize) -> bool {
        shape.out_channels >= COPY_RIGHT_FROM && rows >= COPY_RIGHT_ROWS
    }

    /// The panels from a row on, as many as are computed at once. Tiles of nearly equal height.
    fn next(&self, row: &mut usize, height: usize) -> ([Panel; PANELS], usize) {
        let (mut panels, mut n) = ([Panel::default(); PANELS], 0);
        while *row < self.rows.end && n < PANELS {
            let (stretch, rest) = (*row / self.stretches.len, *row % self.stretches.len);
            let left = (self.stretches.len - rest).min(self.rows.end - *row);
            let rows = left.div_ceil(left.div_ceil(height));
            panels[n] = Panel { row: *row, offset: self.stretches.offset(stretch) + rest, rows };
            (n, *row) = (n + 1, *row + rows);
        }
        (panels, n)
    }

    /// Adds the products over one block of k to `sums`, which begins with the first of the rows.
    pub fn add(&self, block: &BlockOfK, accumulate: bool, sums: &mut [f32], scratch: &mut [f32]) {
        let Panels { shape, ref rows, .. } = *self;
        let (kernels, channels) = (Kernels::active(), shape.out_channels);
        let (left, right) = scratch.split_at_mut(if Panels::copies_left(shape) { PANELS * STEP } else { 0 });
        assert!(sums.len() >= rows.len() * channels);
        let a_k = shape.window.stride[1].wrapping_mul(shape.in_channels);
        let k = block.len();
        let (columns, copied) = (PackedShape { k, n: channels }, [Segment { start: 0, len: k }]);
        let copies_right = Panels::copies_right(shape, rows.len());
        let mut row = rows.start;
        while row < rows.end {
            let (panels, n) = self.next(&mut row, kernels.panel_height());
            let panels = &panels[..n];
            if !left.is_empty() {
                // SAFETY: every pixel of the block lies within the image; there is room for a block
                // of k of all panels.
                unsafe { copy(self.x.as_ptr(), a_k, block, panels, left.as_mut_ptr()) };
            }
            for index in 0..columns.n_panels() {
                let strip = columns.panel(index);
                let start = self.dy[block.first * channels + strip.column..].as_ptr();
                let (b, b_row) = match copies_right {
                    true => {
                        let to = Block { start: right.as_mut_ptr(), stride: strip.stride };
                        // SAFETY: the gradients have these rows and columns; `right` has room for
                        // the widest strip.
                        unsafe { pack::copy(Block { start, stride: channels }, to, k, strip.columns) };
                        (right.as_ptr(), strip.stride)
                    }
                    false => (start, channels),
                };
                for (i, panel) in panels.iter().enumerate() {
                    let place = (panel.row - rows.start) * channels + strip.column;
                    let mut tile = Tile {
                        a: self.x[panel.offset..].as_ptr(),
                        a_row: 1,
                        a_k,
                        segments: block.segments,
                        b,
                        b_row,
                        c: sums[place..].as_mut_ptr(),
                        c_row: channels,
                        columns: strip.columns,
                        accumulate,
                        finish: Finish::NONE,
                    };
                    if !left.is_empty() {
                        (tile.a, tile.a_k) = (left[i * STEP..].as_ptr(), WIDTH);
                        tile.segments = &copied;
                    }
                    // SAFETY: every window position lies within the image, and a panel holds the
                    // block; rows of the gradients are read to the end of a vector, for which the
                    // caller or the copy has room; `sums` has all rows.
                    unsafe { kernels.run(&tile, panel.rows) };
                }
            }
        }
    }
}

for_every_isa! {
    /// Copies the rows of all panels for each k of a block, from one pixel to the next `a_k` apart.
    ///
    /// # Safety
    /// `from` must be readable for the panels at all segments of the block, and `to` writable for
    /// the panels.
    unsafe fn copy(from: *const f32, a_k: usize, block: &BlockOfK, panels: &[Panel], to: *mut f32) = copy_generic
}

#[inline(always)]
unsafe fn copy_generic<S: Simd>(from: *const f32, a_k: usize, block: &BlockOfK, panels: &[Panel], mut to: *mut f32) {
    for &segment in block.segments {
        // Where there is one pixel there is no next one, and the step to it is never used.
        let mut from = from.wrapping_add(segment.start);
        for _ in 0..segment.len {
            // All panels of a pixel: its channels lie side by side.
            for (i, panel) in panels.iter().enumerate() {
                let (from, to) = (from.wrapping_add(panel.offset), to.wrapping_add(i * STEP));
                let mut row = 0;
                while row < panel.rows {
                    // SAFETY: masked to the rows, which the caller guarantees.
                    unsafe {
                        let mask = S::mask((panel.rows - row).min(S::LANES));
                        S::store(to.add(row), S::load_masked(from.wrapping_add(row), mask));
                    }
                    row += S::LANES;
                }
            }
            (from, to) = (from.wrapping_add(a_k), to.wrapping_add(WIDTH));
        }
    }
}
