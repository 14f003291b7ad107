//! Weights and reductions of losses: `tf.compat.v1.losses.compute_weighted_loss`.

use estimand_graph::Tensor;

use crate::alignment::beside;

/// The way the losses of elements are reduced to one number. They are first multiplied by their
/// weights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reduction {
    /// No reduction: the result has one loss for each element.
    None,
    /// The sum of the weighted losses.
    Sum,
    /// The sum, divided by the sum of the weights.
    Mean,
    /// The sum, divided by the number of elements, which tf.keras calls the batch size.
    SumOverBatchSize,
    /// The sum, divided by the number of nonzero weights: TensorFlow 1's default.
    #[default]
    SumByNonzeroWeights,
}

impl Reduction {
    /// Every reduction.
    pub const ALL: [Reduction; 5] =
        [Reduction::None, Reduction::Sum, Reduction::Mean, Reduction::SumOverBatchSize, Reduction::SumByNonzeroWeights];

    /// Applies weights and the reduction. If the divisor is 0, the result is 0.
    #[track_caller]
    pub fn of(self, losses: &Tensor, weights: Option<&Tensor>) -> Tensor {
        if losses.is_poisoned() {
            return losses.clone();
        }
        let weights = match weights {
            Some(weights) => match beside(weights, losses, "losses") {
                weights if weights.is_poisoned() => return weights,
                weights => Some(weights),
            },
            None => None,
        };
        let weighed = match &weights {
            Some(weights) => losses * weights,
            None => losses.clone(),
        };
        let divisor = match (self, &weights) {
            (Reduction::None, _) => return weighed,
            (Reduction::Sum, _) => return weighed.sum(),
            (Reduction::SumOverBatchSize, _) | (_, None) => n_elements(losses),
            (Reduction::Mean, Some(weights)) => weights.broadcast_to(losses.shape().clone()).sum(),
            (Reduction::SumByNonzeroWeights, Some(weights)) => {
                weights.not_equal(0.0).cast(losses.dtype()).broadcast_to(losses.shape().clone()).sum()
            }
        };
        weighed.sum().div_no_nan(divisor)
    }
}

/// The number of elements, in their dtype.
#[track_caller]
fn n_elements(x: &Tensor) -> Tensor {
    let known: usize = x.shape().dims().iter().filter_map(|d| d.known()).product();
    let mut n = x.graph().constant(known as f32).cast(x.dtype());
    for (axis, d) in x.shape().dims().iter().enumerate() {
        if d.known().is_none() {
            n = n * x.size(axis as i64).cast(x.dtype());
        }
    }
    n
}
