//! [`Estimator`]: one model description that trains, evaluates and predicts.
//!
//! `build.rs` builds the model of a mode; `initialize.rs` sets its initial values. Training is in
//! `train.rs` (preparation), `default_hooks.rs` (hooks), `train_input.rs` (batches) and
//! `train_loop.rs` (the loop). Evaluation is in `evaluate.rs`, prediction in `predict.rs` and
//! `predictions.rs`. `late.rs` opens inputs that a hook feeds.

mod build;
mod default_hooks;
mod eval_spec;
mod evaluate;
mod evaluation_log;
mod evaluator;
mod initialize;
mod late;
mod metrics;
mod predict;
mod predict_spec;
mod prediction;
mod predictions;
mod programs;
mod train;
mod train_input;
mod train_loop;
mod train_spec;

pub use eval_spec::EvalSpec;
pub(crate) use evaluate::record;
pub(crate) use evaluation_log::EvaluationLog;
pub(crate) use evaluator::Evaluator;
pub use metrics::Metrics;
pub use predict::Predictor;
pub use predict_spec::PredictSpec;
pub use prediction::Prediction;
pub(crate) use prediction::unknown_prediction;
pub use predictions::Predictions;
pub use train_spec::{Finished, TrainSpec};

use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use estimand_checkpoint::BundleReader;
use estimand_nn::column::Columns;
use estimand_tensor::{Array, Error, Mode, Result, warn};
use tracing::info;

use crate::description::Description;
use crate::events::{EventFiles, LentEvents};
use crate::model_fn::{ModelFn, ModelFnContext};
use crate::model_folder::Which;
use crate::model_folder::best::{best, read_best};
use crate::model_folder::newest::{newest, read_at, read_newest};
use crate::model_folder::temporary::TemporaryFolder;
use crate::own_entries::is_own;
use crate::premade::KMeansSettings;
use crate::session::TrainSession;
use crate::{EstimatorSpec, HParams, RunConfig, WarmStartSettings};

/// A model function with a folder, a configuration and parameters.
///
/// ```
/// use estimand::prelude::*;
///
/// fn linear(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
///     let w = cx.graph().variable("w", [], Initializer::Zeros);
///     let y = cx.feature("x") * &w;
///     let spec = EstimatorSpec::new(cx).prediction("y", &y);
///     if cx.mode() == Mode::Predict {
///         return Ok(spec);
///     }
///     let loss = (&y - cx.label()).square().mean();
///     Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.1)))
/// }
///
/// # let folder = std::env::temp_dir().join(format!("estimand-doc-estimator-{}", std::process::id()));
/// let rows = [("x", Array::from([1.0f32, 2.0])), ("y", Array::from([3.0f32, 6.0]))];
/// let data = Dataset::from_arrays(rows).label("y").repeat(50).batch(2);
/// let estimator = Estimator::new(linear).model_dir(&folder).build()?;
/// estimator.train(&data)?;
/// assert!(estimator.evaluate(&data)?["loss"] < 1e-6);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), Error>(())
/// ```
pub struct Estimator {
    model_fn: ModelFn,
    model_dir: PathBuf,
    config: RunConfig,
    params: HParams,
    warm_start_from: Option<WarmStartSettings>,
    /// What the model folder says of the model.
    description: Description,
    /// The line that made the estimator.
    site: &'static Location<'static>,
    /// The source line of each variable, and the mode that created it first.
    sites: Mutex<HashMap<String, (Mode, &'static Location<'static>)>>,
    /// The model of the last prediction, kept for reuse.
    resident: Mutex<Option<predict::Resident>>,
    /// The event files of this estimator, reused so that a hundred evaluations write one file.
    event_files: EventFiles,
    /// The temporary model folder, if there is one; it is removed with the estimator.
    _temporary: Option<TemporaryFolder>,
}

