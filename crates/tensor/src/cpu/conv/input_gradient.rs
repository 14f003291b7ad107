//! The gradient of a convolution with respect to its input.
//!
//! For an input row, the filter rows that see it and the output channels are one k: their product with the filter
//! gives, for every output pixel `x` of the row, what it sends to each filter column and input channel, a row of
//! `columns`. Then every input pixel gathers the entries that belong to it, filter columns ascending.

use super::segments::for_each_block;
use super::{ConvShape, Cut, run};
use crate::cpu::microkernel::{Kernels, Tile};
use crate::cpu::packed::{PackedShape, Right};
use crate::cpu::simd::{Simd, for_every_isa};
use crate::parallel::{DisjointMut, Pool};

/// Floats of columns that are computed before they are gathered, about.
const COLUMNS: usize = 1 << 14;

/// The filter as a right operand: a row per filter row and output channel, a column per filter column and input
/// channel.
///
/// The filter rows that see one input row are `step` apart, so they are stored by their remainder modulo `step`.
struct Filter {
    packed: PackedShape,
    step: usize,
}

impl Filter {
    fn new(shape: &ConvShape) -> Self {
        let k = shape.window.size[0] * shape.out_channels;
        let packed = PackedShape { k, n: shape.window.size[1] * shape.in_channels };
        Filter { packed, step: shape.window.seen_by(0, 0, 0).tap_step }
    }

    /// The place of filter row `ky` in this order.
    fn place(&self, shape: &ConvShape, ky: usize) -> usize {
        let before = |remainder: usize| (shape.window.size[0] - remainder).div_ceil(self.step);
        (0..ky % self.step).map(before).sum::<usize>() + ky / self.step
    }

    fn pack(&self, shape: &ConvShape, filter: &[f32], packed: &mut [f32]) {
        for (ky, filter) in filter.chunks_exact(self.packed.n * shape.out_channels).enumerate() {
            let first = self.place(shape, ky) * shape.out_channels;
            self.packed.pack_transposed_rows(filter, first, shape.out_channels, packed);
        }
    }
}

/// Input rows whose columns are computed in one pass.
fn rows_per_pass(shape: &ConvShape, cut: &Cut) -> usize {
    (COLUMNS / (shape.out_width() * Filter::new(shape).packed.n).max(1)).clamp(1, cut.rows)
}

fn columns_len(shape: &ConvShape, cut: &Cut) -> usize {
    rows_per_pass(shape, cut) * shape.out_width() * Filter::new(shape).packed.n
}

/// Floats of scratch that [`conv2d_backprop_input`] needs.
pub fn conv2d_backprop_input_scratch_len(shape: &ConvShape) -> usize {
    let cut = Cut::new(shape.batch, shape.height);
    Filter::new(shape).packed.packed_len() + cut.n_tasks() * columns_len(shape, &cut)
}

/// `dx`, the gradient of `sum(dy * conv(x, filter))` with respect to x.
///
/// `scratch` holds at least [`conv2d_backprop_input_scratch_len`] floats.
pub fn conv2d_backprop_input(
    pool: &Pool,
    shape: &ConvShape,
    filter: &[f32],
    dy: &[f32],
    dx: &mut [f32],
    scratch: &mut [f32],
) {
    let sizes = (shape.input_len(), shape.filter_len(), shape.output_len());
    assert_eq!((dx.len(), filter.len(), dy.len()), sizes, "operands of {shape:?}");
    if dx.is_empty() || dy.is_empty() || filter.is_empty() {
        return dx.fill(0.0);
    }
    let cut = Cut::new(shape.batch, shape.height);
    let arranged = Filter::new(shape);
    let (packed, columns) = scratch.split_at_mut(arranged.packed.packed_len());
    arranged.pack(shape, filter, packed);
    let gradient = Gradient { shape, filter: &arranged, right: Right { shape: arranged.packed, packed } };
    let (columns_len, rows_per_pass) = (columns_len(shape, &cut), rows_per_pass(shape, &cut));
    let (dx, columns) = (DisjointMut::new(dx), DisjointMut::new(columns));
    let (out_len, row_len) = (shape.out_image_len(), shape.width * shape.in_channels);
    run(pool, shape.is_parallel(), cut.n_tasks(), &|index| {
        let task = cut.task(index);
        // SAFETY: each task has its own columns.
        let columns = unsafe { columns.slice(index * columns_len, columns_len) };
        for image in task.images {
            let dy = &dy[image * out_len..(image + 1) * out_len];
            for first in task.rows.clone().step_by(rows_per_pass) {
                let rows = rows_per_pass.min(task.rows.end - first);
                // SAFETY: a band of rows of an image belongs to one task.
                let dx = unsafe { dx.slice(image * shape.image_len() + first * row_len, rows * row_len) };
                gradient.columns(dy, first, rows, columns);
                // SAFETY: `dx` holds `rows` rows of the image, `columns` theirs.
                unsafe { gather(shape, rows, columns.as_ptr(), dx.as_mut_ptr()) };
            }
        }
    });
}

