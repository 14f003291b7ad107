//! `Normalizer`: the divisors of a relative error.

use estimand_graph::Tensor;
use estimand_tensor::{Result, Shape};

use crate::config::{Field, Json, Node, Numbers};

/// The divisors of [`MeanRelativeError`](super::MeanRelativeError).
#[derive(Clone, Debug, PartialEq)]
pub enum Normalizer {
    /// The labels.
    Labels,
    /// One number for each element of a row.
    Values(Vec<f64>),
}

impl From<Vec<f64>> for Normalizer {
    fn from(values: Vec<f64>) -> Normalizer {
        Normalizer::Values(values)
    }
}

impl<const N: usize> From<[f64; N]> for Normalizer {
    fn from(values: [f64; N]) -> Normalizer {
        Normalizer::Values(values.to_vec())
    }
}

impl Normalizer {
    /// The divisors as a tensor of the predictions' shape.
    #[track_caller]
    pub(super) fn of(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        match self {
            Normalizer::Labels => labels.clone(),
            Normalizer::Values(values) => {
                let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
                let n = values.len();
                let row = labels.graph().constant(values).reshape_as(Shape::from([n]));
                row.broadcast_to(predictions.shape().clone())
            }
        }
    }
}

/// `null` is the labels.
impl Field for Normalizer {
    fn write(&self) -> Result<Json> {
        match self {
            Normalizer::Labels => Ok(Json::Null),
            Normalizer::Values(values) => values.write(),
        }
    }

    fn read(node: &Node<'_>) -> Result<Normalizer> {
        let numbers = Option::<Numbers>::read(node)?;
        Ok(numbers.map_or(Normalizer::Labels, |numbers| Normalizer::Values(numbers.0)))
    }
}
