//! The gradient of a convolution with respect to its filter.
//!
//! It is a product over all output pixels. Row `tap` of the left operand holds the inputs that this
//! tap of the filter saw, read from the image (see `panels`); the right operand is `dy`. A segment
//! of k is one output row. The images are cut into fixed groups whose sums are added in order at
//! the end. `dy` is in memory, or is computed for a few images at a time (see `pooled_gradient`).

use std::ops::Range;

use super::panels::Panels;
use super::segments::{Stretches, for_each_block};
use super::{ConvShape, run};
use crate::cpu::add::add_parts;
use crate::cpu::microkernel::BLOCK_K;
use crate::cpu::size::product;
use crate::parallel::{DisjointMut, Pool};

/// The largest number of groups of images.
const GROUPS: usize = 16;
/// The largest number of floats of all partial sums together. A larger filter is cut by its rows
/// instead.
const PARTIALS: usize = 1 << 19;
/// A part with fewer rows is not cut further: each part reads the gradients again.
const LEAST_ROWS: usize = 64;

/// The number of elements of the filter whose partial sums one task adds up.
const SUMS: usize = 1 << 12;

/// The cut of the work into tasks.
pub(super) struct Cut {
    /// The number of images whose pixels make up one round of blocks.
    images_per_set: usize,
    pub images_per_group: usize,
    pub n_groups: usize,
    /// The number of rows of the filter per task, and the number of such parts.
    rows: usize,
    pub n_parts: usize,
}

impl Cut {
    pub fn new(shape: &ConvShape) -> Self {
        let pixels = product(&[shape.out_height(), shape.out_width()]);
        let images_per_set = (BLOCK_K / pixels.max(1)).max(1);
        let n_sets = shape.batch.div_ceil(images_per_set);
        let n_groups = GROUPS.min(PARTIALS / shape.filter_len().max(1)).clamp(1, n_sets.max(1));
        // A power of two divides most numbers of images: three groups of eight images would be
        // unequal tasks.
        let n_groups = 1 << n_groups.ilog2();
        let images_per_group = product(&[n_sets.div_ceil(n_groups), images_per_set]);
        let rows = shape.taps().div_ceil((GROUPS / 2).div_ceil(n_groups)).max(LEAST_ROWS);
        Cut {
            images_per_set,
            images_per_group,
            n_groups: shape.batch.div_ceil(images_per_group.max(1)),
            rows,
            n_parts: shape.taps().div_ceil(rows),
        }
    }

    fn n_tasks(&self) -> usize {
        self.n_groups * self.n_parts
    }

    /// The number of floats of the gradients of one set, with room to read past the end.
    fn made_len(&self, shape: &ConvShape) -> usize {
        product(&[self.images_per_set, shape.out_image_len()]) + 16
    }

    /// The number of floats of the padded images of one set; zero without a margin, or if all
    /// images are padded before.
    fn slot(&self, shape: &ConvShape) -> usize {
        if shape.window.is_padded() && self.n_parts == 1 {
            product(&[self.images_per_set, shape.padded_len()])
        } else {
            0
        }
    }

    /// The number of floats of all padded images: several parts read the same ones.
    fn padded(&self, shape: &ConvShape) -> usize {
        if shape.window.is_padded() && self.n_parts > 1 { product(&[shape.batch, shape.padded_len()]) } else { 0 }
    }
}

/// The number of images at the end of `dy` that are copied, because reading their rows to the end
/// of a vector would leave `dy`.
fn tail_images(shape: &ConvShape) -> usize {
    let whole_vectors = shape.out_channels.is_multiple_of(16);
    if whole_vectors { 0 } else { 16_usize.div_ceil(shape.out_image_len().max(1)).min(shape.batch) }
}

/// The number of floats of that copy, with room to read past the end.
fn tail_len(shape: &ConvShape) -> usize {
    product(&[tail_images(shape), shape.out_image_len()]) + 16
}

