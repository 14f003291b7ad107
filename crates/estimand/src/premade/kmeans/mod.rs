//! k-means: centers of clusters, learned from rows without labels.
//!
//! [`KMeans`] is the builder, [`KMeansEstimator`] (`estimator.rs`) what it builds. `model.rs` is
//! the model function, `json.rs` its settings in `estimator.json`. `beginning.rs` chooses the first
//! centers with `plus_plus.rs` and `parallel.rs`, and `tolerance.rs` ends a training that no longer
//! changes its loss.
//!
//! ```
//! use estimand::prelude::*;
//! use estimand::premade::InitialClusters;
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-doc-kmeans-{}", std::process::id()));
//! let points = Array::from_vec([4, 2], vec![0.0f32, 0.0, 0.0, 1.0, 10.0, 10.0, 10.0, 11.0])?;
//! let data = Dataset::from_arrays([("point", points)]).batch(4);
//! let kmeans = KMeans::new(2).initial_clusters(InitialClusters::KMeansPlusPlus).full_batch().model_dir(&folder).build()?;
//! kmeans.train(data.repeat(3))?;
//! assert!((kmeans.score(&data)? - 1.0).abs() < 1e-3);
//! let clusters: Vec<i64> = kmeans.predict_cluster_index(&data).collect::<Result<_>>()?;
//! assert!(clusters[0] == clusters[1] && clusters[2] == clusters[3] && clusters[0] != clusters[2]);
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), Error>(())
//! ```

mod beginning;
mod estimator;
mod first_centers;
mod json;
mod model;
mod parallel;
mod plus_plus;
mod points;
mod tolerance;

use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;

use estimand_nn::column::{Columns, input_layer};
use estimand_tensor::{Error, Result};

use super::linear::check_columns;
use crate::description::Description;
use crate::{Estimator, EstimatorBuilder, HParams, ModelFnContext, RunConfig};

pub use beginning::{ChooseCenters, InitialClusters};
pub use estimator::KMeansEstimator;

/// The distance between a row and a center.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistanceMetric {
    /// The squared Euclidean distance.
    #[default]
    SquaredEuclidean,
    /// 1 minus the cosine of the angle between the two.
    Cosine,
}

impl DistanceMetric {
    /// The name in TensorFlow.
    const fn name(self) -> &'static str {
        match self {
            DistanceMetric::SquaredEuclidean => "squared_euclidean",
            DistanceMetric::Cosine => "cosine",
        }
    }
}

/// When the centers move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batches {
    /// A step sees all rows and moves each center to the mean of its rows.
    Full,
    /// A step sees some rows. The centers that rows are compared with change after this number of
    /// steps.
    Mini { steps_per_iteration: u64 },
}

/// The settings of the model.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    n_clusters: usize,
    initial_clusters: InitialClusters,
    distance: DistanceMetric,
    seed: Option<u64>,
    batches: Batches,
    num_retries: i64,
    relative_tolerance: Option<f64>,
    columns: Option<Columns>,
}

/// A builder of k-means, which groups rows around centers. Setters and defaults are those of
/// TensorFlow's `KMeans`.
#[derive(Clone, Debug)]
#[must_use]
pub struct KMeans {
    settings: Settings,
    full_batch: bool,
    mini_batch_steps_per_iteration: u64,
    model_dir: Option<PathBuf>,
    config: RunConfig,
    params: HParams,
    /// The line that made it, which errors name.
    site: &'static Location<'static>,
}

impl KMeans {
    /// Makes an estimator of a number of clusters. Each step moves the centers by one mini-batch.
    #[track_caller]
    pub fn new(n_clusters: usize) -> KMeans {
        KMeans {
            settings: Settings::new(n_clusters),
            full_batch: false,
            mini_batch_steps_per_iteration: 1,
            model_dir: None,
            config: RunConfig::new(),
            params: HParams::new(),
            site: Location::caller(),
        }
    }

    /// Sets how the first centers are chosen, or gives them as an array `[clusters, features]`. By
    /// default, [`InitialClusters::Random`].
    pub fn initial_clusters(mut self, initial: impl Into<InitialClusters>) -> KMeans {
        self.settings.initial_clusters = initial.into();
        self
    }

    /// Sets the distance. By default, the squared Euclidean distance.
    pub fn distance_metric(mut self, distance: DistanceMetric) -> KMeans {
        self.settings.distance = distance;
        self
    }

    /// Sets the seed of the choice of first centers. By default, the seed of the run.
    pub fn seed(mut self, seed: u64) -> KMeans {
        self.settings.seed = Some(seed);
        self
    }

