//! The convolution itself, alone and combined with a max pooling of its result.

use std::ops::Range;

use super::segments::{Stretches, for_each_block};
use super::{ConvShape, Cut, by_columns, run};
use crate::cpu::matmul::Epilogue;
use crate::cpu::microkernel::{Finish, Kernels, Repeat, Tile};
use crate::cpu::packed::{PackedShape, Right};
use crate::cpu::pool2d::{PoolShape, max_pool_which_here};
use crate::cpu::size::product;
use crate::parallel::{DisjointMut, Pool};

/// The number of floats of output that stay in the cache while all of k is added to them.
const BAND: usize = 1 << 14;

/// The number of input rows that `rows` output rows see.
fn seen_rows(shape: &ConvShape, rows: usize) -> usize {
    product(&[rows.max(1) - 1, shape.window.stride[0]]) + shape.window.span(0)
}

/// The number of floats of the padded input rows under one band; zero without a margin.
fn slot_len(shape: &ConvShape, cut: &Cut) -> usize {
    if shape.window.is_padded() { product(&[seen_rows(shape, cut.rows), shape.padded_pitch()]) } else { 0 }
}

/// The shape of the filter as a right operand.
pub(super) fn filter_shape(shape: &ConvShape) -> PackedShape {
    PackedShape { k: shape.taps(), n: shape.out_channels }
}

/// The number of floats of scratch memory that [`conv2d`] needs.
pub fn conv2d_scratch_len(shape: &ConvShape) -> usize {
    filter_shape(shape).packed_len() + images_scratch_len(shape)
}

/// The number of floats of the images with their margin.
fn images_scratch_len(shape: &ConvShape) -> usize {
    if by_columns::suits(shape) {
        return by_columns::scratch_len(shape);
    }
    let cut = Cut::new(shape.batch, shape.out_height());
    product(&[cut.n_tasks(), slot_len(shape, &cut)])
}

/// Computes `y = epilogue(conv(x, filter))`. `scratch` must hold at least [`conv2d_scratch_len`]
/// floats.
pub fn conv2d(
    pool: &Pool,
    shape: &ConvShape,
    x: &[f32],
    filter: &[f32],
    y: &mut [f32],
    epilogue: Epilogue,
    scratch: &mut [f32],
) {
    shape.check(x.len(), filter.len(), y.len());
    assert!(epilogue.fits(shape.out_channels), "epilogue of {shape:?}");
    if y.is_empty() {
        return;
    }
    assert!(scratch.len() >= conv2d_scratch_len(shape), "scratch of {shape:?}");
    let (packed, scratch) = scratch.split_at_mut(filter_shape(shape).packed_len());
    filter_shape(shape).pack(pool, filter, false, packed);
    convolve(pool, shape, x, Right { shape: filter_shape(shape), packed }, y, epilogue, scratch);
}

/// Computes [`conv2d`] with a packed filter.
pub(super) fn convolve(
    pool: &Pool,
    shape: &ConvShape,
    x: &[f32],
    right: Right,
    y: &mut [f32],
    epilogue: Epilogue,
    scratch: &mut [f32],
) {
    if by_columns::suits(shape) {
        return by_columns::convolve(pool, shape, x, right, y, epilogue, scratch);
    }
    let cut = Cut::new(shape.batch, shape.out_height());
    let forward = Forward { shape, right, epilogue };
    let (out_len, row_len) = (shape.out_image_len(), shape.out_width() * shape.out_channels);
    let slot_len = slot_len(shape, &cut);
    let (y, slots) = (DisjointMut::new(y), DisjointMut::new(scratch));
    run(pool, shape.is_parallel(), cut.n_tasks(), &|index| {
        let task = cut.task(index);
        // SAFETY: each task has its own slot.
        let slot = unsafe { slots.slice(index * slot_len, slot_len) };
        for image in task.images {
            let rows = task.rows.clone();
            // SAFETY: the rows of a band of an image belong to one task.
            let y = unsafe { y.slice(image * out_len + rows.start * row_len, rows.len() * row_len) };
            forward.band(&x[image * shape.image_len()..(image + 1) * shape.image_len()], rows, slot, y);
        }
    });
}

/// The number of floats of scratch memory that [`conv2d_max_pooled`] needs.
pub fn conv2d_max_pooled_scratch_len(shape: &ConvShape) -> usize {
    let cut = Cut::images_only(shape.batch, shape.out_height());
    let per_task = slot_len(shape, &cut) + shape.out_image_len();
    filter_shape(shape).packed_len() + product(&[cut.n_tasks(), per_task])
}

