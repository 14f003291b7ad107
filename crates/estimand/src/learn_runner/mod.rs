//! Makes an [`Experiment`] and runs one of its schedules: TensorFlow's
//! `tf.contrib.learn.learn_runner`.
//!
//! ```
//! use estimand::learn_runner::{self, Options};
//! use estimand::prelude::*;
//! use estimand::Experiment;
//!
//! fn experiment_fn<'a>(config: RunConfig, params: HParams) -> Result<Experiment<'a>> {
//!     let rows = [("x", Array::from([1f32, 2.0, 3.0, 4.0])), ("y", Array::from([0i64, 0, 1, 1]))];
//!     let data = Dataset::from_arrays(rows).label("y").batch(4);
//!     let config = config.save_checkpoints(Every::Steps(params.usize("min_eval_frequency")? as u64));
//!     let classifier = LinearClassifier::new([numeric_column("x").into()]).config(config).build()?;
//!     let steps = params.usize("train_steps")? as u64;
//!     Ok(Experiment::new(classifier, data.repeat_forever(), data).train_steps(steps).eval_steps(None))
//! }
//!
//! # let folder = std::env::temp_dir().join(format!("estimand-doc-learn-runner-{}", std::process::id()));
//! let params = HParams::new().set("train_steps", 100).set("min_eval_frequency", 50);
//! let options = Options::new()
//!     .run_config(RunConfig::new().model_dir(&folder))
//!     .schedule("train_and_evaluate")
//!     .hparams(params);
//! let result = learn_runner::run(experiment_fn, options)?;
//! assert_eq!(result.finished.map(|finished| finished.global_step), Some(100));
//! # std::fs::remove_dir_all(folder).unwrap();
//! # Ok::<(), Error>(())
//! ```

mod schedule;

pub use schedule::Schedule;

use std::path::PathBuf;

use estimand_tensor::{Error, Result};
use tracing::info;

use crate::experiment::{Experiment, ExperimentResult};
use crate::{HParams, RunConfig};

/// The options of [`run`]. Exactly one of `run_config` and `output_dir` must be set.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Options {
    output_dir: Option<PathBuf>,
    schedule: Option<String>,
    run_config: Option<RunConfig>,
    hparams: Option<HParams>,
}

impl Options {
    /// No options.
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets the model folder, in place of a configuration. The function then gets a default
    /// configuration with this folder. `hparams` must not be set.
    pub fn output_dir(mut self, folder: impl Into<PathBuf>) -> Options {
        self.output_dir = Some(folder.into());
        self
    }

    /// Sets the schedule by its name, that of a method of [`Experiment`]. By default, the role of
    /// this process in `TF_CONFIG` decides; see [`Schedule::of`].
    pub fn schedule(mut self, name: impl Into<String>) -> Options {
        self.schedule = Some(name.into());
        self
    }

    /// Sets the configuration, which must have a `model_dir`. The estimator must be made with it;
    /// how often it saves and logs may differ.
    pub fn run_config(mut self, config: RunConfig) -> Options {
        self.run_config = Some(config);
        self
    }

    /// Sets the hyper-parameters. By default, there are none.
    pub fn hparams(mut self, hparams: HParams) -> Options {
        self.hparams = Some(hparams);
        self
    }
}

/// Calls a function that makes an experiment, and runs a schedule of it.
///
/// The function gets the configuration and the hyper-parameters. Errors about the options begin
/// with TensorFlow's words.
pub fn run<'a>(
    experiment_fn: impl FnOnce(RunConfig, HParams) -> Result<Experiment<'a>>,
    options: Options,
) -> Result<ExperimentResult> {
    let Options { output_dir, schedule, run_config, hparams } = options;
    // TF: with `output_dir`, the function may make an estimator with any configuration.
    let is_config = run_config.is_some();
    let (config, hparams) = match (output_dir, run_config) {
        (Some(_), Some(_)) => {
            return Err(Error::config("Cannot provide both `output_dir` and `run_config`")
                .help("set the folder with RunConfig::model_dir alone"));
        }
        (None, None) => {
            return Err(Error::config("Must set value for `output_dir` or `run_config`")
                .help("call Options::run_config with a RunConfig that has a model_dir"));
        }
        (Some(folder), None) => {
            if folder.as_os_str().is_empty() {
                return Err(Error::config("Must specify an output directory").help("the path is empty"));
            }
            if hparams.is_some() {
                let message = "Must set `hparams` as None for `experiment_fn` with `output_dir`.";
                return Err(Error::config(message).help("call Options::run_config in place of output_dir"));
            }
            (RunConfig::new().model_dir(folder).resolve()?, HParams::new())
        }
        (None, Some(config)) => {
            let config = config.resolve()?;
            if config.model_dir.is_none() {
                return Err(Error::config("Must specify a model directory `model_dir` in `run_config`.")
                    .help("call RunConfig::model_dir, or set model_dir in TF_CONFIG"));
            }
            (config, hparams.unwrap_or_default())
        }
    };
    let schedule = schedule.as_deref().map(Schedule::named).transpose()?;
    let mut experiment = experiment_fn(config.clone(), hparams)?;
    if is_config {
        check_config(&config, &experiment)?;
    }
    let schedule = match schedule {
        Some(schedule) => schedule,
        None => Schedule::of(experiment.estimator().config())?,
    };
    info!("Running the schedule {} of the experiment.", schedule.name());
    schedule.run(&mut experiment)
}

/// Checks that the estimator was made with the configuration. As in TensorFlow, settings of how
/// often it saves, logs and writes summaries may differ, and those that do not change where and by
/// whom the model is trained.
fn check_config(expected: &RunConfig, experiment: &Experiment<'_>) -> Result<()> {
    let found = experiment.estimator().config();
    let folder = Some(experiment.estimator().model_dir());
    let is_same = expected.model_dir.as_deref() == folder
        && expected.cluster == found.cluster
        && expected.train_distribute == found.train_distribute
        && expected.eval_distribute == found.eval_distribute
        && expected.device == found.device;
    if is_same {
        return Ok(());
    }
    let found = found.clone().model_dir(experiment.estimator().model_dir());
    Err(Error::config(format!(
        "`RunConfig` instance is expected to be used by the `Estimator` inside the `Experiment`. expected {expected}, but got {found}"
    ))
    .help("give the RunConfig that the function gets to the estimator: .config(run_config)"))
}
