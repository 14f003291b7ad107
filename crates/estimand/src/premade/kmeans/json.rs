//! The settings of k-means as JSON, so that a folder can be opened without its program.
//!
//! How the first centers were chosen is left out: a folder that is opened has centers.

use std::sync::Arc;

use estimand_nn::config::{self, Described, Fields, Json, Node};
use estimand_tensor::{Error, Result};

use super::{Batches, DistanceMetric, Settings};

/// Where a document says that the model comes from.
const MODULE: &str = "estimand.premade";

const DISTANCES: [(&str, DistanceMetric); 2] = [
    (DistanceMetric::SquaredEuclidean.name(), DistanceMetric::SquaredEuclidean),
    (DistanceMetric::Cosine.name(), DistanceMetric::Cosine),
];

impl Described for Settings {
    const CLASS: &'static str = "KMeans";

    fn template() -> Settings {
        Settings::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Settings {
        let steps = match self.batches {
            Batches::Full => None,
            Batches::Mini { steps_per_iteration } => Some(steps_per_iteration),
        };
        Settings {
            n_clusters: fields.required("num_clusters", &self.n_clusters),
            initial_clusters: self.initial_clusters.clone(),
            distance: fields.choice("distance_metric", &self.distance, &DISTANCES),
            seed: self.seed,
            // `null` is a full batch.
            batches: match fields.value("mini_batch_steps_per_iteration", &steps) {
                None => Batches::Full,
                Some(steps_per_iteration) => Batches::Mini { steps_per_iteration },
            },
            num_retries: self.num_retries,
            relative_tolerance: fields.optional("relative_tolerance", &self.relative_tolerance),
            columns: fields.optional("feature_columns", &self.columns),
        }
    }
}

impl Settings {
    /// The settings as a document.
    pub(crate) fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    /// Reads a document. Mistakes in the settings are errors.
    pub(crate) fn from_json(node: &Node<'_>) -> Result<Arc<Settings>> {
        let class = node.field("class_name")?;
        if class.text()? != Settings::CLASS {
            return Err(class.expected(&format!("{:?}", Settings::CLASS)));
        }
        let settings: Settings = config::read(&node.field("config")?)?;
        settings.check().map_err(|error: Error| error.context(format!("at {}", node.path())))?;
        Ok(Arc::new(settings))
    }
}
