//! Steps that move data: transposes, joins, cuts, borders, repeats, resizes, and counting.

use estimand_tensor::cpu::layout;
use estimand_tensor::cpu::resize::{self, Resize};
use estimand_tensor::{Dims, Error, Result};
use smallvec::SmallVec;

use super::call::{Call, with_number};
use crate::op::Op;
use crate::sizes::resolve_dim;

impl Call<'_> {
    /// `DimSize` and `Range`.
    pub(super) fn count(&mut self) -> Result<()> {
        use estimand_tensor::cpu::number::Number;
        let (op, y) = (&self.node.op, &mut self.y[0]);
        match op {
            Op::DimSize(dim, dtype) => {
                let n = resolve_dim(*dim, self.symbols)?;
                with_number!(*dtype, T => y.as_mut_slice::<T>()[0] = T::from_count(n));
            }
            Op::Range(_, dtype) => {
                with_number!(*dtype, T => layout::range(T::ZERO, T::ONE, y.as_mut_slice::<T>()));
            }
            other => return Err(Error::internal(format!("{} counts nothing", other.name()))),
        }
        Ok(())
    }

    /// Everything that only moves elements.
    pub(super) fn layout(&mut self) -> Result<()> {
        let (pool, x) = (self.pool, self.x[0]);
        let (size, op) = (x.dtype.size(), &self.node.op);
        let y = &mut self.y[0];
        match op {
            Op::Transpose(perm) => {
                let perm: SmallVec<[usize; 8]> = perm.iter().map(|&a| a.into()).collect();
                layout::transpose(pool, x.dims, &perm, size, x.bytes, y.bytes);
            }
            Op::Concat(axis) => {
                let parts: SmallVec<[&[u8]; 32]> = self.x.iter().map(|x| x.bytes).collect();
                layout::concat(pool, x.dims[..*axis].iter().product(), &parts, y.bytes);
            }
            Op::Slice { begin, .. } => layout::slice(pool, x.dims, begin, y.dims, size, x.bytes, y.bytes),
            Op::StridedSlice { begin, strides, .. } => {
                let strides: SmallVec<[isize; 8]> = strides.iter().map(|&s| s as isize).collect();
                layout::strided_slice(pool, x.dims, begin, &strides, y.dims, size, x.bytes, y.bytes);
            }
            Op::StridedSliceGrad { begin, strides, .. } => {
                let strides: SmallVec<[isize; 8]> = strides.iter().map(|&s| s as isize).collect();
                layout::strided_slice_grad(pool, y.dims, begin, &strides, x.dims, size, x.bytes, y.bytes);
            }
            Op::Pad { before, .. } => {
                let mut paddings: SmallVec<[(usize, usize); 8]> = SmallVec::new();
                for (axis, dim) in before.dims().iter().enumerate() {
                    let before = resolve_dim(*dim, self.symbols)?;
                    paddings.push((before, y.dims[axis] - x.dims[axis] - before));
                }
                layout::pad(pool, x.dims, &paddings, self.x[1].bytes, x.bytes, y.bytes);
            }
            Op::MirrorPad { paddings, symmetric } => {
                let mode = if *symmetric { layout::Mirror::Symmetric } else { layout::Mirror::Reflect };
                layout::mirror_pad(pool, x.dims, paddings, mode, size, x.bytes, y.bytes);
            }
            Op::MirrorPadGrad { paddings, symmetric } => {
                with_number!(x.dtype, T => mirror_pad_grad(x.dims, paddings, *symmetric, x.as_slice::<T>(), y.dims, y.as_mut_slice::<T>()));
            }
            Op::Tile(multiples) => layout::tile(pool, x.dims, multiples, size, x.bytes, y.bytes),
            Op::Reverse(axes) => {
                let axes: SmallVec<[usize; 8]> = axes.iter().collect();
                layout::reverse(pool, x.dims, &axes, size, x.bytes, y.bytes);
            }
            Op::Resize(r) => {
                let resize = sizes(x.dims, y.dims, r.half_pixel_centers);
                let run = if r.bilinear { resize::resize_bilinear } else { resize::resize_nearest };
                if !x.bytes.is_empty() {
                    run(pool, &resize, x.as_slice(), y.as_mut_slice());
                }
            }
            Op::ResizeGrad(r, _) => {
                let resize = sizes(y.dims, x.dims, r.half_pixel_centers);
                let run = if r.bilinear { resize::resize_bilinear_grad } else { resize::resize_nearest_grad };
                if !y.bytes.is_empty() {
                    run(pool, &resize, x.as_slice(), y.as_mut_slice());
                }
            }
            other => return Err(Error::internal(format!("{} moves no data", other.name()))),
        }
        Ok(())
    }
}

fn sizes(from: &[usize], to: &[usize], half_pixel_centers: bool) -> Resize {
    Resize { from: [from[1], from[2]], to: [to[1], to[2]], channels: from[3], align_corners: false, half_pixel_centers }
}

/// Adds every element of a padded gradient to the element it mirrors, in row-major order.
fn mirror_pad_grad<T: estimand_tensor::cpu::number::Number>(
    padded: &[usize],
    paddings: &[(usize, usize)],
    symmetric: bool,
    dy: &[T],
    dims: &[usize],
    dx: &mut [T],
) {
    dx.fill(T::ZERO);
    let skip = usize::from(!symmetric);
    let mut at: Dims = padded.iter().map(|_| 0).collect();
    for &g in dy {
        let mut to = 0;
        for axis in 0..dims.len() {
            let (n, before) = (dims[axis], paddings[axis].0);
            // Left of the border counts back from it, right of the other border likewise.
            let source = match at[axis] {
                i if i < before => before - i - 1 + skip,
                i if i >= before + n => 2 * n - 1 - (i - before) - skip,
                i => i - before,
            };
            to = to * n + source;
        }
        dx[to] = dx[to].plus(g);
        for axis in (0..padded.len()).rev() {
            at[axis] += 1;
            if at[axis] < padded[axis] {
                break;
            }
            at[axis] = 0;
        }
    }
}
