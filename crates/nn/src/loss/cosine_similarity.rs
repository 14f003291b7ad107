//! `CosineSimilarity`: whether vectors point the same way.

use estimand_graph::Tensor;

use super::{Loss, Reduction, matched, reduction_setter};

/// The negative cosine of the angle between label and prediction, which are rows: -1 for the same
/// direction, 1 for the opposite one. A row of zeros costs 0.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CosineSimilarity {
    reduction: Reduction,
}

impl CosineSimilarity {
    /// The mean over all rows.
    pub fn new() -> CosineSimilarity {
        CosineSimilarity::default()
    }
}

reduction_setter!(CosineSimilarity);

impl Loss for CosineSimilarity {
    fn name(&self) -> &'static str {
        "cosine_similarity"
    }

    fn loss_reduction(&self) -> Reduction {
        self.reduction
    }

    fn min_value(&self) -> f64 {
        -1.0 - f64::from(f32::EPSILON)
    }

    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let labels = matched(self.name(), labels, predictions);
        -(normalized(&labels) * normalized(predictions)).sum_axes(&[-1], false)
    }
}

/// Rows of length 1, as `tf.math.l2_normalize` makes them.
#[track_caller]
fn normalized(x: &Tensor) -> Tensor {
    x * x.square().sum_axes(&[-1], true).maximum(1e-12).rsqrt()
}