/// Computes `y` and `which` of [`max_pool_which`](crate::cpu::pool2d::max_pool_which) for the
/// result of [`conv2d`]. That result is never in memory as a whole: each image is pooled while it
/// is in the cache.
///
/// `scratch` must hold at least [`conv2d_max_pooled_scratch_len`] floats.
#[allow(clippy::too_many_arguments)] // those of a convolution and of a pooling
pub fn conv2d_max_pooled(
    pool: &Pool,
    shape: &ConvShape,
    x: &[f32],
    filter: &[f32],
    epilogue: Epilogue,
    pooling: &PoolShape,
    y: &mut [f32],
    which: &mut [f32],
    scratch: &mut [f32],
) {
    shape.check_pooling(pooling);
    shape.check(x.len(), filter.len(), pooling.input_len());
    assert_eq!((y.len(), which.len()), (pooling.output_len(), pooling.output_len()), "results of {pooling:?}");
    assert!(epilogue.fits(shape.out_channels), "epilogue of {shape:?}");
    if y.is_empty() {
        return;
    }
    assert!(scratch.len() >= conv2d_max_pooled_scratch_len(shape), "scratch of {shape:?}");
    let cut = Cut::images_only(shape.batch, shape.out_height());
    let (packed, slots) = scratch.split_at_mut(filter_shape(shape).packed_len());
    filter_shape(shape).pack(pool, filter, false, packed);
    let forward = Forward { shape, right: Right { shape: filter_shape(shape), packed }, epilogue };
    let (out_len, pooled_len) = (shape.out_image_len(), pooling.output_len() / shape.batch.max(1));
    let one = PoolShape { batch: 1, ..*pooling };
    let slot_len = slot_len(shape, &cut) + out_len;
    let (y, which, slots) = (DisjointMut::new(y), DisjointMut::new(which), DisjointMut::new(slots));
    run(pool, shape.is_parallel(), cut.n_tasks(), &|index| {
        let task = cut.task(index);
        // SAFETY: each task has its own slot.
        let (convolved, slot) = unsafe { slots.slice(index * slot_len, slot_len) }.split_at_mut(out_len);
        for image in task.images {
            // SAFETY: an image belongs to one task.
            let (y, which) =
                unsafe { (y.slice(image * pooled_len, pooled_len), which.slice(image * pooled_len, pooled_len)) };
            let x = &x[image * shape.image_len()..(image + 1) * shape.image_len()];
            if out_len > 0 {
                forward.band(x, task.rows.clone(), slot, convolved);
            }
            max_pool_which_here(&one, convolved, y, which);
        }
    });
}

/// A convolution with a packed filter.
struct Forward<'a> {
    shape: &'a ConvShape,
    right: Right<'a>,
    epilogue: Epilogue<'a>,
}

impl Forward<'_> {
    /// Computes `rows` of the result of image `x`. A margin is added in `slot`.
    fn band(&self, x: &[f32], rows: Range<usize>, slot: &mut [f32], y: &mut [f32]) {
        let Forward { shape, right, epilogue } = self;
        let row_len = shape.out_width() * shape.out_channels;
        let first_seen = rows.start * shape.window.stride[0];
        let (seen, pitch) = if shape.window.is_padded() {
            shape.pad(x, first_seen, seen_rows(shape, rows.len()), slot);
            (&*slot, shape.padded_pitch())
        } else {
            let pitch = shape.width * shape.in_channels;
            (&x[first_seen * pitch..], pitch)
        };
        let per_pass = (BAND / row_len).max(1);
        for (i, y) in y.chunks_mut(per_pass * row_len).enumerate() {
            let seen = &seen[i * per_pass * shape.window.stride[0] * pitch..];
            rows_of_output(shape, seen, pitch, right, y, *epilogue);
        }
    }
}

/// Computes as many output rows as `y` holds. The first of them sees the image from the start of
/// `x`.
fn rows_of_output(shape: &ConvShape, x: &[f32], pitch: usize, right: &Right, y: &mut [f32], epilogue: Epilogue) {
    let stretches = Stretches::new(shape, pitch);
    let n = shape.out_channels;
    let (mut rows, mut row_len) = (y.len() / (shape.out_width() * n), shape.out_width() * n);
    // With a single row or column there is no next one, and the step to it is never used.
    let a_row = shape.window.stride[1].wrapping_mul(shape.in_channels);
    let mut row_step = shape.window.stride[0].wrapping_mul(pitch);
    if shape.out_width().wrapping_mul(a_row) == row_step {
        // The next row starts where the last one ends, as with 1 x 1 filters: they form one long
        // row.
        row_len *= rows;
        row_step = row_step.wrapping_mul(rows);
        rows = 1;
    }
    let kernels = Kernels::active();
    for_each_block(
        stretches.n,
        stretches.len,
        |i| stretches.offset(i),
        |block| {
            for strip in right.strips(block.first) {
                let tile = Tile {
                    a: x.as_ptr(),
                    a_row,
                    a_k: 1,
                    segments: block.segments,
                    b: strip.start,
                    b_row: strip.stride,
                    c: y[strip.column..].as_mut_ptr(),
                    c_row: n,
                    columns: strip.columns,
                    accumulate: block.first > 0,
                    finish: if block.is_last { epilogue.finish(strip.column) } else { Finish::NONE },
                };
                let repeat = Repeat { n: rows, a_step: row_step, c_step: row_len };
                // SAFETY: a position of the window lies within the (padded) image, so every element
                // of A that its segments reach does; the panels are padded to whole vectors; `y` is
                // `row_len` long per row.
                unsafe { kernels.run_repeated(&tile, row_len / n, repeat) };
            }
        },
    );
}