/// A builder of an [`Estimator`].
#[must_use]
pub struct EstimatorBuilder {
    model_fn: ModelFn,
    model_dir: Option<PathBuf>,
    config: RunConfig,
    params: HParams,
    warm_start_from: Option<WarmStartSettings>,
    description: Description,
    site: &'static Location<'static>,
}

impl EstimatorBuilder {
    /// Sets the line that errors of library code name. By default, that of [`Estimator::new`].
    pub(crate) fn made_at(mut self, site: &'static Location<'static>) -> EstimatorBuilder {
        self.site = site;
        self
    }

    /// Sets what the model folder says of the model. By default, that it is a function.
    pub(crate) fn described(mut self, description: Description) -> EstimatorBuilder {
        self.description = description;
        self
    }

    /// Sets the folder of checkpoints and event files. By default, the folder of the configuration,
    /// or a new temporary one, which is removed when the estimator is dropped.
    pub fn model_dir(mut self, folder: impl Into<PathBuf>) -> EstimatorBuilder {
        self.model_dir = Some(folder.into());
        self
    }

    /// Sets the run configuration. By default, [`RunConfig::new`].
    pub fn config(mut self, config: RunConfig) -> EstimatorBuilder {
        self.config = config;
        self
    }

    /// Sets the parameters of the model function. By default, none.
    pub fn params(mut self, params: HParams) -> EstimatorBuilder {
        self.params = params;
        self
    }

    /// Sets the warm start: a checkpoint, or a folder of them, that gives the trainable variables
    /// their initial values if the model folder has no checkpoint yet. [`WarmStartSettings`] give
    /// finer control. By default, variables start with their initializers' values.
    pub fn warm_start_from(mut self, settings: impl Into<WarmStartSettings>) -> EstimatorBuilder {
        self.warm_start_from = Some(settings.into());
        self
    }

    /// Checks all settings and makes the estimator. Nothing is built or read yet.
    pub fn build(self) -> Result<Estimator> {
        let config = self.config.resolve()?;
        let mut temporary = None;
        let model_dir = match (self.model_dir, config.model_dir.as_deref()) {
            (Some(own), Some(configured)) if own != configured => {
                let (own, configured) = (own.display(), configured.display());
                return Err(Error::config(format!(
                    "model_dir is {own} in the estimator and {configured} in the RunConfig"
                ))
                .help("set model_dir in one place"));
            }
            (Some(folder), _) => folder,
            (None, Some(folder)) => folder.to_path_buf(),
            (None, None) => {
                let folder = temporary.insert(TemporaryFolder::new()?).path().to_path_buf();
                warn!(
                    "Using temporary folder as model directory: {}. It is removed with the estimator; set model_dir to keep it",
                    folder.display()
                );
                folder
            }
        };
        if model_dir.as_os_str().is_empty() {
            return Err(Error::config("model_dir is an empty path; expected a folder"));
        }
        if let Some(settings) = &self.warm_start_from {
            settings.check()?;
        }
        info!("Using config: {}", config.clone().model_dir(&model_dir));
        Ok(Estimator {
            model_fn: self.model_fn,
            model_dir,
            config,
            params: self.params,
            warm_start_from: self.warm_start_from,
            description: self.description,
            site: self.site,
            sites: Mutex::default(),
            resident: Mutex::default(),
            event_files: EventFiles::default(),
            _temporary: temporary,
        })
    }
}

