//! Max and mean pooling, `NHWC`, and their gradients.
//!
//! A margin is ignored: it is never the largest, and a mean divides by the number of elements in
//! the image. All kernels process the channels of a pixel in vectors, one element per lane, so the
//! bits do not depend on the vector width.

mod patch;

use std::ops::Range;

use patch::for_each_patch;

use super::cut::{Cut, Task};
use super::prefetch;
use super::simd::{Simd, for_every_isa};
use super::size::product;
use super::window::Window;
use crate::parallel::{DisjointMut, Pool};

/// Sizes of a pooling of `x[batch, height, width, channels]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolShape {
    /// The number of images.
    pub batch: usize,
    /// The number of rows of an image.
    pub height: usize,
    /// The number of columns of an image.
    pub width: usize,
    /// The number of channels.
    pub channels: usize,
    /// The window.
    pub window: Window,
}

/// Poolings of fewer floats in total (about 10 us) run on the caller.
const PARALLEL_FROM: usize = 1 << 16;

impl PoolShape {
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

    /// The number of floats of the output.
    pub fn output_len(&self) -> usize {
        product(&[self.batch, self.out_height(), self.out_width(), self.channels])
    }

    /// The number of floats of an image. There is at least one image, and [`Self::input_len`] has
    /// been checked.
    fn image_len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// The number of floats of the output of an image, as above.
    fn out_image_len(&self) -> usize {
        self.out_height() * self.out_width() * self.channels
    }

    /// Whether exactly one window sees each input element, so that gradients need not be added up.
    fn tiles_exactly(&self) -> bool {
        let tiles = |axis: usize, len: usize| {
            let size = self.window.size[axis];
            self.window.dilation[axis] == 1
                && self.window.stride[axis] == size
                && self.window.positions(axis, len) * size == len
        };
        !self.window.is_padded() && tiles(0, self.height) && tiles(1, self.width)
    }

    /// Calls `body` with each task of `cut` and the start of `out`, whose images have rows of
    /// `row_len` floats.
    ///
    /// A task writes the rows of its own images and band. No two tasks of a cut share such a row.
    fn for_each_task(
        &self,
        pool: &Pool,
        cut: &Cut,
        row_len: usize,
        out: &mut [f32],
        body: impl Fn(Task, *mut f32) + Sync,
    ) {
        // If one size is 0, the others may be anything, and nothing below could be computed from
        // them.
        if out.is_empty() {
            return;
        }
        let parallel = self.input_len().max(out.len()) >= PARALLEL_FROM;
        let out = DisjointMut::new(out);
        super::cut::run(pool, parallel, cut.n_tasks(), &|index| {
            let task = cut.task(index);
            cut.claim(&task, row_len, &out);
            body(task, out.as_mut_ptr());
        });
    }

    /// The cut for kernels that write outputs, and the number of floats of an output row.
    fn output_cut(&self) -> (Cut, usize) {
        (Cut::new(self.batch, self.out_height()), product(&[self.out_width(), self.channels]))
    }

    /// The cut for kernels that write gradients of inputs. Overlapping windows add to the same
    /// elements, so an image stays in one task.
    fn input_cut(&self) -> (Cut, usize) {
        (Cut::images_only(self.batch, self.height), product(&[self.width, self.channels]))
    }
}

/// Panics unless the operands have the sizes of the shape.
#[track_caller]
fn check(shape: &PoolShape, input: usize, output: usize) {
    assert_eq!((input, output), (shape.input_len(), shape.output_len()), "operands of {shape:?}");
}

/// Computes `y`, the largest value under each window; minus infinity if a window sees only margin.
pub fn max_pool(pool: &Pool, shape: &PoolShape, x: &[f32], y: &mut [f32]) {
    check(shape, x.len(), y.len());
    let (cut, row_len) = shape.output_cut();
    shape.for_each_task(pool, &cut, row_len, y, |task, y| {
        // SAFETY: the operands have the sizes of the shape.
        unsafe { max_rows(shape, &task, x.as_ptr(), y) };
    });
}

