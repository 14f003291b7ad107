//! The first centers as the variables of the model.

use estimand_tensor::{Array, Result};

use super::{DistanceMetric, Settings};

/// The variable that says whether the centers were chosen.
pub(super) const INITIALIZED: &str = "initialized";
/// The smallest squared length that a vector is divided by.
pub(super) const MIN_SQUARED_LENGTH: f64 = 1e-12;

impl Settings {
    /// The first centers as they are kept: of length 1 for the cosine distance.
    pub(super) fn first_centers(&self, centers: &Array) -> Result<Array> {
        let mut values: Vec<f32> = centers.to_f64_vec()?.into_iter().map(|value| value as f32).collect();
        let width = centers.dims().get(1).copied().unwrap_or(1).max(1);
        if self.distance == DistanceMetric::Cosine {
            for row in values.chunks_mut(width) {
                let squared = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().max(MIN_SQUARED_LENGTH);
                row.iter_mut().for_each(|value| *value = (f64::from(*value) / squared.sqrt()) as f32);
            }
        }
        Array::from_vec(centers.dims(), values)
    }
}

/// Initial values of the variables that begin with the first centers.
pub(super) fn initial_values(names: &[&'static str], centers: Array) -> Vec<(String, Array)> {
    let value = |&name: &&str| match name {
        INITIALIZED => (name.to_string(), Array::scalar(true)),
        _ => (name.to_string(), centers.clone()),
    };
    names.iter().map(value).collect()
}
