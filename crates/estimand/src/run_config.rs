//! Settings of a run: the model folder, how often to save and log, and the device to run on.
//!
//! A [`RunConfig`] only stores values. The Estimator calls [`RunConfig::resolve`], which checks
//! every field and merges in the environment's `TF_CONFIG`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_graph::Executor;
use estimand_tensor::{Error, Result};

use crate::cluster::Cluster;
use crate::every::Every;
use crate::model_folder::{FolderLock, MissingState};

/// The settings of a run, with TensorFlow's names and defaults.
///
/// Fields are public to read. Setters return the changed value, so TensorFlow's `replace` is a
/// setter on a clone:
///
/// ```
/// use estimand::{Every, RunConfig};
///
/// let config = RunConfig::new().tf_random_seed(42).save_checkpoints(Every::Steps(500));
/// let quick = config.clone().save_checkpoints(Every::Never);
/// assert_eq!(quick.tf_random_seed, Some(42));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunConfig {
    /// The folder of checkpoints, events and exports; see [`RunConfig::model_dir`].
    pub model_dir: Option<PathBuf>,
    /// The seed of all randomness; see [`RunConfig::tf_random_seed`].
    pub tf_random_seed: Option<u64>,
    /// Steps between summaries; see [`RunConfig::save_summary_steps`].
    pub save_summary_steps: u64,
    /// How often checkpoints are saved; see [`RunConfig::save_checkpoints`].
    pub save_checkpoints: Every,
    /// The number of checkpoints to keep; see [`RunConfig::keep_checkpoint_max`].
    pub keep_checkpoint_max: Option<usize>,
    /// Hours between checkpoints that are kept forever; see
    /// [`RunConfig::keep_checkpoint_every_n_hours`].
    pub keep_checkpoint_every_n_hours: f64,
    /// Steps between log lines; see [`RunConfig::log_step_count_steps`].
    pub log_step_count_steps: Option<u64>,
    /// The metrics to measure in training too; see [`RunConfig::running_metrics`].
    pub running_metrics: Vec<String>,
    /// Whether the graph is written as text; see [`RunConfig::checkpoint_save_graph_def`].
    pub checkpoint_save_graph_def: bool,
    /// How training is spread over devices; see [`RunConfig::train_distribute`].
    pub train_distribute: Strategy,
    /// How evaluation is spread over devices; see [`RunConfig::eval_distribute`].
    pub eval_distribute: Strategy,
    /// The longest time a worker waits for the chief; see [`RunConfig::max_worker_delay_secs`].
    pub max_worker_delay_secs: Option<f64>,
    /// The device that runs the steps; see [`RunConfig::device`].
    pub device: Device,
    /// The number of threads of a step; see [`RunConfig::threads`].
    pub threads: usize,
    /// The number of threads that read input; see [`RunConfig::input_threads`].
    pub input_threads: Option<usize>,
    /// Retries after a transient input error; see [`RunConfig::input_retries`].
    pub input_retries: u32,
    /// Whether a second training in the same folder is refused; see [`RunConfig::folder_lock`].
    pub folder_lock: FolderLock,
    /// How to proceed if the list of checkpoints is missing; see [`RunConfig::missing_state`].
    pub missing_state: MissingState,
    /// Whether to load a checkpoint whose columns have changed; see
    /// [`RunConfig::accept_changed_meaning`].
    pub accept_changed_meaning: bool,
    /// The number of training rows that the model folder keeps; see [`RunConfig::kept_rows`].
    pub kept_rows: usize,
    /// This process's place in a cluster; see [`RunConfig::cluster`].
    pub cluster: Option<Cluster>,
}

/// How work is spread over devices and processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Strategy {
    /// Everything runs on one device of this process.
    #[default]
    OneDevice,
    /// Copies of the model on several devices of this process.
    Mirrored,
    /// Copies of the model on several workers, which sum their gradients.
    MultiWorkerMirrored,
    /// Variables on parameter servers, which workers read and update.
    ParameterServer,
}

impl Strategy {
    fn check(self, what: &str) -> Result<()> {
        match self {
            Strategy::OneDevice => Ok(()),
            other => Err(Error::unsupported(format!("{what} is Strategy::{other:?}, which this version cannot run"))
                .help("use Strategy::OneDevice: a step runs on all cores of this machine")),
        }
    }
}