/// Computes `y`, the mean of the elements under each window; zero if a window sees only margin.
pub fn avg_pool(pool: &Pool, shape: &PoolShape, x: &[f32], y: &mut [f32]) {
    check(shape, x.len(), y.len());
    let (cut, row_len) = shape.output_cut();
    shape.for_each_task(pool, &cut, row_len, y, |task, y| {
        // SAFETY: the operands have the sizes of the shape.
        unsafe { mean_rows(shape, &task, x.as_ptr(), y) };
    });
}

/// Computes `dx` of [`max_pool`]: each `dy` goes to the first largest element of its window, row by
/// row.
pub fn max_pool_grad(pool: &Pool, shape: &PoolShape, x: &[f32], y: &[f32], dy: &[f32], dx: &mut [f32]) {
    check(shape, x.len(), y.len());
    check(shape, dx.len(), dy.len());
    if dy.is_empty() {
        return dx.fill(0.0);
    }
    let (cut, row_len) = shape.input_cut();
    shape.for_each_task(pool, &cut, row_len, dx, |task, dx| {
        // SAFETY: the operands have the sizes of the shape.
        unsafe { max_grad_images(shape, &task, x.as_ptr(), y.as_ptr(), dy.as_ptr(), dx) };
    });
}

/// [`max_pool`] that also records which element under the window is the first largest: 1 for the
/// first element that lies in the image, row by row; 0 if none equals `y`, as in a window of NaN.
pub fn max_pool_which(pool: &Pool, shape: &PoolShape, x: &[f32], y: &mut [f32], which: &mut [f32]) {
    check(shape, x.len(), y.len());
    check(shape, x.len(), which.len());
    let which = DisjointMut::new(which);
    let (cut, row_len) = shape.output_cut();
    shape.for_each_task(pool, &cut, row_len, y, |task, y| {
        // SAFETY: the operands have the sizes of the shape.
        unsafe { max_which_rows(shape, &task, x.as_ptr(), y, which.as_mut_ptr()) };
    });
}

/// [`max_pool_which`] on this thread.
pub(in crate::cpu) fn max_pool_which_here(shape: &PoolShape, x: &[f32], y: &mut [f32], which: &mut [f32]) {
    check(shape, x.len(), y.len());
    check(shape, x.len(), which.len());
    if y.is_empty() {
        return;
    }
    let all = Task { images: 0..shape.batch, rows: 0..shape.out_height() };
    // SAFETY: the operands have the sizes of the shape.
    unsafe { max_which_rows(shape, &all, x.as_ptr(), y.as_mut_ptr(), which.as_mut_ptr()) };
}

/// [`max_pool_grad`] from the result of [`max_pool_which`].
pub fn max_pool_grad_which(pool: &Pool, shape: &PoolShape, which: &[f32], dy: &[f32], dx: &mut [f32]) {
    check(shape, dx.len(), which.len());
    check(shape, dx.len(), dy.len());
    if dy.is_empty() {
        return dx.fill(0.0);
    }
    let (cut, row_len) = shape.input_cut();
    shape.for_each_task(pool, &cut, row_len, dx, |task, dx| {
        // SAFETY: the operands have the sizes of the shape.
        unsafe { which_grad_images(shape, &task, which.as_ptr(), dy.as_ptr(), dx) };
    });
}

/// [`max_pool_grad_which`] for some images; the operands hold all images.
pub(in crate::cpu) fn max_pool_grad_of(
    shape: &PoolShape,
    images: Range<usize>,
    which: &[f32],
    dy: &[f32],
    dx: &mut [f32],
) {
    let part = PoolShape { batch: images.len(), ..*shape };
    let (at, len) = (images.start * shape.out_image_len(), part.output_len());
    let (which, dy, dx) = (&which[at..at + len], &dy[at..at + len], &mut dx[..part.input_len()]);
    if len == 0 {
        return dx.fill(0.0);
    }
    let all = Task { images: 0..images.len(), rows: 0..shape.out_height() };
    // SAFETY: the operands have the sizes of the part.
    unsafe { which_grad_images(&part, &all, which.as_ptr(), dy.as_ptr(), dx.as_mut_ptr()) };
}

/// Computes `dx` of [`avg_pool`]: each `dy` is divided evenly among the elements of its window.
pub fn avg_pool_grad(pool: &Pool, shape: &PoolShape, dy: &[f32], dx: &mut [f32]) {
    check(shape, dx.len(), dy.len());
    if dy.is_empty() {
        return dx.fill(0.0);
    }
    let (cut, row_len) = shape.input_cut();
    shape.for_each_task(pool, &cut, row_len, dx, |task, dx| {
        // SAFETY: the operands have the sizes of the shape.
        unsafe { mean_grad_images(shape, &task, dy.as_ptr(), dx) };
    });
}

