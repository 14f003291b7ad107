//! Soft maxima and cross entropies over the last axis.

use estimand_tensor::cpu::softmax;
use estimand_tensor::{Error, Result};

use super::call::Call;
use crate::op::Op;

impl Call<'_> {
    pub(super) fn softmax(&mut self) -> Result<()> {
        let (pool, x) = (self.pool, self.x[0]);
        let classes = x.dims[x.rank() - 1];
        let rows = x.dims[..x.rank() - 1].iter().product();
        let (dtype, dims, logits) = (x.dtype, [rows, classes], x.bytes.as_ptr());
        let labels = self.x.get(1).copied();
        let mut y = self.y.iter_mut().map(|y| y.bytes.as_mut_ptr());
        let (Some(first), second) = (y.next(), y.next()) else {
            return Err(Error::internal("a softmax without a result"));
        };
        // SAFETY: every view holds the elements that its shape, checked by `infer` and `check_sizes`, promises; outputs overlap
        // nothing that is alive.
        unsafe {
            match (&self.node.op, labels, second) {
                (Op::Softmax, None, None) => softmax::softmax(pool, dtype, dims, logits, first),
                (Op::LogSoftmax, None, None) => softmax::log_softmax(pool, dtype, dims, logits, first),
                (Op::SoftmaxCrossEntropy, Some(labels), Some(backprop)) => {
                    softmax::cross_entropy(pool, dtype, dims, logits, labels.bytes.as_ptr(), first, backprop)
                }
                (Op::SparseSoftmaxCrossEntropy, Some(labels), Some(backprop)) => {
                    let (label_dtype, labels) = (labels.dtype, labels.bytes.as_ptr());
                    softmax::sparse_cross_entropy(pool, dtype, dims, logits, label_dtype, labels, first, backprop)
                }
                (other, ..) => Err(Error::internal(format!("{} is no softmax", other.name()))),
            }
        }
    }
}