/// The device that runs the steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Device {
    /// The CPU cores.
    #[default]
    Cpu,
}

impl Default for RunConfig {
    fn default() -> RunConfig {
        RunConfig {
            model_dir: None,
            tf_random_seed: None,
            save_summary_steps: 100,
            save_checkpoints: Every::Secs(600.0),
            keep_checkpoint_max: Some(5),
            keep_checkpoint_every_n_hours: 10_000.0,
            log_step_count_steps: Some(100),
            running_metrics: Vec::new(),
            checkpoint_save_graph_def: true,
            train_distribute: Strategy::OneDevice,
            eval_distribute: Strategy::OneDevice,
            max_worker_delay_secs: None,
            device: Device::Cpu,
            threads: 0,
            input_threads: None,
            input_retries: 0,
            folder_lock: FolderLock::Exclusive,
            missing_state: MissingState::Refuse,
            accept_changed_meaning: false,
            kept_rows: 32,
            cluster: None,
        }
    }
}

impl RunConfig {
    /// Returns the default settings.
    pub fn new() -> RunConfig {
        RunConfig::default()
    }

    /// Sets the folder of checkpoints, events and exports. By default, the folder that `TF_CONFIG`
    /// names, or else a new temporary folder.
    #[must_use]
    pub fn model_dir(mut self, folder: impl AsRef<Path>) -> RunConfig {
        self.model_dir = Some(folder.as_ref().to_path_buf());
        self
    }

    /// Sets the seed of initial weights, dropout and shuffling. By default, a random seed is drawn,
    /// logged and saved in the checkpoint.
    #[must_use]
    pub fn tf_random_seed(mut self, seed: u64) -> RunConfig {
        self.tf_random_seed = Some(seed);
        self
    }

    /// Sets the number of steps between summaries. By default, 100; 0 writes none.
    #[must_use]
    pub fn save_summary_steps(mut self, steps: u64) -> RunConfig {
        self.save_summary_steps = steps;
        self
    }

    /// Sets how often checkpoints are saved, in addition to the first and the last. By default,
    /// every 600 seconds. [`Every::Never`] saves none at all.
    #[must_use]
    pub fn save_checkpoints(mut self, every: Every) -> RunConfig {
        self.save_checkpoints = every;
        self
    }

    /// Sets how many of the newest checkpoints are kept. By default, 5; `None` or 0 keeps all.
    #[must_use]
    pub fn keep_checkpoint_max(mut self, n: impl Into<Option<usize>>) -> RunConfig {
        self.keep_checkpoint_max = n.into();
        self
    }

    /// Keeps one checkpoint forever each time this number of hours has passed. By default, 10 000.
    #[must_use]
    pub fn keep_checkpoint_every_n_hours(mut self, hours: f64) -> RunConfig {
        self.keep_checkpoint_every_n_hours = hours;
        self
    }

    /// Sets the number of steps between log lines of the loss and the steps per second. By default,
    /// 100; `None` logs neither.
    #[must_use]
    pub fn log_step_count_steps(mut self, steps: impl Into<Option<u64>>) -> RunConfig {
        self.log_step_count_steps = steps.into();
        self
    }