/// The source of `dy`.
pub(super) enum Gradient<'a> {
    /// `dy` is in memory. `tail` is a copy of the last images with room to read past the end.
    Stored { dy: &'a [f32], tail: &'a [f32] },
    /// A function that writes the gradients of some images of a group. Used only if the filter is
    /// not cut into parts.
    Made(&'a Make<'a>),
}

type Make<'a> = dyn Fn(usize, Range<usize>, &mut [f32]) + Sync + 'a;

/// The operands, and the cut into parts.
struct Operands<'a> {
    shape: &'a ConvShape,
    cut: &'a Cut,
    x: &'a [f32],
    /// All images with their margin, if they are padded before.
    padded: &'a [f32],
    dy: Gradient<'a>,
}

/// The number of floats of scratch memory that [`conv2d_backprop_filter`] needs.
pub fn conv2d_backprop_filter_scratch_len(shape: &ConvShape) -> usize {
    tail_len(shape) + products_scratch_len(shape, false)
}

/// The number of floats of scratch memory that [`products`] needs; `made` says whether gradients
/// are computed on the fly.
pub(super) fn products_scratch_len(shape: &ConvShape, made: bool) -> usize {
    let cut = Cut::new(shape);
    let made_len = if made { cut.made_len(shape) } else { 0 };
    let per_task = cut.slot(shape) + made_len + Panels::scratch_len(shape);
    product(&[cut.n_groups, shape.filter_len()]) + product(&[cut.n_tasks(), per_task]) + cut.padded(shape)
}

/// Computes `dfilter`, the gradient of `sum(dy * conv(x, filter))` with respect to the filter.
///
/// `scratch` must hold at least [`conv2d_backprop_filter_scratch_len`] floats.
pub fn conv2d_backprop_filter(
    pool: &Pool,
    shape: &ConvShape,
    x: &[f32],
    dy: &[f32],
    dfilter: &mut [f32],
    scratch: &mut [f32],
) {
    shape.check(x.len(), dfilter.len(), dy.len());
    if dy.is_empty() || dfilter.is_empty() {
        return dfilter.fill(0.0);
    }
    assert!(scratch.len() >= conv2d_backprop_filter_scratch_len(shape), "scratch of {shape:?}");
    let (tail, scratch) = scratch.split_at_mut(tail_len(shape));
    let copied = tail.len() - 16;
    tail[..copied].copy_from_slice(&dy[dy.len() - copied..]);
    tail[copied..].fill(0.0);
    products(pool, shape, x, Gradient::Stored { dy, tail }, dfilter, scratch);
}

/// Computes the products of all groups, and their sum. There must be images, the operands must have
/// the sizes of the shape, and `scratch` must hold at least [`products_scratch_len`] floats.
pub(super) fn products(
    pool: &Pool,
    shape: &ConvShape,
    x: &[f32],
    dy: Gradient,
    dfilter: &mut [f32],
    scratch: &mut [f32],
) {
    let cut = Cut::new(shape);
    let filter_len = shape.filter_len();
    let made_len = if matches!(dy, Gradient::Made(_)) { cut.made_len(shape) } else { 0 };
    let (partials, scratch) = scratch.split_at_mut(cut.n_groups * filter_len);
    let (padded, scratch) = scratch.split_at_mut(cut.padded(shape));
    shape.pad_all(pool, x, padded);
    let operands = Operands { shape, cut: &cut, x, padded, dy };
    {
        let slot_len = cut.slot(shape) + made_len + Panels::scratch_len(shape);
        let (partials, slots) = (DisjointMut::new(partials), DisjointMut::new(scratch));
        let part_len = cut.rows * shape.out_channels;
        run(pool, shape.is_parallel(), cut.n_tasks(), &|task| {
            let (group, part) = (task / cut.n_parts, task % cut.n_parts);
            let len = part_len.min(filter_len - part * part_len);
            // SAFETY: each task has its own rows of its group's partial sum, and its own slot.
            let (partial, slot) = unsafe {
                let at = group * filter_len + part * part_len;
                (partials.slice(at, len), slots.slice(task * slot_len, slot_len))
            };
            let (padded, slot) = slot.split_at_mut(cut.slot(shape));
            let (made, panels) = slot.split_at_mut(made_len);
            operands.partial_sum(group, part, partial, made, &mut Slots { padded, panels });
        });
    }
    let (partials, dfilter) = (&*partials, DisjointMut::new(dfilter));
    run(pool, shape.is_parallel(), filter_len.div_ceil(SUMS), &|task| {
        let at = task * SUMS;
        let len = SUMS.min(filter_len - at);
        // SAFETY: the partial sums lie one after the other, each as long as the result; each task
        // writes its own part of the result.
        unsafe {
            add_parts(partials[at..].as_ptr(), filter_len, cut.n_groups, dfilter.slice(at, len).as_mut_ptr(), len)
        };
    });
}

