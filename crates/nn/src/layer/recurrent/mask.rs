//! Masks of sequences: which steps count.

use estimand_graph::Tensor;
use estimand_tensor::Dim;

/// A mask in the form that the user gave.
#[derive(Clone, Debug)]
pub(super) enum Mask {
    /// Booleans `[batch, time]`; true for steps that count.
    Steps(Tensor),
    /// Integers `[batch]`: the number of steps that count.
    Lengths(Tensor),
}

impl Mask {
    /// Converts the mask to booleans `[batch, time]`.
    #[track_caller]
    pub fn steps(&self, time: Dim) -> Tensor {
        match self {
            Mask::Steps(mask) => mask.clone(),
            Mask::Lengths(lengths) => lengths.graph().range(time, lengths.dtype()).less(lengths.expand_dims(-1)),
        }
    }
}
