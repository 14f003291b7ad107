//! Convolutions of images, `NHWC` by `HWIO`, and their two gradients.
//!
//! All three are products of the tile kernels. Forward and filter gradient read the image in place,
//! as segments of k (see `microkernel`): no column matrix is written. The input gradient writes one
//! row of columns per filter column and gathers them. Images are cut into fixed groups, one task
//! each; a margin is added to a copy of one image at a time.
//!
//! The arithmetic rule: a block of k has as many whole segments as fit in 256 (or pieces of 256 if
//! a segment is longer). Each block is a chain of fused multiply-adds from zero; blocks are added
//! in ascending order.

mod by_columns;
mod filter_gradient;
mod forward;
mod input_gradient;
mod panels;
mod pooled_gradient;
mod segments;

pub use filter_gradient::{conv2d_backprop_filter, conv2d_backprop_filter_scratch_len};
pub use forward::{conv2d, conv2d_max_pooled, conv2d_max_pooled_scratch_len, conv2d_scratch_len};
pub use input_gradient::{conv2d_backprop_input, conv2d_backprop_input_scratch_len};
pub use pooled_gradient::{Pooling, conv2d_backprop_filter_pooled, conv2d_backprop_filter_pooled_scratch_len};

use super::cut::{Cut, run};
use super::pool2d::PoolShape;
use super::size::product;
use super::window::Window;
use crate::parallel::{DisjointMut, Pool};

/// Sizes of a convolution `x[batch, height, width, in] * filter[rows, columns, in, out]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConvShape {
    /// The number of images.
    pub batch: usize,
    /// The number of rows of an image.
    pub height: usize,
    /// The number of columns of an image.
    pub width: usize,
    /// The number of channels of the input.
    pub in_channels: usize,
    /// The number of channels of the output.
    pub out_channels: usize,
    /// The filter's rows and columns, and how it moves.
    pub window: Window,
}

/// Convolutions with fewer multiply-adds (about 15 us) run on the caller.
const PARALLEL_FROM: usize = 1 << 20;

impl ConvShape {
    /// The number of rows of the output.
    pub fn out_height(&self) -> usize {
        self.window.positions(0, self.height)
    }

    /// The number of columns of the output.
    pub fn out_width(&self) -> usize {
        self.window.positions(1, self.width)
    }

    /// The number of floats of the input.
    pub fn input_len(&self) -> usize {
        product(&[self.batch, self.height, self.width, self.in_channels])
    }

    /// The number of floats of the filter.
    pub fn filter_len(&self) -> usize {
        product(&[self.window.size[0], self.window.size[1], self.in_channels, self.out_channels])
    }

    /// The number of floats of the output.
    pub fn output_len(&self) -> usize {
        product(&[self.batch, self.out_height(), self.out_width(), self.out_channels])
    }

    fn image_len(&self) -> usize {
        product(&[self.height, self.width, self.in_channels])
    }

    fn out_image_len(&self) -> usize {
        product(&[self.out_height(), self.out_width(), self.out_channels])
    }

    /// The number of inputs that an output depends on: the rows of the filter as a matrix.
    fn taps(&self) -> usize {
        product(&[self.window.size[0], self.window.size[1], self.in_channels])
    }

    fn is_parallel(&self) -> bool {
        self.output_len().saturating_mul(self.taps()) >= PARALLEL_FROM
    }

    /// Rows and floats per row of an image with its margin.
    fn padded_height(&self) -> usize {
        self.window.padded(0, self.height)
    }

    fn padded_pitch(&self) -> usize {
        product(&[self.window.padded(1, self.width), self.in_channels])
    }

    fn padded_len(&self) -> usize {
        product(&[self.padded_height(), self.padded_pitch()])
    }

    /// Panics unless input, filter and output have the sizes of the shape.
    #[track_caller]
    fn check(&self, input: usize, filter: usize, output: usize) {
        let sizes = (self.input_len(), self.filter_len(), self.output_len());
        assert_eq!((input, filter, output), sizes, "operands of {self:?}");
    }

    /// Panics unless the pooling's input is this convolution's result.
    #[track_caller]
    fn check_pooling(&self, pooling: &PoolShape) {
        let result = (self.batch, self.out_height(), self.out_width(), self.out_channels);
        let pooled = (pooling.batch, pooling.height, pooling.width, pooling.channels);
        assert_eq!(pooled, result, "{pooling:?} is no pooling of the result of {self:?}");
    }

    /// Copies images with their margin, as many as `padded` holds.
    fn pad_all(&self, pool: &Pool, x: &[f32], padded: &mut [f32]) {
        let (image_len, len) = (self.image_len(), self.padded_len());
        let n = padded.len().checked_div(len).unwrap_or(0);
        let padded = DisjointMut::new(padded);
        run(pool, self.is_parallel(), n, &|image| {
            // SAFETY: each task has its own image.
            let to = unsafe { padded.slice(image * len, len) };
            self.pad(&x[image * image_len..(image + 1) * image_len], 0, self.padded_height(), to);
        });
    }

    /// Copies `n_rows` rows of the padded image, starting with its row `first`.
    fn pad(&self, image: &[f32], first: usize, n_rows: usize, to: &mut [f32]) {
        let (pitch, padded_pitch) = (self.width * self.in_channels, self.padded_pitch());
        let left = self.window.padding_before[1] * self.in_channels;
        for (i, to) in to.chunks_exact_mut(padded_pitch.max(1)).take(n_rows).enumerate() {
            match (first + i).checked_sub(self.window.padding_before[0]) {
                Some(row) if row < self.height => {
                    to[..left].fill(0.0);
                    to[left..left + pitch].copy_from_slice(&image[row * pitch..(row + 1) * pitch]);
                    to[left + pitch..].fill(0.0);
                }
                _ => to.fill(0.0),
            }
        }
    }
}
