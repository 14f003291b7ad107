//! Steps that move data: transposes, concatenations, slices, padding, repeats, resizes, and ranges.

use estimand_graph::op::*;
use estimand_graph::sizes::resolve_dim;
use estimand_tensor::cpu::number::Number;
use estimand_tensor::cpu::{layout, resize};
use estimand_tensor::{Dims, Result};
use smallvec::SmallVec;

use super::operands::{KernelCall, with_number};

/// Converts strides to the kernels' type.
fn steps(strides: &[i64]) -> SmallVec<[isize; 8]> {
    strides.iter().map(|&s| s as isize).collect()
}

impl KernelCall<'_, '_> {
    pub(super) fn dim_size(&mut self, op: &DimSize) -> Result<()> {
        let n = resolve_dim(op.dim, self.symbols)?;
        with_number!(op.dtype, T => self.y[0].as_mut_slice::<T>()[0] = T::from_count(n));
        Ok(())
    }

    pub(super) fn range(&mut self, op: &Range) -> Result<()> {
        with_number!(op.dtype, T => layout::range(T::ZERO, T::ONE, self.y[0].as_mut_slice::<T>()));
        Ok(())
    }

    pub(super) fn transpose(&mut self, op: &Transpose) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        let perm: SmallVec<[usize; 8]> = op.perm.iter().map(|&a| a.into()).collect();
        layout::transpose(self.pool, x.dims, &perm, x.dtype.size(), x.bytes, y.bytes);
        Ok(())
    }

    pub(super) fn concat(&mut self, op: &Concat) -> Result<()> {
        let parts: SmallVec<[&[u8]; 32]> = self.x.iter().map(|x| x.bytes).collect();
        layout::concat(self.pool, self.x[0].dims[..op.axis].iter().product(), &parts, self.y[0].bytes);
        Ok(())
    }

    pub(super) fn slice(&mut self, op: &Slice) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        layout::slice(self.pool, x.dims, &op.begin, y.dims, x.dtype.size(), x.bytes, y.bytes);
        Ok(())
    }

    pub(super) fn strided_slice(&mut self, op: &StridedSlice) -> Result<()> {
        let (x, y, strides) = (self.x[0], &mut self.y[0], steps(&op.strides));
        layout::strided_slice(self.pool, x.dims, &op.begin, &strides, y.dims, x.dtype.size(), x.bytes, y.bytes);
        Ok(())
    }

    pub(super) fn strided_slice_grad(&mut self, op: &StridedSliceGrad) -> Result<()> {
        let (x, y, strides) = (self.x[0], &mut self.y[0], steps(&op.strides));
        layout::strided_slice_grad(self.pool, y.dims, &op.begin, &strides, x.dims, x.dtype.size(), x.bytes, y.bytes);
        Ok(())
    }

    pub(super) fn pad(&mut self, op: &Pad) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        let mut paddings: SmallVec<[(usize, usize); 8]> = SmallVec::new();
        for (axis, dim) in op.before.dims().iter().enumerate() {
            let before = resolve_dim(*dim, self.symbols)?;
            paddings.push((before, y.dims[axis] - x.dims[axis] - before));
        }
        layout::pad(self.pool, x.dims, &paddings, self.x[1].bytes, x.bytes, y.bytes);
        Ok(())
    }

    pub(super) fn mirror_pad(&mut self, op: &MirrorPad) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        let mode = if op.symmetric { layout::Mirror::Symmetric } else { layout::Mirror::Reflect };
        layout::mirror_pad(self.pool, x.dims, &op.paddings, mode, x.dtype.size(), x.bytes, y.bytes);
        Ok(())
    }

    pub(super) fn mirror_pad_grad(&mut self, op: &MirrorPadGrad) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        with_number!(x.dtype, T => {
            mirror_pad_grad(x.dims, &op.paddings, op.symmetric, x.as_slice::<T>(), y.dims, y.as_mut_slice::<T>());
        });
        Ok(())
    }

    pub(super) fn tile(&mut self, op: &Tile) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        layout::tile(self.pool, x.dims, &op.multiples, x.dtype.size(), x.bytes, y.bytes);
        Ok(())
    }

    pub(super) fn reverse(&mut self, op: &Reverse) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        let axes: SmallVec<[usize; 8]> = op.axes.iter().collect();
        layout::reverse(self.pool, x.dims, &axes, x.dtype.size(), x.bytes, y.bytes);
        Ok(())
    }

    pub(super) fn band_part(&mut self, op: &BandPart) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        let matrix = [x.dims[x.rank() - 2], x.dims[x.rank() - 1]];
        let (lower, upper) = (op.lower.unwrap_or(usize::MAX), op.upper.unwrap_or(usize::MAX));
        layout::band_part(self.pool, matrix, lower, upper, x.dtype.size(), x.bytes, y.bytes);
        Ok(())
    }

    pub(super) fn resize(&mut self, op: &Resize) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        let sizes = sizes(x.dims, y.dims, op.half_pixel_centers);
        let run = if op.bilinear { resize::resize_bilinear } else { resize::resize_nearest };
        if !x.bytes.is_empty() {
            run(self.pool, &sizes, x.as_slice(), y.as_mut_slice());
        }
        Ok(())
    }

    pub(super) fn resize_grad(&mut self, op: &ResizeGrad) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        let sizes = sizes(y.dims, x.dims, op.resize.half_pixel_centers);
        let run = if op.resize.bilinear { resize::resize_bilinear_grad } else { resize::resize_nearest_grad };
        if !y.bytes.is_empty() {
            run(self.pool, &sizes, x.as_slice(), y.as_mut_slice());
        }
        Ok(())
    }
}

fn sizes(from: &[usize], to: &[usize], half_pixel_centers: bool) -> resize::Resize {
    resize::Resize {
        from: [from[1], from[2]],
        to: [to[1], to[2]],
        channels: from[3],
        align_corners: false,
        half_pixel_centers,
    }
}

/// Adds every element of a padded gradient to the element it mirrors, in row-major order.
fn mirror_pad_grad<T: Number>(
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
            // Positions before the inside are mirrored at its start, positions after it at its end.
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