    /// Measures metrics of the model in training too, by their names in an evaluation. Their values
    /// over all steps so far are in the log lines of the loss and among the summaries. By default,
    /// training measures none, and its steps do not compute them.
    ///
    /// ```
    /// use estimand::prelude::*;
    /// let config = RunConfig::new().running_metrics(["accuracy", "auc"]);
    /// ```
    #[must_use]
    pub fn running_metrics<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> RunConfig {
        self.running_metrics = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets whether the training graph is written to `graph.pbtxt`. The event files for TensorBoard
    /// contain the graph in any case. By default, it is written.
    #[must_use]
    pub fn checkpoint_save_graph_def(mut self, save: bool) -> RunConfig {
        self.checkpoint_save_graph_def = save;
        self
    }

    /// Sets how training is distributed. By default, [`Strategy::OneDevice`], the only strategy
    /// that this version runs.
    #[must_use]
    pub fn train_distribute(mut self, strategy: Strategy) -> RunConfig {
        self.train_distribute = strategy;
        self
    }

    /// Sets how evaluation is distributed. By default, [`Strategy::OneDevice`], the only strategy
    /// that this version runs.
    #[must_use]
    pub fn eval_distribute(mut self, strategy: Strategy) -> RunConfig {
        self.eval_distribute = strategy;
        self
    }

    /// Sets the longest time in seconds that a worker waits before it starts, so that the chief
    /// starts first. By default, five seconds for each worker before it.
    #[must_use]
    pub fn max_worker_delay_secs(mut self, secs: impl Into<Option<f64>>) -> RunConfig {
        self.max_worker_delay_secs = secs.into();
        self
    }

    /// Sets the device that runs the steps. By default, [`Device::Cpu`].
    #[must_use]
    pub fn device(mut self, device: Device) -> RunConfig {
        self.device = device;
        self
    }

    /// Sets how many threads share a step. Results do not depend on it. By default, 0: one thread
    /// per core.
    #[must_use]
    pub fn threads(mut self, n: usize) -> RunConfig {
        self.threads = n;
        self
    }

    /// Sets how many threads read and prepare input. Results do not depend on it. By default, the
    /// same number as [`threads`](RunConfig::threads).
    #[must_use]
    pub fn input_threads(mut self, n: usize) -> RunConfig {
        self.input_threads = Some(n);
        self
    }

    /// Sets how many times in a row training reopens its input after a transient error. Such an
    /// error is one of the system's that may pass (a reset connection, a read that timed out), or
    /// one that the input marked with [`Error::transient`]. Training resumes after the last batch
    /// it received, and its result is bit for bit that of an undisturbed run. The wait before each
    /// retry is twice as long as the one before. By default, 0: the error ends the training.
    #[must_use]
    pub fn input_retries(mut self, n: u32) -> RunConfig {
        self.input_retries = n;
        self
    }

    /// Sets whether a training refuses to start while another one runs in the same model folder. By
    /// default, [`FolderLock::Exclusive`]: it refuses.
    #[must_use]
    pub fn folder_lock(mut self, lock: FolderLock) -> RunConfig {
        self.folder_lock = lock;
        self
    }

    /// Sets how to proceed if the model folder has checkpoints but the file `checkpoint`, which
    /// lists them, is missing. By default, [`MissingState::Refuse`]: an error reports it.
    #[must_use]
    pub fn missing_state(mut self, missing: MissingState) -> RunConfig {
        self.missing_state = missing;
        self
    }

    /// Sets whether to load a checkpoint that was trained with other vocabularies, boundaries,
    /// normalisation or column settings than the model has now. The differences are logged, and the
    /// next checkpoint stores the new settings. By default, such a checkpoint is refused with a
    /// list of the differences.
    #[must_use]
    pub fn accept_changed_meaning(mut self, accept: bool) -> RunConfig {
        self.accept_changed_meaning = accept;
        self
    }

    /// Sets how many of the first training rows the model folder keeps, in `training_rows.json`. An
    /// export is checked with them, and carries them unless it is told not to. By default, 32, or
    /// as many as fit into a mebibyte. 0 keeps none, for data that must not be copied.
    #[must_use]
    pub fn kept_rows(mut self, n: usize) -> RunConfig {
        self.kept_rows = n;
        self
    }

    /// Returns the executor that runs the steps. No other code knows executors by name.
    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        match (self.device, self.threads) {
            (Device::Cpu, 0) => Arc::new(Cpu::new()),
            (Device::Cpu, n) => Arc::new(Cpu::with_threads(n)),
        }
    }

    /// Returns the number of threads that read and prepare input. If none is set, it is derived
    /// from the machine.
    pub(crate) fn n_input_threads(&self) -> usize {
        match self.input_threads.unwrap_or(self.threads) {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
            n => n,
        }
    }

    /// Sets this process's place in a cluster. By default, the environment's `TF_CONFIG` decides.
    #[must_use]
    pub fn cluster(mut self, cluster: Cluster) -> RunConfig {
        self.cluster = Some(cluster);
        self
    }