struct Gradient<'a> {
    shape: &'a ConvShape,
    filter: &'a Filter,
    right: Right<'a>,
}

impl Gradient<'_> {
    /// Computes the columns of `rows` input rows from `first`.
    fn columns(&self, dy: &[f32], first: usize, rows: usize, columns: &mut [f32]) {
        let Gradient { shape, filter, right } = self;
        let (channels, out_width, n) = (shape.out_channels, shape.out_width(), filter.packed.n);
        let out_row = out_width * channels;
        let kernels = Kernels::active();
        for row in 0..rows {
            let seen = shape.window.seen_by(0, first + row, shape.out_height());
            let place = if seen.count > 0 { filter.place(shape, seen.tap) } else { 0 };
            let offset = |i: usize| (seen.position - i * seen.position_step) * out_row;
            for_each_block(seen.count, channels, offset, |block| {
                for strip in right.strips(place * channels + block.first) {
                    let tile = Tile {
                        a: dy.as_ptr(),
                        a_row: channels,
                        a_k: 1,
                        segments: block.segments,
                        segment_len: block.segment_len,
                        b: strip.start,
                        b_row: strip.stride,
                        c: columns[row * out_width * n + strip.column..].as_mut_ptr(),
                        c_row: n,
                        columns: strip.columns,
                        accumulate: block.first > 0,
                        bias: std::ptr::null(),
                        relu: false,
                    };
                    // SAFETY: the segments are rows of this image's gradient; panels are padded; `columns` holds
                    // `rows` times `out_width` rows of n.
                    unsafe { kernels.run(&tile, out_width) };
                }
            });
        }
    }
}

for_every_isa! {
    /// Adds up, for each pixel of `rows` input rows, the columns of the output pixels that saw it.
    ///
    /// # Safety
    /// `dx` must be writable for the rows, and `columns` hold theirs.
    unsafe fn gather(shape: &ConvShape, rows: usize, columns: *const f32, dx: *mut f32) = gather_generic
}

#[inline(always)]
unsafe fn gather_generic<S: Simd>(shape: &ConvShape, rows: usize, columns: *const f32, dx: *mut f32) {
    let (channels, out_width) = (shape.in_channels, shape.out_width());
    let n = shape.window.size[1] * channels;
    for column in 0..shape.width {
        let seen = shape.window.seen_by(1, column, out_width);
        let first = seen.position * n + seen.tap * channels;
        let step = (seen.tap_step * channels).wrapping_sub(seen.position_step * n);
        for row in 0..rows {
            let mut channel = 0;
            while channel < channels {
                // SAFETY: an output pixel has one entry per tap and channel; masked to the channels that are left.
                unsafe {
                    let mask = S::mask((channels - channel).min(S::LANES));
                    let mut sum = S::splat(0.0);
                    let mut from = columns.wrapping_add(row * out_width * n + first + channel);
                    for _ in 0..seen.count {
                        sum = S::add(sum, S::load_masked(from, mask));
                        from = from.wrapping_add(step);
                    }
                    S::store_masked(dx.add((row * shape.width + column) * channels + channel), sum, mask);
                }
                channel += S::LANES;
            }
        }
    }
}
