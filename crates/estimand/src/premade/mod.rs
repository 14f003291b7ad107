//! Premade estimators: a network over feature columns combined with a head.
//!
//! Each estimator is one [`Network`] (`baseline.rs`, `linear.rs`, `dnn.rs`,
//! `dnn_linear_combined.rs`, `rnn/`) with one [`HeadChoice`] (`choice.rs`: a classifier's, a
//! regressor's, or a head given by the user). [`Premade`] turns the two into a model function.
//! `optimizer.rs` handles optimizer names, `shown.rs` the summaries for TensorBoard, `json.rs`
//! networks as JSON.
//! [`LinearSdca`] trains linear models without gradients (`sdca/`).
//! [`KMeans`] has neither labels nor a head, and is a model function of its own (`kmeans/`).
//! Defaults, learning rates and the names of variables are those of `tf.estimator` 2.15.
//!
//! ```
//! use estimand::prelude::*;
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-doc-premade-{}", std::process::id()));
//! let columns = [numeric_column("x").into(), numeric_column("y").into()];
//! let classifier = DnnClassifier::new([4], columns).n_classes(3).model_dir(&folder).build()?;
//! let rows = [("x", Array::from([0f32, 1.0, 2.0])), ("y", Array::from([2f32, 1.0, 0.0])), ("class", Array::from([0i64, 1, 2]))];
//! let data = Dataset::from_arrays(rows).label("class").repeat(20).batch(3);
//! classifier.train(&data)?;
//! assert!(classifier.evaluate(&data)?["average_loss"] > 0.0);
//! assert!(classifier.variable_names()?.contains(&"dnn/hiddenlayer_0/kernel".to_string()));
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), Error>(())
//! ```

mod baseline;
mod choice;
mod dnn;
mod dnn_linear_combined;
mod json;
mod kmeans;
mod linear;
mod optimizer;
mod rnn;
mod sdca;
mod shown;

use std::fmt;
use std::panic::Location;
use std::path::PathBuf;
use std::sync::Arc;

use estimand_graph::Tensor;
use estimand_nn::column::Columns;
use estimand_nn::config::Json;
use estimand_tensor::{Error, Result};

use crate::description::Description;
use crate::head::{Head, HeadSpec, Training};
use crate::{Estimator, EstimatorBuilder, EstimatorSpec, HParams, ModelFnContext, RunConfig, WarmStartSettings};

pub use baseline::{Baseline, BaselineClassifier, BaselineEstimator, BaselineRegressor};
pub use choice::{Classifier, GivenHead, HeadChoice, Regressor};
pub use dnn::{Dnn, DnnClassifier, DnnEstimator, DnnRegressor};
pub use dnn_linear_combined::{
    DnnLinearCombined, DnnLinearCombinedClassifier, DnnLinearCombinedEstimator, DnnLinearCombinedRegressor,
};
pub(crate) use json::read_network;
pub(crate) use kmeans::Settings as KMeansSettings;
pub use kmeans::{ChooseCenters, DistanceMetric, InitialClusters, KMeans, KMeansEstimator};
pub use linear::{Linear, LinearClassifier, LinearEstimator, LinearRegressor};
pub use optimizer::OptimizerChoice;
pub use rnn::{CellType, RnnClassifier, RnnEstimator, RnnModel, Units};
pub use sdca::{LinearSdca, SdcaLoss, SdcaProgress};

/// A network from features to logits, and its optimizer.
pub trait Network: fmt::Debug + Send + Sync {
    /// Checks the configuration. An error says what is wrong and how to fix it.
    fn check(&self) -> Result<()>;

    /// The columns that it reads features with. By default, none are known.
    fn columns(&self) -> Columns {
        Columns::default()
    }

    /// The network as JSON.
    fn to_json(&self) -> Result<Json>;

