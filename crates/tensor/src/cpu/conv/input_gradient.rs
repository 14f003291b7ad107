//! The gradient of a convolution with respect to its input.
//!
//! If the filter moves by one pixel, the gradient is a convolution of `dy` with the filter turned
//! around (see [`turned`]). Otherwise, for an input row, the filter rows that see it and the output
//! channels form one k. Their product with the filter gives, for every output pixel `x` of the row,
//! its contribution to each filter column and input channel: a row of `columns`. Then every input
//! pixel gathers the entries that belong to it, filter columns ascending.

use super::forward::{conv2d_scratch_len, convolve, filter_shape};
use super::segments::for_each_block;
use super::{ConvShape, Cut, run};
use crate::cpu::matmul::Epilogue;
use crate::cpu::microkernel::{Finish, Kernels, Repeat, Tile};
use crate::cpu::packed::{PackedShape, Right};
use crate::cpu::simd::{Simd, for_every_isa};
use crate::cpu::size::product;
use crate::cpu::window::Window;
use crate::parallel::{DisjointMut, Pool};

/// The approximate number of floats of columns that are computed before they are gathered.
const COLUMNS: usize = 1 << 13;

/// The filter as a right operand: one row per filter row and output channel, one column per filter
/// column and input channel.
///
/// The filter rows that see one input row are `step` apart, so they are stored by their remainder
/// modulo `step`.
struct Filter {
    packed: PackedShape,
    step: usize,
}

impl Filter {
    fn new(shape: &ConvShape) -> Self {
        let k = product(&[shape.window.size[0], shape.out_channels]);
        let packed = PackedShape { k, n: product(&[shape.window.size[1], shape.in_channels]) };
        Filter { packed, step: shape.window.seen_by(0, 0, 0).tap_step }
    }

    /// The position of filter row `ky` in this order.
    fn place(&self, shape: &ConvShape, ky: usize) -> usize {
        let before = |remainder: usize| (shape.window.size[0] - remainder).div_ceil(self.step);
        (0..ky % self.step).map(before).sum::<usize>() + ky / self.step
    }

    fn pack(&self, pool: &Pool, shape: &ConvShape, filter: &[f32], packed: &mut [f32]) {
        let first = |ky: usize| self.place(shape, ky) * shape.out_channels;
        self.packed.pack_pieces(pool, filter, shape.out_channels, &first, packed);
    }
}

/// The rows and images whose columns are computed before they are gathered.
///
/// A pass has as many images as possible, since a panel of the filter stays in the first-level
/// cache for all of them.
#[derive(Clone, Copy)]
struct Pass {
    images: usize,
    rows: usize,
    /// The number of floats of the columns of an image.
    image_len: usize,
}

impl Pass {
    fn new(shape: &ConvShape, cut: &Cut) -> Self {
        let row_len = product(&[shape.out_width(), Filter::new(shape).packed.n]);
        let rows_of_images = (COLUMNS / row_len.max(1)).max(1);
        let images = rows_of_images.min(cut.images);
        let rows = (rows_of_images / images.max(1)).clamp(1, cut.rows);
        Pass { images, rows, image_len: product(&[rows, row_len]) }
    }

    /// The number of floats of all columns.
    fn len(&self) -> usize {
        product(&[self.images, self.image_len])
    }
}

/// The convolution of `dy` that returns `dx`, if there is one. Its filter has the taps in reverse
/// order, and input and output channels change places.
fn turned(shape: &ConvShape) -> Option<ConvShape> {
    let Window { size, stride, dilation, padding_before: before, padding_after: after } = shape.window;
    let beyond = |axis: usize, padding: usize| (shape.window.span(axis) - 1).checked_sub(padding);
    if stride != [1, 1] || size.contains(&0) {
        return None;
    }
    let padding_before = [beyond(0, before[0])?, beyond(1, before[1])?];
    let padding_after = [beyond(0, after[0])?, beyond(1, after[1])?];
    Some(ConvShape {
        batch: shape.batch,
        height: shape.out_height(),
        width: shape.out_width(),
        in_channels: shape.out_channels,
        out_channels: shape.in_channels,
        window: Window { size, stride, dilation, padding_before, padding_after },
    })
}