    /// Returns an error for the first invalid field.
    pub fn check(&self) -> Result<()> {
        if self.model_dir.as_ref().is_some_and(|folder| folder.as_os_str().is_empty()) {
            return Err(
                Error::config("model_dir is empty, expected a folder").help("leave it out for a temporary folder")
            );
        }
        self.save_checkpoints.check("save_checkpoints")?;
        let hours = self.keep_checkpoint_every_n_hours;
        if hours.is_nan() || hours <= 0.0 {
            return Err(Error::config(format!(
                "keep_checkpoint_every_n_hours is {hours}, expected a positive number of hours"
            ))
            .help("use f64::INFINITY to keep none for ever"));
        }
        if self.log_step_count_steps == Some(0) {
            return Err(Error::config("log_step_count_steps is 0, expected a positive number of steps")
                .help("use log_step_count_steps(None) to log nothing"));
        }
        if let Some(secs) = self.max_worker_delay_secs
            && !(secs >= 0.0 && secs.is_finite())
        {
            return Err(Error::config(format!("max_worker_delay_secs is {secs}, expected a number of seconds from 0")));
        }
        for (what, n) in [("threads", self.threads), ("input_threads", self.input_threads.unwrap_or(0))] {
            if n > MOST_THREADS {
                return Err(Error::config(format!("{what} is {n}, expected at most {MOST_THREADS}"))
                    .help("use 0 for one thread for each core"));
            }
        }
        self.train_distribute.check("train_distribute")?;
        self.eval_distribute.check("eval_distribute")
    }

    /// Checks the settings and merges them with the environment's `TF_CONFIG`. The environment's
    /// cluster is used unless one was set. If both give a `model_dir`, they must be equal.
    pub fn resolve(self) -> Result<RunConfig> {
        self.check()?;
        let cluster = match self.cluster.clone() {
            Some(cluster) => cluster,
            None => Cluster::from_env()?,
        };
        let model_dir = match (&self.model_dir, cluster.model_dir()) {
            (Some(ours), Some(theirs)) if ours != theirs => {
                return Err(Error::config(format!(
                    "model_dir is {} in the program and {} in TF_CONFIG",
                    ours.display(),
                    theirs.display()
                ))
                .help("set one of them, or both to the same folder"));
            }
            (ours, theirs) => ours.clone().or_else(|| theirs.map(Path::to_path_buf)),
        };
        let config = RunConfig { model_dir, cluster: Some(cluster), ..self };
        // Values from the environment are checked like values from the program.
        config.check()?;
        Ok(config)
    }
}

/// An upper limit beyond the cores of any machine; a larger number is probably a typo.
const MOST_THREADS: usize = 4096;

