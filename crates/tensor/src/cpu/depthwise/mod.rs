//! Depthwise convolutions: every input channel has its own `multiplier` filters, `NHWC` by
//! `[rows, columns, in, multiplier]`.
//!
//! Output channel `c * multiplier + m` belongs to input channel c. With the input's channels
//! repeated `multiplier` times, everything is element-wise in the channels and is computed in
//! vectors over them. Each element is one chain of fused multiply-adds, taps (or pixels of an
//! image) ascending. `rows` computes one row of an image, and `nine` the pixels in it that see all
//! taps of a filter of 3 x 3.

mod nine;
mod rows;

use rows::{filter_row, forward_row, input_row};

use super::add::add_parts;
use super::cut::{Cut, Task, run};
use super::size::product;
use super::window::Window;
use crate::parallel::{DisjointMut, Pool};

/// Sizes of a depthwise convolution of `x[batch, height, width, channels]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DepthwiseShape {
    /// The number of images.
    pub batch: usize,
    /// The number of rows of an image.
    pub height: usize,
    /// The number of columns of an image.
    pub width: usize,
    /// The number of channels of the input.
    pub channels: usize,
    /// The number of output channels per input channel.
    pub multiplier: usize,
    /// The filter's rows and columns, and how it moves.
    pub window: Window,
}

/// Convolutions with fewer multiply-adds (about 15 us) run on the caller.
const PARALLEL_FROM: usize = 1 << 18;

impl DepthwiseShape {
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
        product(&[self.batch, self.height, self.width, self.channels])
    }

    /// The number of floats of the filter.
    pub fn filter_len(&self) -> usize {
        product(&[self.window.size[0], self.window.size[1], self.channels, self.multiplier])
    }

    /// The number of floats of the output.
    pub fn output_len(&self) -> usize {
        product(&[self.batch, self.out_height(), self.out_width(), self.channels, self.multiplier])
    }

    /// The number of floats of scratch memory that any of the three functions needs.
    pub fn scratch_len(&self) -> usize {
        let n_bands =
            Cut::new(self.batch, self.out_height()).n_tasks().max(Cut::new(self.batch, self.height).n_tasks());
        let n_groups = Cut::images_only(self.batch, self.height).n_tasks();
        // A partial sum of a group, and that of an image.
        product(&[n_bands.max(n_groups), self.expanded_len()]) + product(&[n_groups, 2, self.filter_len()])
    }

    fn out_channels(&self) -> usize {
        product(&[self.channels, self.multiplier])
    }

    fn image_len(&self) -> usize {
        product(&[self.height, self.width, self.channels])
    }

    /// The number of floats of an image with repeated channels; zero if there is nothing to repeat.
    fn expanded_len(&self) -> usize {
        if self.multiplier == 1 { 0 } else { product(&[self.image_len(), self.multiplier]) }
    }

    fn is_parallel(&self) -> bool {
        let taps = self.window.size[0].saturating_mul(self.window.size[1]);
        self.output_len().saturating_mul(taps) >= PARALLEL_FROM
    }

    /// Image `index` with each channel repeated `multiplier` times. It is written to `room`, or
    /// borrowed from `x` if there is nothing to repeat.
    fn expanded<'a>(&self, x: &'a [f32], index: usize, room: &'a mut [f32]) -> &'a [f32] {
        let image = &x[index * self.image_len()..(index + 1) * self.image_len()];
        if self.multiplier == 1 {
            return image;
        }
        for (&x, copies) in image.iter().zip(room.chunks_exact_mut(self.multiplier.max(1))) {
            copies.fill(x);
        }
        room
    }
}

fn check(shape: &DepthwiseShape, x: usize, filter: usize, y: usize, scratch: usize) {
    let sizes = (shape.input_len(), shape.filter_len(), shape.output_len());
    assert_eq!((x, filter, y), sizes, "operands of {shape:?}");
    assert!(scratch >= shape.scratch_len(), "scratch of {shape:?}");
}

/// Computes `y`, the depthwise convolution of x. `scratch` must hold at least
/// [`DepthwiseShape::scratch_len`] floats.
pub fn depthwise_conv2d(
    pool: &Pool,
    shape: &DepthwiseShape,
    x: &[f32],
    filter: &[f32],
    y: &mut [f32],
    scratch: &mut [f32],
) {
    check(shape, x.len(), filter.len(), y.len(), scratch.len());
    if y.is_empty() {
        return;
    }
    let cut = Cut::new(shape.batch, shape.out_height());
    let row_len = shape.out_width() * shape.out_channels();
    let (y, rooms) = (DisjointMut::new(y), DisjointMut::new(scratch));
    run(pool, shape.is_parallel(), cut.n_tasks(), &|index| {
        let Task { images, rows } = cut.task(index);
        // SAFETY: each task has its own room.
        let room = unsafe { rooms.slice(index * shape.expanded_len(), shape.expanded_len()) };
        for image in images {
            let x = shape.expanded(x, image, room);
            for row in rows.clone() {
                // SAFETY: a row belongs to one task.
                let y = unsafe { y.slice((image * shape.out_height() + row) * row_len, row_len) };
                // SAFETY: an image, the filter and a row of the output have the sizes of the shape.
                unsafe { forward_row(shape, row, x.as_ptr(), filter.as_ptr(), y.as_mut_ptr()) };
            }
        }
    });
}

