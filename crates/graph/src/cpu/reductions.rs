//! Steps that reduce, scan, or select along axes.

use estimand_tensor::cpu::reduce::{self, Extreme};
use estimand_tensor::cpu::{scan, sort};
use estimand_tensor::{Error, Result};

use super::call::{Call, with_number};
use crate::op::{AxisSet, Op, Reduction};

/// Bytes of scratch memory of a reduction.
pub(super) fn scratch_bytes(op: &Op, x: &[&[usize]]) -> usize {
    match op {
        Op::Reduce { axes, .. } => reduce::scratch_len(x[0], axes.0),
        Op::SumTo => reduce::scratch_len(x[0], broadcast_axes(x[0], x[1]).0),
        _ => 0,
    }
}

/// The axes of `wide` along which `narrow` is repeated.
fn broadcast_axes(wide: &[usize], narrow: &[usize]) -> AxisSet {
    let missing = wide.len() - narrow.len();
    (0..wide.len()).filter(|&a| a < missing || narrow[a - missing] != wide[a]).collect()
}

impl Call<'_> {
    pub(super) fn reduction(&mut self) -> Result<()> {
        let (pool, x, op) = (self.pool, self.x[0], &self.node.op);
        let dtype = x.dtype;
        match op {
            Op::Reduce { kind, axes, .. } => self.reduce(*kind, *axes),
            Op::SumTo => self.reduce(Reduction::Sum, broadcast_axes(x.dims, self.x[1].dims)),
            Op::ArgMax { axis, min, output } => {
                let dims = around(x.dims, *axis);
                let y = &mut self.y[0];
                // SAFETY: the view holds the elements of `dims`, the output one index for each of the rest.
                unsafe {
                    let (x, y) = (x.bytes.as_ptr(), y.bytes.as_mut_ptr());
                    reduce::arg_extreme(
                        pool,
                        if *min { Extreme::Min } else { Extreme::Max },
                        dtype,
                        dims,
                        x,
                        *output,
                        y,
                    )
                }
            }
            Op::Cumulate { product, axis, exclusive, reverse } => {
                let running = if *product { scan::Running::Prod } else { scan::Running::Sum };
                let direction = scan::Direction { exclusive: *exclusive, reverse: *reverse };
                let (dims, y) = (around(x.dims, *axis), &mut self.y[0]);
                with_number!(dtype, T => scan::cumulative::<T>(pool, running, direction, dims, x.as_slice(), y.as_mut_slice()));
                Ok(())
            }
            Op::TopK(k) => {
                let [values, indices] = &mut self.y[..] else {
                    return Err(Error::internal("top_k has two results"));
                };
                let n = x.dims[x.rank() - 1];
                with_number!(dtype, T => {
                    sort::top_k::<T>(pool, n, *k, x.as_slice(), values.as_mut_slice(), indices.as_mut_slice());
                });
                Ok(())
            }
            other => Err(Error::internal(format!("{} reduces nothing", other.name()))),
        }
    }

    fn reduce(&mut self, kind: Reduction, axes: AxisSet) -> Result<()> {
        let x = self.x[0];
        let (from, to) = (x.bytes.as_ptr(), self.y[0].bytes.as_mut_ptr());
        // SAFETY: the view holds the elements of its dims, the output those of the axes that stay; the scratch memory has the
        // length asked for and is aligned to 64 bytes.
        unsafe { reduce::reduce(self.pool, kind, x.dtype, x.dims, axes.0, from, to, self.scratch) }
    }
}

/// [before, the axis, after]
fn around(dims: &[usize], axis: usize) -> [usize; 3] {
    [dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()]
}
