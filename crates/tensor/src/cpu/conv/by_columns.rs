//! Convolutions with large filters on small images, such as the last ones of a deep network.
//!
//! The rows of an image are few there, and would read the whole filter from memory again and again.
//! Here a task computes a strip of the output's channels for many images, so each strip of the
//! filter is read once, and the images stay in the cache. The bits are those of `forward`.

use super::segments::{Stretches, for_each_block};
use super::{ConvShape, run};
use crate::cpu::matmul::Epilogue;
use crate::cpu::microkernel::{Finish, Kernels, Repeat, Tile};
use crate::cpu::packed::Right;
use crate::cpu::size::product;
use crate::parallel::{DisjointMut, Pool};

/// With fewer floats the filter stays in the second-level cache, or nearly so.
const LARGE: usize = 3 << 18;
/// With few pixels even a smaller filter takes longer to read than to multiply.
const FEW_PIXELS: usize = 512;
const LARGE_FOR_FEW_PIXELS: usize = 1 << 16;
/// The number of tasks, if there are enough images.
const TASKS: usize = 16;
/// The number of floats of the images that are computed together: all strips read them.
const TOGETHER: usize = 1 << 20;

/// Whether the filter is large for the images.
pub(super) fn suits(shape: &ConvShape) -> bool {
    let pixels = product(&[shape.batch, shape.out_height(), shape.out_width()]);
    let large = if pixels <= FEW_PIXELS { LARGE_FOR_FEW_PIXELS } else { LARGE };
    shape.filter_len() >= large && shape.output_len() > 0
}

/// The number of images that are computed together.
fn together(shape: &ConvShape) -> usize {
    (TOGETHER / shape.padded_len().max(1)).clamp(1, shape.batch.max(1))
}

/// The number of floats of these images with their margin.
pub(super) fn scratch_len(shape: &ConvShape) -> usize {
    if shape.window.is_padded() { product(&[together(shape), shape.padded_len()]) } else { 0 }
}

/// Computes the convolution, for a shape that [`suits`].
pub(super) fn convolve(
    pool: &Pool,
    shape: &ConvShape,
    x: &[f32],
    right: Right,
    y: &mut [f32],
    epilogue: Epilogue,
    scratch: &mut [f32],
) {
    let together = together(shape);
    let (image_len, out_len) = (shape.image_len(), shape.out_image_len());
    for first in (0..shape.batch).step_by(together) {
        let shape = ConvShape { batch: together.min(shape.batch - first), ..*shape };
        let x = &x[first * image_len..][..shape.input_len()];
        let y = &mut y[first * out_len..][..shape.output_len()];
        convolve_together(pool, &shape, x, right, y, epilogue, scratch);
    }
}

fn convolve_together(
    pool: &Pool,
    shape: &ConvShape,
    x: &[f32],
    right: Right,
    y: &mut [f32],
    epilogue: Epilogue,
    scratch: &mut [f32],
) {
    let (x, image_len, pitch) = if shape.window.is_padded() {
        let padded = &mut scratch[..shape.batch * shape.padded_len()];
        shape.pad_all(pool, x, padded);
        (&*padded, shape.padded_len(), shape.padded_pitch())
    } else {
        (x, shape.image_len(), shape.width * shape.in_channels)
    };
    let stretches = Stretches::new(shape, pitch);
    let rows = Rows::new(shape, image_len, pitch);
    let (n, n_strips) = (shape.out_channels, right.shape.n_panels());
    let images = shape.batch.div_ceil(TASKS.div_ceil(n_strips));
    let y = DisjointMut::new(y);
    run(pool, shape.is_parallel(), n_strips * shape.batch.div_ceil(images), &|task| {
        let first = task / n_strips * images;
        let groups = rows.of(images.min(shape.batch - first));
        let x = &x[first * image_len..];
        let offset = |i: usize| stretches.offset(i);
        for_each_block(stretches.n, stretches.len, offset, |block| {
            let strip = right.strip(task % n_strips, block.first);
            let finish = if block.is_last { epilogue.finish(strip.column) } else { Finish::NONE };
            for group in 0..groups.n {
                let place = (first * rows.of_image() + group * groups.pixels * groups.repeat) * n + strip.column;
                let tile = Tile {
                    a: x[group * image_len..].as_ptr(),
                    a_row: rows.a_row,
                    a_k: 1,
                    segments: block.segments,
                    b: strip.start,
                    b_row: strip.stride,
                    // SAFETY: `y` has this pixel. A task writes its strip of channels in the pixels
                    // of its images, which no other task writes.
                    c: unsafe { y.as_mut_ptr().add(place) },
                    c_row: n,
                    columns: strip.columns,
                    accumulate: block.first > 0,
                    finish,
                };
                let repeat = Repeat { n: groups.repeat, a_step: rows.row_step, c_step: groups.pixels * n };
                // SAFETY: a position of the window lies within the (padded) image; the panels are
                // padded to whole vectors; `y` holds all pixels of the images.
                unsafe { Kernels::active().run_repeated(&tile, groups.pixels, repeat) };
            }
        });
    });
}

/// How the pixels of the output follow each other in the input.
struct Rows {
    width: usize,
    height: usize,
    a_row: usize,
    row_step: usize,
    image_len: usize,
}

/// Pixels that are computed by one call each: `n` groups of `repeat` rows of `pixels`.
struct Groups {
    n: usize,
    repeat: usize,
    pixels: usize,
}

impl Rows {
    fn new(shape: &ConvShape, image_len: usize, pitch: usize) -> Rows {
        // With a single row or column there is no next one, and the step to it is never used.
        let a_row = shape.window.stride[1].wrapping_mul(shape.in_channels);
        let row_step = shape.window.stride[0].wrapping_mul(pitch);
        Rows { width: shape.out_width(), height: shape.out_height(), a_row, row_step, image_len }
    }

    fn of_image(&self) -> usize {
        self.width * self.height
    }

    /// The groups of some images. Rows and images that follow each other without a gap, as with
    /// 1 x 1 filters, are one long row.
    fn of(&self, images: usize) -> Groups {
        if self.width.wrapping_mul(self.a_row) != self.row_step {
            return Groups { n: images, repeat: self.height, pixels: self.width };
        }
        if self.height.wrapping_mul(self.row_step) != self.image_len {
            return Groups { n: images, repeat: 1, pixels: self.of_image() };
        }
        Groups { n: 1, repeat: 1, pixels: images * self.of_image() }
    }
}