/// Computes `dx`, the gradient with respect to the input. `scratch` must hold at least
/// [`DepthwiseShape::scratch_len`] floats.
pub fn depthwise_conv2d_backprop_input(
    pool: &Pool,
    shape: &DepthwiseShape,
    filter: &[f32],
    dy: &[f32],
    dx: &mut [f32],
    scratch: &mut [f32],
) {
    check(shape, dx.len(), filter.len(), dy.len(), scratch.len());
    if dx.is_empty() || dy.is_empty() {
        return dx.fill(0.0);
    }
    let cut = Cut::new(shape.batch, shape.height);
    let row_len = shape.width * shape.channels;
    let (dx, rooms) = (DisjointMut::new(dx), DisjointMut::new(scratch));
    let out_len = shape.out_height() * shape.out_width() * shape.out_channels();
    run(pool, shape.is_parallel(), cut.n_tasks(), &|index| {
        let Task { images, rows } = cut.task(index);
        // SAFETY: each task has its own room.
        let room = unsafe { rooms.slice(index * shape.expanded_len(), shape.expanded_len()) };
        for image in images {
            let dy = &dy[image * out_len..(image + 1) * out_len];
            for row in rows.clone() {
                // SAFETY: a row belongs to one task.
                let dx = unsafe { dx.slice((image * shape.height + row) * row_len, row_len) };
                let expanded = if shape.multiplier == 1 { &mut *dx } else { &mut room[..row_len * shape.multiplier] };
                // SAFETY: the gradient of an image, the filter and an expanded row have the sizes
                // of the shape.
                unsafe { input_row(shape, row, dy.as_ptr(), filter.as_ptr(), expanded.as_mut_ptr()) };
                if shape.multiplier != 1 {
                    for (i, dx) in dx.iter_mut().enumerate() {
                        *dx = room[i * shape.multiplier..(i + 1) * shape.multiplier].iter().sum();
                    }
                }
            }
        }
    });
}

/// Computes `dfilter`, the gradient with respect to the filter. `scratch` must hold at least
/// [`DepthwiseShape::scratch_len`] floats.
pub fn depthwise_conv2d_backprop_filter(
    pool: &Pool,
    shape: &DepthwiseShape,
    x: &[f32],
    dy: &[f32],
    dfilter: &mut [f32],
    scratch: &mut [f32],
) {
    check(shape, x.len(), dfilter.len(), dy.len(), scratch.len());
    if x.is_empty() || dy.is_empty() {
        return dfilter.fill(0.0);
    }
    let cut = Cut::images_only(shape.batch, shape.height);
    let filter_len = shape.filter_len();
    let out_len = shape.out_height() * shape.out_width() * shape.out_channels();
    let (partials, scratch) = scratch.split_at_mut(cut.n_tasks() * filter_len);
    {
        let room_len = shape.expanded_len() + filter_len;
        let (partials, rooms) = (DisjointMut::new(&mut *partials), DisjointMut::new(scratch));
        run(pool, shape.is_parallel(), cut.n_tasks(), &|index| {
            // SAFETY: each task has its own partial sum and room.
            let (partial, room) = unsafe {
                let room = rooms.slice(index * room_len, room_len);
                (partials.slice(index * filter_len, filter_len), room)
            };
            let (of_image, room) = room.split_at_mut(filter_len);
            partial.fill(0.0);
            for image in cut.task(index).images {
                let x = shape.expanded(x, image, room);
                let dy = &dy[image * out_len..(image + 1) * out_len];
                of_image.fill(0.0);
                for row in 0..shape.out_height() {
                    // SAFETY: an image, its gradient and the sums have the sizes of the shape.
                    unsafe { filter_row(shape, row, x.as_ptr(), dy.as_ptr(), of_image.as_mut_ptr()) };
                }
                for (sum, of_image) in partial.iter_mut().zip(&*of_image) {
                    *sum += of_image;
                }
            }
        });
    }
    // SAFETY: the partial sums lie one after the other, each as long as the result.
    unsafe { add_parts(partials.as_ptr(), filter_len, cut.n_tasks(), dfilter.as_mut_ptr(), filter_len) };
}