for_every_isa! {
    /// # Safety
    /// `x` and `y` must have the sizes of the shape.
    unsafe fn max_rows(shape: &PoolShape, task: &Task, x: *const f32, y: *mut f32) = max_rows_generic
}

for_every_isa! {
    /// # Safety
    /// `x` and `y` must have the sizes of the shape.
    unsafe fn mean_rows(shape: &PoolShape, task: &Task, x: *const f32, y: *mut f32) = mean_rows_generic
}

for_every_isa! {
    /// # Safety
    /// All four must have the sizes of the shape.
    unsafe fn max_grad_images(shape: &PoolShape, task: &Task, x: *const f32, y: *const f32, dy: *const f32, dx: *mut f32) =
        max_grad_images_generic
}

for_every_isa! {
    /// # Safety
    /// All three must have the sizes of the shape.
    unsafe fn max_which_rows(shape: &PoolShape, task: &Task, x: *const f32, y: *mut f32, which: *mut f32) = max_which_rows_generic
}

for_every_isa! {
    /// # Safety
    /// All three must have the sizes of the shape.
    unsafe fn which_grad_images(shape: &PoolShape, task: &Task, which: *const f32, dy: *const f32, dx: *mut f32) =
        which_grad_images_generic
}

for_every_isa! {
    /// # Safety
    /// `dy` and `dx` must have the sizes of the shape.
    unsafe fn mean_grad_images(shape: &PoolShape, task: &Task, dy: *const f32, dx: *mut f32) = mean_grad_images_generic
}

#[inline(always)]
unsafe fn max_rows_generic<S: Simd>(shape: &PoolShape, task: &Task, x: *const f32, y: *mut f32) {
    // SAFETY: the caller upholds the contract.
    unsafe { fold_rows::<S>(shape, task, x, y, f32::NEG_INFINITY, |a, b| S::max(b, a), |sum, _| sum) }
}

#[inline(always)]
unsafe fn mean_rows_generic<S: Simd>(shape: &PoolShape, task: &Task, x: *const f32, y: *mut f32) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        fold_rows::<S>(
            shape,
            task,
            x,
            y,
            0.0,
            |a, b| S::add(a, b),
            |sum, count| S::div(sum, S::splat(count.max(1) as f32)),
        );
    }
}

/// Each output of the task is `finish(fold of the elements under its window, their number)`.
#[inline(always)]
unsafe fn fold_rows<S: Simd>(
    shape: &PoolShape,
    task: &Task,
    x: *const f32,
    y: *mut f32,
    start: f32,
    fold: impl Fn(S::Vector, S::Vector) -> S::Vector,
    finish: impl Fn(S::Vector, usize) -> S::Vector,
) {
    let channels = shape.channels;
    for_each_patch(shape, task, |patch| {
        let mut channel = 0;
        while channel < channels {
            // SAFETY: the patch lies inside the image; vectors are masked to the channels that are
            // left.
            unsafe {
                let mask = S::mask((channels - channel).min(S::LANES));
                let mut sum = S::splat(start);
                patch.for_each_pixel(channel, |at| sum = fold(sum, S::load_masked(x.add(at), mask)));
                S::store_masked(y.add(patch.out + channel), finish(sum, patch.rows * patch.columns), mask);
            }
            channel += S::LANES;
        }
    });
}

#[inline(always)]
unsafe fn max_grad_images_generic<S: Simd>(
    shape: &PoolShape,
    task: &Task,
    x: *const f32,
    y: *const f32,
    dy: *const f32,
    dx: *mut f32,
) {
    // SAFETY: `scatter_images` passes positions inside the image and its output.
    unsafe {
        scatter_images::<S, _>(
            shape,
            task,
            dx,
            // The largest value, and the part of the gradient that no element has taken yet.
            |at, _, mask| (S::load_masked(y.add(at), mask), S::load_masked(dy.add(at), mask)),
            |(largest, left), at, mask| {
                let here = S::load_masked(x.add(at), mask);
                let taken = S::where_equal(here, *largest, *left);
                *left = S::where_different(here, *largest, *left);
                taken
            },
        );
    }
}