    /// Moves each center to the mean of its rows in every step. Each batch must then hold the whole
    /// input. By default, a step is a mini-batch, and centers move by a running mean of their rows.
    pub fn full_batch(mut self) -> KMeans {
        self.full_batch = true;
        self
    }

    /// Sets the number of mini-batches after which rows are compared with the moved centers. The
    /// running means begin anew then. By default, 1. It does not matter for a full batch.
    pub fn mini_batch_steps_per_iteration(mut self, n: u64) -> KMeans {
        self.mini_batch_steps_per_iteration = n;
        self
    }

    /// Sets how many more candidates k-means++ draws for each center, of which it takes the best. A
    /// negative number stands for `2 + ln(clusters)`. By default, 2.
    pub fn kmeans_plus_plus_num_retries(mut self, n: i64) -> KMeans {
        self.settings.num_retries = n;
        self
    }

    /// Ends training when the loss of a step differs from the one before by less than this share.
    /// By default, training goes on to the last step or the end of the input.
    pub fn relative_tolerance(mut self, tolerance: f64) -> KMeans {
        self.settings.relative_tolerance = Some(tolerance);
        self
    }

    /// Sets the columns that make points of features. By default, all features are used, in the
    /// order of their names.
    pub fn feature_columns(mut self, columns: impl Into<Columns>) -> KMeans {
        self.settings.columns = Some(columns.into());
        self
    }

    /// Sets the folder of checkpoints and event files. By default, the folder of the configuration,
    /// or a new temporary one.
    pub fn model_dir(mut self, folder: impl Into<PathBuf>) -> KMeans {
        self.model_dir = Some(folder.into());
        self
    }

    /// Sets the run configuration. By default, [`RunConfig::new`].
    pub fn config(mut self, config: RunConfig) -> KMeans {
        self.config = config;
        self
    }

    /// Sets the hyper-parameters that TensorBoard compares models by. By default, none.
    pub fn params(mut self, params: HParams) -> KMeans {
        self.params = params;
        self
    }

    /// Checks all settings and makes the estimator. Nothing is built or read yet.
    pub fn build(self) -> Result<KMeansEstimator> {
        let KMeans { mut settings, full_batch, mini_batch_steps_per_iteration, model_dir, config, params, site } = self;
        settings.batches = match full_batch {
            true => Batches::Full,
            false => Batches::Mini { steps_per_iteration: mini_batch_steps_per_iteration },
        };
        settings.check().map_err(|error| error.at_unless_placed(site))?;
        let distance = settings.distance;
        let mut builder = Arc::new(settings).estimator(site).config(config).params(params);
        if let Some(folder) = model_dir {
            builder = builder.model_dir(folder);
        }
        Ok(KMeansEstimator::new(builder.build()?, distance))
    }
}

impl Settings {
    fn new(n_clusters: usize) -> Settings {
        Settings {
            n_clusters,
            initial_clusters: InitialClusters::Random,
            distance: DistanceMetric::SquaredEuclidean,
            seed: None,
            batches: Batches::Mini { steps_per_iteration: 1 },
            num_retries: 2,
            relative_tolerance: None,
            columns: None,
        }
    }

    /// Starts an estimator that was made at a line of the user's.
    pub(crate) fn estimator(self: Arc<Settings>, site: &'static Location<'static>) -> EstimatorBuilder {
        let description = Description::kmeans(self.clone());
        Estimator::new(move |cx: &ModelFnContext<'_>| model::spec(&self, cx)).described(description).made_at(site)
    }

    /// The columns that it reads features with, if it has some.
    pub(crate) fn columns(&self) -> Option<Columns> {
        self.columns.clone()
    }

    pub(crate) fn distance(&self) -> DistanceMetric {
        self.distance
    }

    fn check(&self) -> Result<()> {
        if self.n_clusters == 0 {
            return Err(Error::config("KMeans was given 0 clusters").help("give at least 1"));
        }
        if let Batches::Mini { steps_per_iteration: 0 } = self.batches {
            return Err(Error::config("mini_batch_steps_per_iteration is 0; expected at least 1")
                .help("for steps over the whole input, call full_batch()"));
        }
        if let Some(tolerance) = self.relative_tolerance.filter(|tolerance| tolerance.is_nan() || *tolerance < 0.0) {
            return Err(Error::config(format!("relative_tolerance is {tolerance}; expected a number from 0")).help(
                "1e-4 ends the training when a step changes the loss by less than that part of it; 0 never does",
            ));
        }
        if let Some(columns) = &self.columns {
            check_columns(columns, "k-means", |features, column| input_layer(features, column))?;
        }
        self.initial_clusters.check(self.n_clusters)
    }
}
