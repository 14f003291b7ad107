//! Steps that reduce, scan, or select along axes.

use estimand_graph::op::{ArgMax, AxisSet, Cumulate, Reduction, TopK};
use estimand_tensor::cpu::reduce::{self, Extreme};
use estimand_tensor::cpu::{scan, sort};
use estimand_tensor::{Error, Result};

use super::operands::{KernelCall, with_number};

/// Bytes of scratch memory of a reduction.
pub(super) fn scratch_bytes(axes: AxisSet, x: &[usize]) -> usize {
    reduce::scratch_len(x, axes.0)
}

/// The axes of `wide` along which `narrow` is broadcast.
pub(super) fn broadcast_axes(wide: &[usize], narrow: &[usize]) -> AxisSet {
    let missing = wide.len() - narrow.len();
    (0..wide.len()).filter(|&a| a < missing || narrow[a - missing] != wide[a]).collect()
}

impl KernelCall<'_, '_> {
    pub(super) fn sum_to(&mut self) -> Result<()> {
        self.reduce(Reduction::Sum, broadcast_axes(self.x[0].dims, self.x[1].dims))
    }

    pub(super) fn arg_max(&mut self, op: &ArgMax) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        let extreme = if op.min { Extreme::Min } else { Extreme::Max };
        let (dims, from, to) = (around(x.dims, op.axis), x.bytes.as_ptr(), y.bytes.as_mut_ptr());
        // SAFETY: the view holds the elements of `dims`, the output one index for each of the rest.
        unsafe { reduce::arg_extreme(self.pool, extreme, x.dtype, dims, from, op.output, to) }
    }

    pub(super) fn cumulate(&mut self, op: &Cumulate) -> Result<()> {
        let (pool, x, y) = (self.pool, self.x[0], &mut self.y[0]);
        let running = if op.product { scan::Running::Prod } else { scan::Running::Sum };
        let direction = scan::Direction { exclusive: op.exclusive, reverse: op.reverse };
        let dims = around(x.dims, op.axis);
        with_number!(x.dtype, T => {
            scan::cumulative::<T>(pool, running, direction, dims, x.as_slice(), y.as_mut_slice());
        });
        Ok(())
    }

    pub(super) fn top_k(&mut self, op: &TopK) -> Result<()> {
        let (pool, x) = (self.pool, self.x[0]);
        let [values, indices] = &mut self.y[..] else {
            return Err(Error::internal("top_k has two results"));
        };
        let n = x.dims[x.rank() - 1];
        with_number!(x.dtype, T => {
            sort::top_k::<T>(pool, n, op.k, x.as_slice(), values.as_mut_slice(), indices.as_mut_slice());
        });
        Ok(())
    }

    pub(super) fn reduce(&mut self, kind: Reduction, axes: AxisSet) -> Result<()> {
        let x = self.x[0];
        let (from, to) = (x.bytes.as_ptr(), self.y[0].bytes.as_mut_ptr());
        // SAFETY: the view holds the elements of its dims, the output those of the axes that stay;
        // the scratch memory has the requested length and is aligned to 64 bytes.
        unsafe { reduce::reduce(self.pool, kind, x.dtype, x.dims, axes.0, from, to, self.scratch) }
    }
}

/// [before, the axis, after]
fn around(dims: &[usize], axis: usize) -> [usize; 3] {
    [dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product()]
}