/// All settings on one line, for the log.
impl fmt::Display for RunConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn some<T: fmt::Display>(value: Option<T>, otherwise: &str) -> String {
            value.map_or_else(|| otherwise.to_string(), |value| value.to_string())
        }
        write!(
            f,
            "model_dir = {}, tf_random_seed = {}, save_summary_steps = {}, save_checkpoints = {}, keep_checkpoint_max = {}, \
             keep_checkpoint_every_n_hours = {}, log_step_count_steps = {}, checkpoint_save_graph_def = {}, train_distribute = {:?}, eval_distribute = {:?}, \
             max_worker_delay_secs = {}, device = {:?}, threads = {}, input_threads = {}, input_retries = {}, \
             folder_lock = {:?}, missing_state = {:?}, accept_changed_meaning = {}, kept_rows = {}",
            some(self.model_dir.as_ref().map(|folder| folder.display()), "none"),
            some(self.tf_random_seed, "drawn"),
            self.save_summary_steps,
            self.save_checkpoints,
            some(self.keep_checkpoint_max.filter(|&n| n > 0), "all"),
            self.keep_checkpoint_every_n_hours,
            some(self.log_step_count_steps, "none"),
            self.checkpoint_save_graph_def,
            self.train_distribute,
            self.eval_distribute,
            some(self.max_worker_delay_secs, "none"),
            self.device,
            some(Some(self.threads).filter(|&n| n > 0), "all"),
            some(self.input_threads.or(Some(self.threads)).filter(|&n| n > 0), "all"),
            self.input_retries,
            self.folder_lock,
            self.missing_state,
            self.accept_changed_meaning,
            self.kept_rows,
        )?;
        match &self.cluster {
            Some(cluster) => write!(f, ", {cluster}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_tensorflows() {
        // The defaults of `tf.estimator.RunConfig()` in TensorFlow 2.15.
        let config = RunConfig::new();
        assert_eq!(config.save_summary_steps, 100);
        assert_eq!(config.save_checkpoints, Every::Secs(600.0));
        assert_eq!(config.keep_checkpoint_max, Some(5));
        assert_eq!(config.keep_checkpoint_every_n_hours, 10_000.0);
        assert_eq!(config.log_step_count_steps, Some(100));
        assert!(config.checkpoint_save_graph_def);
        assert_eq!((config.model_dir.clone(), config.tf_random_seed), (None, None));
        config.check().unwrap();
    }

    #[test]
    fn cases_92_and_93_no_checkpoints_are_asked_for_by_name() {
        // In TensorFlow a single None switches checkpoints off by accident. Here it cannot be
        // written.
        assert!(RunConfig::new().save_checkpoints(Every::Never).save_checkpoints.is_never());
        let config = RunConfig::new().save_checkpoints(Every::Steps(0));
        config.check().unwrap();
        assert!(config.save_checkpoints.is_never());
    }

    #[test]
    fn legal_extremes() {
        let config = RunConfig::new().save_summary_steps(0).keep_checkpoint_max(0).log_step_count_steps(None);
        config
            .keep_checkpoint_every_n_hours(f64::INFINITY)
            .max_worker_delay_secs(0.0)
            .tf_random_seed(0)
            .check()
            .unwrap();
        assert_eq!(RunConfig::new().keep_checkpoint_max(None).keep_checkpoint_max, None);
    }

    #[test]
    fn every_field_is_checked() {
        let new = RunConfig::new;
        for (config, expected) in [
            (new().model_dir(""), "model_dir is empty"),
            (new().save_checkpoints(Every::Secs(-1.0)), "save_checkpoints has a period of -1 seconds"),
            (new().keep_checkpoint_every_n_hours(0.0), "keep_checkpoint_every_n_hours is 0"),
            (new().keep_checkpoint_every_n_hours(f64::NAN), "keep_checkpoint_every_n_hours is NaN"),
            (new().log_step_count_steps(0), "log_step_count_steps is 0"),
            (new().max_worker_delay_secs(-2.0), "max_worker_delay_secs is -2"),
            (new().threads(1_000_000), "threads is 1000000"),
            (new().input_threads(5_000), "input_threads is 5000"),
            (new().train_distribute(Strategy::Mirrored), "train_distribute is Strategy::Mirrored"),
            (new().eval_distribute(Strategy::ParameterServer), "eval_distribute is Strategy::ParameterServer"),
        ] {
            let error = config.resolve().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn model_dir_may_come_from_the_cluster() {
        let cluster = Cluster::parse(r#"{"model_dir": "there"}"#).unwrap();
        let joined = |config: RunConfig| config.cluster(cluster.clone()).resolve();
        assert_eq!(joined(RunConfig::new()).unwrap().model_dir, Some("there".into()));
        assert_eq!(joined(RunConfig::new().model_dir("there")).unwrap().model_dir, Some("there".into()));
        let error = joined(RunConfig::new().model_dir("here")).unwrap_err().to_string();
        assert!(error.starts_with("model_dir is here in the program and there in TF_CONFIG"), "{error}");
        let empty = Cluster::parse(r#"{"model_dir": ""}"#).unwrap();
        assert!(RunConfig::new().cluster(empty).resolve().unwrap_err().to_string().starts_with("model_dir is empty"));
    }

    #[test]
    fn displayed_on_one_line() {
        let text = RunConfig::new().model_dir("m").tf_random_seed(7).to_string();
        assert!(text.starts_with(
            "model_dir = m, tf_random_seed = 7, save_summary_steps = 100, save_checkpoints = every 600 s"
        ));
        assert!(!text.contains('\n'));
    }
}
