//! The gradient of a convolution with respect to its input.
//!
//! Column matrix of the output rows: `columns = dy * filter^T`, one row of taps per output pixel. Then every input
//! pixel gathers the columns that saw it, filter rows ascending, then filter columns. The columns of a few output
//! rows are kept in a ring, as many as the input row at hand still needs.

use super::{ConvShape, TASKS, run};
use crate::cpu::microkernel::{BLOCK_K, Kernels, Tile};
use crate::cpu::packed::{PackedShape, Right};
use crate::cpu::simd::{Simd, for_every_isa};
use crate::parallel::{DisjointMut, Pool};

/// Output pixels whose columns are computed in one product, about.
const PIXELS: usize = 64;

/// The ring of column rows of one task.
struct Ring {
    /// Output rows computed together.
    group: usize,
    /// Output rows in the ring, a multiple of `group`.
    rows: usize,
    /// Floats per output row.
    row_len: usize,
}

impl Ring {
    fn new(shape: &ConvShape) -> Self {
        let (out_height, out_width) = (shape.out_height(), shape.out_width());
        let group = (PIXELS / out_width.max(1)).clamp(1, out_height.max(1));
        // Output rows that see the same input row.
        let alive = shape.window.span(0).div_ceil(shape.window.stride[0]);
        let rows = (alive.next_multiple_of(group) + group).min(out_height.next_multiple_of(group));
        Ring { group, rows, row_len: out_width * shape.taps() }
    }

    fn len(&self) -> usize {
        self.rows * self.row_len
    }
}

fn filter_shape(shape: &ConvShape) -> PackedShape {
    PackedShape { k: shape.out_channels, n: shape.taps() }
}

fn images_per_task(shape: &ConvShape) -> usize {
    shape.batch.div_ceil(TASKS).max(1)
}

/// Floats of scratch that [`conv2d_backprop_input`] needs.
pub fn conv2d_backprop_input_scratch_len(shape: &ConvShape) -> usize {
    let n_tasks = shape.batch.div_ceil(images_per_task(shape));
    filter_shape(shape).packed_len() + n_tasks * Ring::new(shape).len()
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
    let (packed, rings) = scratch.split_at_mut(filter_shape(shape).packed_len());
    filter_shape(shape).pack(pool, filter, true, packed);
    let right = Right { shape: filter_shape(shape), packed };
    let images = images_per_task(shape);
    let ring = Ring::new(shape);
    let (dx, rings) = (DisjointMut::new(dx), DisjointMut::new(rings));
    let (image_len, out_len) = (shape.image_len(), shape.out_image_len());
    run(pool, shape.is_parallel(), shape.batch.div_ceil(images), &|task| {
        // SAFETY: each task has its own ring.
        let columns = unsafe { rings.slice(task * ring.len(), ring.len()) };
        for image in task * images..shape.batch.min((task + 1) * images) {
            // SAFETY: an image belongs to one task.
            let dx = unsafe { dx.slice(image * image_len, image_len) };
            one_image(shape, &ring, &right, &dy[image * out_len..(image + 1) * out_len], dx, columns);
        }
    });
}

fn one_image(shape: &ConvShape, ring: &Ring, right: &Right, dy: &[f32], dx: &mut [f32], columns: &mut [f32]) {
    let window = &shape.window;
    let out_height = shape.out_height();
    let mut computed = 0;
    for (row, dx) in dx.chunks_exact_mut(shape.width * shape.in_channels).enumerate() {
        // The last output row that sees this one.
        let last_needed = ((row + window.padding_before[0]) / window.stride[0]).min(out_height - 1);
        while computed <= last_needed {
            let rows = ring.group.min(out_height - computed);
            let at = computed % ring.rows * ring.row_len;
            columns_of_rows(shape, right, dy, computed, rows, &mut columns[at..at + rows * ring.row_len]);
            computed += rows;
        }
        let gather = Gather { shape, ring, columns, row };
        // SAFETY: `dx` is one row of pixels, and the ring holds every output row that sees it.
        unsafe { gather_row(&gather, dx.as_mut_ptr()) };
    }
}

/// The column matrix of `rows` output rows from `first`.
fn columns_of_rows(shape: &ConvShape, right: &Right, dy: &[f32], first: usize, rows: usize, columns: &mut [f32]) {
    let pixels = rows * shape.out_width();
    let channels = shape.out_channels;
    let dy = &dy[first * shape.out_width() * channels..];
    for start in (0..channels).step_by(BLOCK_K) {
        for strip in right.strips(start) {
            let tile = Tile {
                a: dy[start..].as_ptr(),
                a_row: channels,
                a_k: 1,
                segments: &[0],
                segment_len: BLOCK_K.min(channels - start),
                b: strip.start,
                b_row: strip.stride,
                c: columns[strip.column..].as_mut_ptr(),
                c_row: shape.taps(),
                columns: strip.columns,
                accumulate: start > 0,
                bias: std::ptr::null(),
                relu: false,
            };
            // SAFETY: `dy` holds the pixels of these rows and `columns` their taps; panels are padded.
            unsafe { Kernels::active().run(&tile, pixels) };
        }
    }
}

/// What one input row needs to find the columns that saw its pixels.
struct Gather<'a> {
    shape: &'a ConvShape,
    ring: &'a Ring,
    columns: &'a [f32],
    row: usize,
}

for_every_isa! {
    /// Adds up the columns that saw each pixel of a row.
    ///
    /// # Safety
    /// `dx` must be writable for the row; the ring must hold the output rows that see it.
    unsafe fn gather_row(gather: &Gather, dx: *mut f32) = gather_row_generic
}

#[inline(always)]
unsafe fn gather_row_generic<S: Simd>(gather: &Gather, dx: *mut f32) {
    let Gather { shape, ring, columns, row } = *gather;
    let (window, channels, taps) = (&shape.window, shape.in_channels, shape.taps());
    let (out_height, out_width) = (shape.out_height(), shape.out_width());
    let rows = window.seen_by(0, row, out_height);
    for column in 0..shape.width {
        let seen = window.seen_by(1, column, out_width);
        let mut channel = 0;
        while channel < channels {
            // SAFETY: the columns of an output pixel hold all taps, and its row is in the ring; masked to the
            // channels that are left.
            unsafe {
                let mask = S::mask((channels - channel).min(S::LANES));
                let mut sum = S::splat(0.0);
                for (ky, y) in rows.pairs() {
                    let of_row =
                        columns.as_ptr().add(y % ring.rows * ring.row_len + ky * window.size[1] * channels + channel);
                    for (kx, x) in seen.pairs() {
                        sum = S::add(sum, S::load_masked(of_row.add(x * taps + kx * channels), mask));
                    }
                }
                S::store_masked(dx.add(column * channels + channel), sum, mask);
            }
            channel += S::LANES;
        }
    }
}
