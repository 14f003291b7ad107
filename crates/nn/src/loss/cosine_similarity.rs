//! `CosineSimilarity`: compares the directions of vectors.

use estimand_graph::{Axes, Tensor};
use estimand_tensor::Result;

use super::{Loss, MODULE, Reduction, matched, reduction_setter};
use crate::config::{self, Described, Fields, Json};

/// The negative cosine of the angle between the label row and the prediction row: -1 for the same
/// direction, 1 for the opposite one. A row of zeros has a loss of 0.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct CosineSimilarity {
    reduction: Reduction,
}

impl CosineSimilarity {
    /// Reduces to the mean over all rows.
    pub fn new() -> CosineSimilarity {
        CosineSimilarity::default()
    }
}

reduction_setter!(CosineSimilarity);

impl Described for CosineSimilarity {
    const CLASS: &'static str = "CosineSimilarity";

    fn template() -> CosineSimilarity {
        CosineSimilarity::new().reduction(Reduction::SumOverBatchSize)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> CosineSimilarity {
        fields.only("axis", -1);
        CosineSimilarity { reduction: self.reduction.of_rows(fields) }
    }
}

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
        -(normalized(&labels) * normalized(predictions)).sum_axes([-1])
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }
}

/// Scales rows to length 1, like `tf.math.l2_normalize`.
#[track_caller]
fn normalized(x: &Tensor) -> Tensor {
    x * x.square().sum_axes(Axes::of([-1]).keep_dims()).maximum(1e-12).rsqrt()
}
