//! [`KMeansEstimator`]: an estimator with the methods of k-means.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;

use estimand_tensor::{Array, Error, Result};

use super::DistanceMetric;
use super::model::{ALL_DISTANCES, CLUSTER_INDEX, CLUSTERS, SCORE};
use crate::input_fn::InputFn;
use crate::{Estimator, EvalSpec, PredictSpec};

/// A k-means estimator. It is an [`Estimator`] (it trains, evaluates, predicts and exports) with a
/// few methods more.
pub struct KMeansEstimator {
    estimator: Estimator,
    distance: DistanceMetric,
}

impl KMeansEstimator {
    pub(super) fn new(estimator: Estimator, distance: DistanceMetric) -> KMeansEstimator {
        KMeansEstimator { estimator, distance }
    }

    /// Opens the k-means of a folder without the program that trained it, as [`Estimator::open`].
    #[track_caller]
    pub fn open(folder: impl Into<PathBuf>) -> Result<KMeansEstimator> {
        let estimator = Estimator::open(folder)?;
        match estimator.kmeans().map(|settings| settings.distance()) {
            Some(distance) => Ok(KMeansEstimator { estimator, distance }),
            None => {
                let folder = estimator.model_dir().display();
                Err(Error::config(format!("the model in {folder} is not k-means")).help("use Estimator::open"))
            }
        }
    }

    /// Returns the centers of the newest checkpoint, `[clusters, features]`.
    pub fn cluster_centers(&self) -> Result<Array> {
        self.estimator.variable_value(CLUSTERS)
    }

    /// Returns the sum of the distances between the rows of the first batch and their nearest
    /// centers. It is TensorFlow's `score`; scikit-learn's is the negative of it.
    /// [`Estimator::evaluate`] returns the mean of these sums over all batches.
    pub fn score<'a>(&self, input: impl InputFn + 'a) -> Result<f64> {
        self.estimator.evaluate(EvalSpec::new(input).steps(1))?.get(SCORE)
    }

    /// Returns the number of the nearest center for each row.
    pub fn predict_cluster_index<'a>(&'a self, input: impl InputFn + 'a) -> impl Iterator<Item = Result<i64>> + 'a {
        let rows = self.estimator.predict(PredictSpec::new(input).keys([CLUSTER_INDEX]));
        rows.map(|row| row?.array(CLUSTER_INDEX)?.item::<i64>())
    }

    /// Returns the distances between each row and all centers: Euclidean distances (not squared
    /// ones, which [`Estimator::predict`] has as `all_distances`), or cosine distances.
    pub fn transform<'a>(&'a self, input: impl InputFn + 'a) -> impl Iterator<Item = Result<Vec<f32>>> + 'a {
        let rows = self.estimator.predict(PredictSpec::new(input).keys([ALL_DISTANCES]));
        rows.map(|row| {
            let row = row?;
            let distances = row.f32(ALL_DISTANCES)?.iter().copied();
            Ok(match self.distance {
                DistanceMetric::SquaredEuclidean => distances.map(f32::sqrt).collect(),
                DistanceMetric::Cosine => distances.collect(),
            })
        })
    }

    /// Returns the plain estimator.
    pub fn into_estimator(self) -> Estimator {
        self.estimator
    }
}

impl Deref for KMeansEstimator {
    type Target = Estimator;

    fn deref(&self) -> &Estimator {
        &self.estimator
    }
}

impl fmt::Debug for KMeansEstimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.estimator.fmt(f)
    }
}