/// Computes `dx` as a convolution of `dy`.
fn convolve_turned(pool: &Pool, turned: &ConvShape, filter: &[f32], dy: &[f32], dx: &mut [f32], scratch: &mut [f32]) {
    let [rows, columns] = turned.window.size;
    let shape = filter_shape(turned);
    let (packed, scratch) = scratch.split_at_mut(shape.packed_len());
    let first = |tap: usize| (rows * columns - 1 - tap) * turned.in_channels;
    shape.pack_pieces(pool, filter, turned.in_channels, &first, packed);
    convolve(pool, turned, dy, Right { shape, packed }, dx, Epilogue::default(), scratch);
}

/// The number of floats of scratch memory that [`conv2d_backprop_input`] needs.
pub fn conv2d_backprop_input_scratch_len(shape: &ConvShape) -> usize {
    if let Some(turned) = turned(shape) {
        return conv2d_scratch_len(&turned);
    }
    let cut = Cut::new(shape.batch, shape.height);
    Filter::new(shape).packed.packed_len() + product(&[cut.n_tasks(), Pass::new(shape, &cut).len()])
}

/// Computes `dx`, the gradient of `sum(dy * conv(x, filter))` with respect to x.
///
/// `scratch` must hold at least [`conv2d_backprop_input_scratch_len`] floats.
pub fn conv2d_backprop_input(
    pool: &Pool,
    shape: &ConvShape,
    filter: &[f32],
    dy: &[f32],
    dx: &mut [f32],
    scratch: &mut [f32],
) {
    shape.check(dx.len(), filter.len(), dy.len());
    if dx.is_empty() || dy.is_empty() || filter.is_empty() {
        return dx.fill(0.0);
    }
    assert!(scratch.len() >= conv2d_backprop_input_scratch_len(shape), "scratch of {shape:?}");
    if let Some(turned) = turned(shape) {
        return convolve_turned(pool, &turned, filter, dy, dx, scratch);
    }
    let cut = Cut::new(shape.batch, shape.height);
    let arranged = Filter::new(shape);
    let (packed, columns) = scratch.split_at_mut(arranged.packed.packed_len());
    arranged.pack(pool, shape, filter, packed);
    let gradient = Gradient { shape, filter: &arranged, right: Right { shape: arranged.packed, packed } };
    let pass = Pass::new(shape, &cut);
    let (dx, columns) = (DisjointMut::new(dx), DisjointMut::new(columns));
    let row_len = shape.width * shape.in_channels;
    run(pool, shape.is_parallel(), cut.n_tasks(), &|index| {
        let task = cut.task(index);
        cut.claim(&task, row_len, &dx);
        // SAFETY: each task has its own columns.
        let columns = unsafe { columns.slice(index * pass.len(), pass.len()) };
        for image in task.images.clone().step_by(pass.images) {
            let images = pass.images.min(task.images.end - image);
            let dy = &dy[image * shape.out_image_len()..(image + images) * shape.out_image_len()];
            for first in task.rows.clone().step_by(pass.rows) {
                let rows = first..task.rows.end.min(first + pass.rows);
                for row in rows.clone() {
                    let at = (row - first) * gradient.row_len();
                    gradient.columns(dy, images, row, &mut columns[at..], pass.image_len);
                }
                let at = image * shape.image_len() + first * row_len;
                // SAFETY: the columns of these rows have been computed, and a band of rows of an
                // image belongs to one task.
                unsafe { gather(shape, images, rows.len(), columns.as_ptr(), pass.image_len, dx.as_mut_ptr().add(at)) };
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
    /// The number of floats of the columns of one row.
    fn row_len(&self) -> usize {
        self.shape.out_width() * self.filter.packed.n
    }

    /// Computes the columns of input row `row` of `images` images, whose gradients are `dy`. The
    /// columns of consecutive images are `image_step` apart.
    fn columns(&self, dy: &[f32], images: usize, row: usize, columns: &mut [f32], image_step: usize) {
        let Gradient { shape, filter, right } = self;
        let (channels, out_width, n) = (shape.out_channels, shape.out_width(), filter.packed.n);
        assert!(columns.len() >= (images - 1) * image_step + self.row_len());
        let kernels = Kernels::active();
        let seen = shape.window.seen_by(0, row, shape.out_height());
        let place = if seen.count > 0 { filter.place(shape, seen.tap) } else { 0 };
        let offset = |i: usize| (seen.position - i * seen.position_step) * out_width * channels;
        for_each_block(seen.count, channels, offset, |block| {
            for strip in right.strips(place * channels + block.first) {
                let tile = Tile {
                    a: dy.as_ptr(),
                    a_row: channels,
                    a_k: 1,
                    segments: block.segments,
                    b: strip.start,
                    b_row: strip.stride,
                    c: columns[strip.column..].as_mut_ptr(),
                    c_row: n,
                    columns: strip.columns,
                    accumulate: block.first > 0,
                    finish: Finish::NONE,
                };
                let repeat = Repeat { n: images, a_step: shape.out_image_len(), c_step: image_step };
                // SAFETY: the segments are rows of each image's gradient; panels are padded;
                // `columns` holds `out_width` rows of n for each image.
                unsafe { kernels.run_repeated(&tile, out_width, repeat) };
            }
        });
    }
}

for_every_isa! {
    /// Adds up, for each pixel of `rows` input rows of `images` images, the columns of the output
    /// pixels that saw it.
    ///
    /// # Safety
    /// `dx` must be writable for the rows of each image, and `columns` must hold their columns,
    /// with images `image_step` apart.
    unsafe fn gather(shape: &ConvShape, images: usize, rows: usize, columns: *const f32, image_step: usize, dx: *mut f32) =
        gather_generic
}

#[inline(always)]
unsafe fn gather_generic<S: Simd>(
    shape: &ConvShape,
    images: usize,
    rows: usize,
    columns: *const f32,
    image_step: usize,
    dx: *mut f32,
) {
    let (channels, out_width, image_len) = (shape.in_channels, shape.out_width(), shape.image_len());
    let n = shape.window.size[1] * channels;
    for column in 0..shape.width {
        let seen = shape.window.seen_by(1, column, out_width);
        let first = seen.position * n + seen.tap * channels;
        // The step as seen from the second position.
        let step = seen.tap_step.wrapping_mul(channels).wrapping_sub(seen.position_step.wrapping_mul(n));
        let mut channel = 0;
        // Two vectors at a time, whose sums are independent of each other.
        while channel < channels {
            // SAFETY: an output pixel has one entry per tap and channel; masked to the channels
            // that are left.
            unsafe {
                let left = channels - channel;
                let masks = (S::mask(left.min(S::LANES)), S::mask(left.saturating_sub(S::LANES).min(S::LANES)));
                for image in 0..images {
                    for row in 0..rows {
                        let at = image * image_step + row * out_width * n + first + channel;
                        let mut from = columns.wrapping_add(at);
                        let mut sums = (S::splat(0.0), S::splat(0.0));
                        for _ in 0..seen.count {
                            sums.0 = S::add(sums.0, S::load_masked(from, masks.0));
                            sums.1 = S::add(sums.1, S::load_masked(from.wrapping_add(S::LANES), masks.1));
                            from = from.wrapping_add(step);
                        }
                        let to = dx.add(image * image_len + (row * shape.width + column) * channels + channel);
                        S::store_masked(to, sums.0, masks.0);
                        S::store_masked(to.wrapping_add(S::LANES), sums.1, masks.1);
                    }
                }
            }
            channel += 2 * S::LANES;
        }
    }
}