    /// Builds the network: logits `[batch, units]`.
    fn logits(&self, cx: &ModelFnContext<'_>, units: usize) -> Result<Tensor>;

    /// Returns the optimizer of its variables, or several.
    fn training<'a>(&'a self, cx: &'a ModelFnContext<'_>) -> Result<Training<'a>>;

    /// Checks that it can be trained with a head. By default, it can with any.
    fn check_head(&self, _head: &dyn Head) -> Result<()> {
        Ok(())
    }

    /// Builds the model with a head. By default, its logits are those of the head, and its
    /// optimizer minimises the loss of the head.
    fn spec(&self, cx: &ModelFnContext<'_>, head: &dyn Head) -> Result<EstimatorSpec> {
        trained_spec(self, cx, head)
    }
}

/// Builds the model of a network that gradients train.
fn trained_spec<N: Network + ?Sized>(network: &N, cx: &ModelFnContext<'_>, head: &dyn Head) -> Result<EstimatorSpec> {
    let logits = network.logits(cx, head.logits_dimension())?;
    head.spec(cx, &logits, network.training(cx)?)
}

/// A builder of a premade estimator, with the settings that all of them share.
/// [`build`](Premade::build) makes the [`Estimator`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Premade<N, H> {
    network: N,
    head: H,
    model_dir: Option<PathBuf>,
    config: RunConfig,
    params: HParams,
    warm_start_from: Option<WarmStartSettings>,
    /// The line that made it, which errors name.
    site: &'static Location<'static>,
}

impl<N: Network + 'static, H: HeadChoice + 'static> Premade<N, H> {
    #[track_caller]
    fn from_parts(network: N, head: H) -> Premade<N, H> {
        Premade {
            network,
            head,
            model_dir: None,
            config: RunConfig::new(),
            params: HParams::new(),
            warm_start_from: None,
            site: Location::caller(),
        }
    }

    /// Sets the folder of checkpoints and event files. By default, the folder of the configuration,
    /// or a new temporary one.
    pub fn model_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.model_dir = Some(folder.into());
        self
    }

    /// Sets the run configuration. By default, [`RunConfig::new`].
    pub fn config(mut self, config: RunConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets the hyper-parameters that this model was made with. They do not change the model:
    /// TensorBoard's page of hyper-parameters compares the results of several models by them. By
    /// default, none.
    pub fn params(mut self, params: HParams) -> Self {
        self.params = params;
        self
    }

    /// Sets the warm start: a checkpoint, or a folder of them, that gives the trainable variables
    /// their initial values if the model folder has no checkpoint yet. [`WarmStartSettings`] give
    /// finer control. By default, variables start with their initializers' values.
    pub fn warm_start_from(mut self, settings: impl Into<WarmStartSettings>) -> Self {
        self.warm_start_from = Some(settings.into());
        self
    }

    /// Checks network, columns and head, and makes the estimator. Nothing is built or read yet.
    pub fn build(self) -> Result<Estimator> {
        let Premade { network, head, model_dir, config, params, warm_start_from, site } = self;
        let place = |error: Error| error.at_unless_placed(site);
        network.check().map_err(place)?;
        let head = head.head().map_err(place)?;
        head.check().and_then(|()| network.check_head(&*head)).map_err(place)?;
        let mut builder = estimator(Arc::new(network), head, site).config(config).params(params);
        if let Some(folder) = model_dir {
            builder = builder.model_dir(folder);
        }
        if let Some(settings) = warm_start_from {
            builder = builder.warm_start_from(settings);
        }
        builder.build()
    }
}

/// Starts an estimator of a network and a head that were made at a line of the user's.
pub(crate) fn estimator(
    network: Arc<dyn Network>,
    head: Arc<dyn Head>,
    site: &'static Location<'static>,
) -> EstimatorBuilder {
    let description = Description::premade(network.clone(), head.clone());
    Estimator::new(move |cx: &ModelFnContext<'_>| network.spec(cx, &*head)).described(description).made_at(site)
}
