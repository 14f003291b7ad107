//! Softmax and cross entropies over the last axis.

use estimand_tensor::cpu::softmax;
use estimand_tensor::{Error, Result};

use super::operands::{KernelCall, View};

/// The number of rows and of classes.
fn sizes(x: &View<'_>) -> [usize; 2] {
    let (classes, rows) = (x.dims[x.rank() - 1], &x.dims[..x.rank() - 1]);
    [rows.iter().product(), classes]
}

impl KernelCall<'_, '_> {
    pub(super) fn softmax(&mut self) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        // SAFETY: both views hold the elements that their shape, checked by `infer`, promises; the
        // output overlaps nothing alive.
        unsafe { softmax::softmax(self.pool, x.dtype, sizes(&x), x.bytes.as_ptr(), y.bytes.as_mut_ptr()) }
    }

    pub(super) fn log_softmax(&mut self) -> Result<()> {
        let (x, y) = (self.x[0], &mut self.y[0]);
        // SAFETY: as in `softmax`.
        unsafe { softmax::log_softmax(self.pool, x.dtype, sizes(&x), x.bytes.as_ptr(), y.bytes.as_mut_ptr()) }
    }

    pub(super) fn softmax_cross_entropy(&mut self) -> Result<()> {
        let (pool, x, labels) = (self.pool, self.x[0], self.x[1].bytes.as_ptr());
        let (loss, backprop) = self.losses()?;
        // SAFETY: as in `softmax`; `check_sizes` has compared the sizes of logits and labels.
        unsafe { softmax::cross_entropy(pool, x.dtype, sizes(&x), x.bytes.as_ptr(), labels, loss, backprop) }
    }

    pub(super) fn sparse_softmax_cross_entropy(&mut self) -> Result<()> {
        let (pool, x, labels) = (self.pool, self.x[0], self.x[1]);
        let (dims, logits, dtype, labels) = (sizes(&x), x.bytes.as_ptr(), labels.dtype, labels.bytes.as_ptr());
        let (loss, backprop) = self.losses()?;
        // SAFETY: as in `softmax_cross_entropy`.
        unsafe { softmax::sparse_cross_entropy(pool, x.dtype, dims, logits, dtype, labels, loss, backprop) }
    }

    /// The addresses of the loss of each row and of the gradient of the logits.
    fn losses(&mut self) -> Result<(*mut u8, *mut u8)> {
        match &mut self.y[..] {
            [loss, backprop] => Ok((loss.bytes.as_mut_ptr(), backprop.bytes.as_mut_ptr())),
            _ => Err(Error::internal("a cross entropy has two results")),
        }
    }
}