impl Estimator {
    /// Starts a builder of an estimator with a model function.
    #[track_caller]
    #[allow(clippy::new_ret_no_self)] // the builder is where an estimator begins
    pub fn new(
        model_fn: impl Fn(&ModelFnContext<'_>) -> Result<EstimatorSpec> + Send + Sync + 'static,
    ) -> EstimatorBuilder {
        EstimatorBuilder {
            model_fn: Arc::new(model_fn),
            model_dir: None,
            config: RunConfig::new(),
            params: HParams::new(),
            warm_start_from: None,
            description: Description::function(),
            site: Location::caller(),
        }
    }

    /// Returns the same estimator with its model function wrapped by `change`, which adds `what`.
    pub(crate) fn map_model_fn(self, what: &'static str, change: impl FnOnce(ModelFn) -> ModelFn) -> Estimator {
        Estimator { model_fn: change(self.model_fn), description: self.description.without(what), ..self }
    }

    /// The folder of checkpoints and event files.
    pub fn model_dir(&self) -> &Path {
        &self.model_dir
    }

    /// The run configuration.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// The parameters of the model function.
    pub fn params(&self) -> &HParams {
        &self.params
    }

    /// The folder of the event files of an evaluation.
    pub fn eval_dir(&self, name: Option<&str>) -> PathBuf {
        match name {
            None => self.model_dir.join("eval"),
            Some(name) => self.model_dir.join(format!("eval_{name}")),
        }
    }

    /// The newest checkpoint; `None` before the first. It is an error if the state file names files
    /// that do not exist.
    pub fn latest_checkpoint(&self) -> Result<Option<PathBuf>> {
        newest(&self.model_dir, self.config.missing_state)
    }

    /// The checkpoint of the best evaluation during training; `None` if there is none. If a
    /// training had several evaluations, it is that of the first.
    pub fn best_checkpoint(&self) -> Result<Option<PathBuf>> {
        Ok(best(&self.model_dir, None)?.map(|found| found.0))
    }

    /// The names of all variables in the newest checkpoint, sorted.
    pub fn variable_names(&self) -> Result<Vec<String>> {
        let reader = self.open_latest()?;
        Ok(reader.names().filter(|name| !is_own(name)).map(str::to_string).collect())
    }

    /// The value of a variable in the newest checkpoint.
    pub fn variable_value(&self, name: &str) -> Result<Array> {
        self.open_latest()?.read(name)
    }

    fn open_latest(&self) -> Result<BundleReader> {
        match read_newest(&self.model_dir, self.config.missing_state, |prefix| BundleReader::open(prefix))? {
            Some((_, reader)) => Ok(reader),
            None => Err(Error::config(format!("there is no checkpoint in {} yet", self.model_dir.display()))
                .help("train the estimator first")),
        }
    }

    /// Opens an event file in a folder, for this estimator only.
    pub(crate) fn open_events(&self, folder: &Path) -> Result<LentEvents> {
        self.event_files.open(folder)
    }

    /// The columns of a premade estimator.
    pub(crate) fn columns(&self) -> Option<Columns> {
        self.description.columns()
    }

    /// The settings of k-means, if it is that.
    pub(crate) fn kmeans(&self) -> Option<&KMeansSettings> {
        self.description.settings_of_kmeans()
    }

    /// Restores a model from a checkpoint. Returns the checkpoint's path, or `None` if the newest
    /// is asked for and there is no checkpoint yet.
    fn restore(&self, session: &mut TrainSession, which: &Which) -> Result<Option<PathBuf>> {
        let restored = self.find(which, |prefix| {
            info!("Restoring parameters from {}", prefix.display());
            session.restore(prefix)
        })?;
        Ok(restored.map(|(prefix, ())| prefix))
    }

    /// Calls `read` with a checkpoint.
    fn find<T>(&self, which: &Which, read: impl FnMut(&Path) -> Result<T>) -> Result<Option<(PathBuf, T)>> {
        match which {
            Which::Newest => read_newest(&self.model_dir, self.config.missing_state, read),
            Which::At(path) => read_at(path, read).map(Some),
            Which::Best(evaluation) => read_best(&self.model_dir, evaluation.as_deref(), read).map(Some),
        }
    }
}

impl fmt::Debug for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Estimator")
            .field("model_dir", &self.model_dir)
            .field("config", &self.config)
            .field("params", &self.params)
            .finish_non_exhaustive()
    }
}
