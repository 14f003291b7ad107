//! The gradients of filter and bias of a convolution whose result goes only into a max pooling.
//!
//! The gradient that the pooling returns is as large as the convolution's result and mostly zeros.
//! Here it is never written to memory as a whole. A task computes it for one set of images, adds up
//! its columns, which is the gradient of the bias, and multiplies it by the inputs that the filter
//! saw, all in the cache. The bits are those of the three kernels run one after the other; if the
//! sizes do not allow this method, the three kernels run instead.

use std::ops::Range;

use super::ConvShape;
use super::filter_gradient::{
    Cut, Gradient, conv2d_backprop_filter, conv2d_backprop_filter_scratch_len, products, products_scratch_len,
};
use crate::cpu::pool2d::{PoolShape, max_pool_grad_of, max_pool_grad_which};
use crate::cpu::reduce::{self, ColumnSums};
use crate::cpu::size::product;
use crate::parallel::{DisjointMut, Pool};
use crate::{DType, Reduction, Result};

/// A max pooling of the convolution's result, as
/// [`max_pool_which`](crate::cpu::pool2d::max_pool_which) does it.
#[derive(Clone, Copy, Debug)]
pub struct Pooling<'a> {
    /// The sizes of the pooling.
    pub shape: &'a PoolShape,
    /// The index of the largest element of each window.
    pub which: &'a [f32],
    /// The gradient with respect to the largest elements.
    pub dy: &'a [f32],
}

/// The sizes of the convolution's result, and the axes that are summed for the bias.
fn summed(shape: &ConvShape) -> ([usize; 4], u32) {
    ([shape.batch, shape.out_height(), shape.out_width(), shape.out_channels], 0b0111)
}

/// The column sums if all gradients are computed in one pass; `None` if that is not possible.
fn column_sums(shape: &ConvShape) -> Option<ColumnSums> {
    let cut = Cut::new(shape);
    let pixels = product(&[shape.out_height(), shape.out_width()]);
    let sums = ColumnSums::new(shape.batch, pixels, shape.out_channels, cut.images_per_group)?;
    (cut.n_parts == 1 && shape.filter_len() > 0).then_some(sums)
}

/// The number of floats of scratch memory that [`conv2d_backprop_filter_pooled`] needs. The memory
/// must be aligned to 8 bytes.
pub fn conv2d_backprop_filter_pooled_scratch_len(shape: &ConvShape) -> usize {
    if column_sums(shape).is_some() {
        return sums_len(shape) + products_scratch_len(shape, true);
    }
    inner_scratch_len(shape) + shape.output_len()
}

/// The number of floats that the sums of the columns take; they are doubles.
fn sums_len(shape: &ConvShape) -> usize {
    product(&[2, Cut::new(shape).n_groups, shape.out_channels])
}

/// The number of floats of scratch memory for the kernels of [`one_after_the_other`], in whole
/// cache lines.
fn inner_scratch_len(shape: &ConvShape) -> usize {
    let (dims, axes) = summed(shape);
    let sums = reduce::scratch_len(&dims, axes) / size_of::<f32>();
    conv2d_backprop_filter_scratch_len(shape).max(sums).next_multiple_of(16)
}

/// Computes `dfilter` as [`conv2d_backprop_filter`] does, with the `dy` that the pooling returns,
/// and `dbias`, the sum of that `dy` over all pixels.
///
/// `scratch` must hold at least [`conv2d_backprop_filter_pooled_scratch_len`] floats and be aligned
/// to 8 bytes.
pub fn conv2d_backprop_filter_pooled(
    pool: &Pool,
    shape: &ConvShape,
    x: &[f32],
    pooling: Pooling,
    dfilter: &mut [f32],
    dbias: &mut [f32],
    scratch: &mut [f32],
) -> Result<()> {
    shape.check_pooling(pooling.shape);
    shape.check(x.len(), dfilter.len(), pooling.shape.input_len());
    let pooled = pooling.shape.output_len();
    assert_eq!((pooling.which.len(), pooling.dy.len()), (pooled, pooled), "operands of {:?}", pooling.shape);
    assert_eq!(dbias.len(), shape.out_channels, "gradient of the bias of {shape:?}");
    if shape.output_len() == 0 {
        dfilter.fill(0.0);
        dbias.fill(0.0);
        return Ok(());
    }
    assert!(scratch.len() >= conv2d_backprop_filter_pooled_scratch_len(shape), "scratch of {shape:?}");
    assert!(scratch.as_ptr().cast::<f64>().is_aligned(), "scratch begins at a multiple of 8 bytes");
    let Some(columns) = column_sums(shape) else {
        return one_after_the_other(pool, shape, x, pooling, dfilter, dbias, scratch);
    };
    let (sums, scratch) = scratch.split_at_mut(sums_len(shape));
    // SAFETY: any bits are a valid float.
    let (_, sums, _) = unsafe { sums.align_to_mut::<f64>() };
    sums.chunks_exact_mut(shape.out_channels).for_each(|sums| columns.start(sums));
    let shared = DisjointMut::new(sums);
    let pixels = shape.out_height() * shape.out_width();
    let make = |group: usize, images: Range<usize>, dy: &mut [f32]| {
        let n = images.len();
        max_pool_grad_of(pooling.shape, images, pooling.which, pooling.dy, dy);
        // SAFETY: only one task works on a group.
        let sums = unsafe { shared.slice(group * shape.out_channels, shape.out_channels) };
        columns.add(dy, n * pixels, sums);
    };
    products(pool, shape, x, Gradient::Made(&make), dfilter, scratch);
    columns.finish(sums, dbias);
    Ok(())
}

/// Computes the same with the gradient in memory.
fn one_after_the_other(
    pool: &Pool,
    shape: &ConvShape,
    x: &[f32],
    pooling: Pooling,
    dfilter: &mut [f32],
    dbias: &mut [f32],
    scratch: &mut [f32],
) -> Result<()> {
    let (scratch, dy) = scratch.split_at_mut(inner_scratch_len(shape));
    let dy = &mut dy[..shape.output_len()];
    max_pool_grad_which(pool, pooling.shape, pooling.which, pooling.dy, dy);
    let (dims, axes) = summed(shape);
    // SAFETY: `dy` holds the elements of `dims` and `dbias` those of the last axis;
    // `inner_scratch_len` includes the scratch memory of the reduction, and the caller has checked
    // that it is aligned.
    unsafe {
        let bytes = std::slice::from_raw_parts_mut(scratch.as_mut_ptr().cast(), size_of_val(scratch));
        let (from, to) = (dy.as_ptr().cast(), dbias.as_mut_ptr().cast());
        reduce::reduce(pool, Reduction::Sum, DType::F32, &dims, axes, from, to, bytes)?;
    }
    conv2d_backprop_filter(pool, shape, x, dy, dfilter, scratch);
    Ok(())
}
