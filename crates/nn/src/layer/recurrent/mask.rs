//! Which steps of sequences count.

use estimand_graph::Tensor;
use estimand_tensor::Dim;

/// As it was given.
#[derive(Clone, Debug)]
pub(super) enum Mask {
    /// Booleans `[batch, time]`.
    Steps(Tensor),
    /// Integers `[batch]`.
    Lengths(Tensor),
}

impl Mask {
    /// As booleans `[batch, time]`.
    #[track_caller]
    pub fn steps(&self, time: Dim) -> Tensor {
        match self {
            Mask::Steps(mask) => mask.clone(),
            Mask::Lengths(lengths) => lengths.graph().range(time, lengths.dtype()).less(lengths.expand_dims(-1)),
        }
    }
}