#[inline(always)]
unsafe fn max_which_rows_generic<S: Simd>(shape: &PoolShape, task: &Task, x: *const f32, y: *mut f32, which: *mut f32) {
    let channels = shape.channels;
    for_each_patch(shape, task, |patch| {
        let mut channel = 0;
        while channel < channels {
            // SAFETY: the patch lies inside the image; vectors are masked to the channels that are
            // left.
            unsafe {
                let mask = S::mask((channels - channel).min(S::LANES));
                let mut largest = S::splat(f32::NEG_INFINITY);
                patch.for_each_pixel(channel, |at| largest = S::max(S::load_masked(x.add(at), mask), largest));
                let (mut number, mut first) = (0.0, S::splat(0.0));
                patch.for_each_pixel(channel, |at| {
                    number += 1.0;
                    let equal = S::where_equal(S::load_masked(x.add(at), mask), largest, S::splat(number));
                    first = S::add(first, S::where_equal(first, S::splat(0.0), equal));
                });
                S::store_masked(y.add(patch.out + channel), largest, mask);
                S::store_masked(which.add(patch.out + channel), first, mask);
            }
            channel += S::LANES;
        }
    });
}

#[inline(always)]
unsafe fn which_grad_images_generic<S: Simd>(
    shape: &PoolShape,
    task: &Task,
    which: *const f32,
    dy: *const f32,
    dx: *mut f32,
) {
    // SAFETY: `scatter_images` passes positions inside the output of the image.
    unsafe {
        scatter_images::<S, _>(
            shape,
            task,
            dx,
            |at, _, mask| (S::load_masked(which.add(at), mask), S::load_masked(dy.add(at), mask), 0.0),
            |(which, dy, number), _, _| {
                *number += 1.0;
                S::where_equal(*which, S::splat(*number), *dy)
            },
        );
    }
}

#[inline(always)]
unsafe fn mean_grad_images_generic<S: Simd>(shape: &PoolShape, task: &Task, dy: *const f32, dx: *mut f32) {
    // SAFETY: `scatter_images` passes positions inside the output of the image.
    unsafe {
        let share = |at: usize, count: usize, mask| S::div(S::load_masked(dy.add(at), mask), S::splat(count as f32));
        scatter_images::<S, _>(shape, task, dx, share, |share, _, _| *share);
    }
}

/// Adds to each element of `dx` the contributions of the windows that see it.
/// `begin(output, elements under the window)` is called once per window, then
/// `take(state, element)` for its elements, row by row.
#[inline(always)]
unsafe fn scatter_images<S: Simd, State>(
    shape: &PoolShape,
    task: &Task,
    dx: *mut f32,
    begin: impl Fn(usize, usize, S::Mask) -> State,
    take: impl Fn(&mut State, usize, S::Mask) -> S::Vector,
) {
    let channels = shape.channels;
    let overwrite = shape.tiles_exactly();
    if !overwrite {
        let image_len = shape.image_len();
        // SAFETY: the task's images of `dx`.
        unsafe { dx.add(task.images.start * image_len).write_bytes(0, task.images.len() * image_len) };
    }
    // Prefetches the next row of windows: nearer ones would arrive too late.
    let ahead = shape.window.stride[0].wrapping_mul(shape.width * channels);
    let task = Task { images: task.images.clone(), rows: 0..shape.out_height() };
    for_each_patch(shape, &task, |patch| {
        let mut channel = 0;
        while channel < channels {
            // SAFETY: the patch lies inside the image; vectors are masked to the channels that are
            // left.
            unsafe {
                let mask = S::mask((channels - channel).min(S::LANES));
                let mut state = begin(patch.out + channel, patch.rows * patch.columns, mask);
                patch.for_each_pixel(channel, |at| {
                    let mut given = take(&mut state, at, mask);
                    if overwrite {
                        prefetch::for_writing(dx.wrapping_add(at.wrapping_add(ahead)));
                    } else {
                        given = S::add(S::load_masked(dx.add(at), mask), given);
                    }
                    S::store_masked(dx.add(at), given, mask);
                });
            }
            channel += S::LANES;
        }
    });
}