/// The scratch memory of a task: for the images of a set with their margin, and for panels.
struct Slots<'a> {
    padded: &'a mut [f32],
    panels: &'a mut [f32],
}

impl Operands<'_> {
    /// Computes the contribution of the images of `group` to the rows of `part`.
    fn partial_sum(&self, group: usize, part: usize, partial: &mut [f32], made: &mut [f32], slots: &mut Slots<'_>) {
        let Operands { shape, cut, .. } = *self;
        let out_len = shape.out_image_len();
        let first = group * cut.images_per_group;
        let end = shape.batch.min(first + cut.images_per_group);
        let copied_from = shape.batch - tail_images(shape);
        for start in (first..end).step_by(cut.images_per_set) {
            let next = end.min(start + cut.images_per_set);
            let (dy, tail) = match self.dy {
                Gradient::Stored { dy, tail } => (dy, tail),
                Gradient::Made(make) => {
                    make(group, start..next, made);
                    self.set(start..next, made, part, start == first, partial, slots);
                    continue;
                }
            };
            // Images that must be read from their copy form a separate set.
            let middle = copied_from.clamp(start, next);
            if start < middle {
                self.set(start..middle, &dy[start * out_len..], part, start == first, partial, slots);
            }
            if middle < next {
                let dy = &tail[(middle - copied_from) * out_len..];
                self.set(middle..next, dy, part, middle == first, partial, slots);
            }
        }
    }

    /// Adds some images, whose gradients begin at `dy`. If they are the first, the sum starts from
    /// zero.
    fn set(
        &self,
        images: Range<usize>,
        dy: &[f32],
        part: usize,
        is_first: bool,
        partial: &mut [f32],
        slots: &mut Slots<'_>,
    ) {
        let Operands { shape, cut, x, padded, .. } = *self;
        let (out_height, out_width) = (shape.out_height(), shape.out_width());
        let image_len = shape.image_len();
        let x = &x[images.start * image_len..];
        let (x, image_len, pitch) = if !shape.window.is_padded() {
            (x, image_len, shape.width * shape.in_channels)
        } else if cut.n_parts > 1 {
            (&padded[images.start * shape.padded_len()..], shape.padded_len(), shape.padded_pitch())
        } else {
            for (i, to) in slots.padded.chunks_exact_mut(shape.padded_len()).take(images.len()).enumerate() {
                shape.pad(&x[i * image_len..(i + 1) * image_len], 0, shape.padded_height(), to);
            }
            (&*slots.padded, shape.padded_len(), shape.padded_pitch())
        };
        let rows = part * cut.rows..shape.taps().min((part + 1) * cut.rows);
        let panels = Panels { shape, stretches: Stretches::new(shape, pitch), x, dy, rows };
        let row_step = shape.window.stride[0].wrapping_mul(pitch);
        let offset = |segment: usize| segment / out_height * image_len + (segment % out_height).wrapping_mul(row_step);
        for_each_block(images.len() * out_height, out_width, offset, |block| {
            panels.add(block, !is_first || block.first > 0, partial, slots.panels);
        });
    }
}
