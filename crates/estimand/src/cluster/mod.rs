//! The cluster that the environment's `TF_CONFIG` describes, and this process's place in it.
//!
//! Schedulers (Kubeflow, Vertex AI, TonY, ...) use `TF_CONFIG` to describe a cluster to the
//! processes of one training. It is JSON with the addresses of every job and this process's task.
//! Without it, a process is alone: the only worker, and the chief.

mod tf_config;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fmt};

use estimand_tensor::Result;

const CHIEF: &str = "chief";
const MASTER: &str = "master";
const WORKER: &str = "worker";
const PS: &str = "ps";
const EVALUATOR: &str = "evaluator";

/// Addresses of a job's tasks by index. TensorFlow allows gaps, but they are rare.
type Tasks = BTreeMap<usize, String>;

/// A cluster and this process's task in it.
///
/// ```
/// use estimand::Cluster;
///
/// let cluster = Cluster::parse(
///     r#"{"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}, "task": {"type": "worker", "index": 1}}"#,
/// )?;
/// assert_eq!((cluster.task_type(), cluster.task_index()), ("worker", 1));
/// assert_eq!((cluster.n_workers(), cluster.n_ps()), (3, 1));
/// assert_eq!(cluster.global_id(), Some(2));
/// assert!(!cluster.is_chief());
/// # Ok::<(), estimand::prelude::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    jobs: BTreeMap<String, Tasks>,
    task_type: String,
    task_index: usize,
    session_master: Option<String>,
    eval_session_master: Option<String>,
    model_dir: Option<PathBuf>,
    service: Option<String>,
}

impl Default for Cluster {
    /// A single process without a cluster.
    fn default() -> Cluster {
        Cluster {
            jobs: BTreeMap::new(),
            task_type: WORKER.to_string(),
            task_index: 0,
            session_master: None,
            eval_session_master: None,
            model_dir: None,
            service: None,
        }
    }
}

impl Cluster {
    /// Reads the environment's `TF_CONFIG`. If it is unset, the process is alone.
    ///
    /// An empty value counts as unset, with a warning: shells and schedulers clear variables that
    /// way.
    pub fn from_env() -> Result<Cluster> {
        match env::var("TF_CONFIG") {
            Ok(text) => Cluster::parse(&text),
            Err(env::VarError::NotPresent) => Ok(Cluster::default()),
            Err(env::VarError::NotUnicode(_)) => Err(tf_config::invalid("the text is not Unicode")),
        }
    }

    fn chief_job(&self) -> &str {
        [CHIEF, MASTER].into_iter().find(|job| self.jobs.contains_key(*job)).unwrap_or(WORKER)
    }

    fn chief_index(&self) -> usize {
        self.jobs.get(self.chief_job()).and_then(|tasks| tasks.keys().next()).copied().unwrap_or(0)
    }

    /// Returns whether there are other processes to communicate with. An evaluator only reads files
    /// that others write.
    pub fn is_distributed(&self) -> bool {
        self.n_workers() + self.n_ps() > 1
    }

    /// The job of this process, such as `worker`.
    pub fn task_type(&self) -> &str {
        &self.task_type
    }

    /// The index of this process in its job.
    pub fn task_index(&self) -> usize {
        self.task_index
    }

    /// Whether this process saves checkpoints and writes summaries.
    pub fn is_chief(&self) -> bool {
        !self.is_evaluator() && self.task_type == self.chief_job() && self.task_index == self.chief_index()
    }

    /// Returns whether this process only evaluates the checkpoints of others.
    pub fn is_evaluator(&self) -> bool {
        self.task_type == EVALUATOR
    }

    /// The number of processes that train, including the chief; 0 for an evaluator.
    pub fn n_workers(&self) -> usize {
        match (self.is_evaluator(), self.jobs.is_empty()) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => [CHIEF, MASTER, WORKER].into_iter().map(|job| self.addresses(job).count()).sum(),
        }
    }

    /// The number of parameter servers; 0 for an evaluator.
    pub fn n_ps(&self) -> usize {
        if self.is_evaluator() { 0 } else { self.addresses(PS).count() }
    }

    /// The index of this process among all: the chief first, then the other jobs by name, `ps`
    /// last. An evaluator has none.
    pub fn global_id(&self) -> Option<usize> {
        if self.is_evaluator() {
            return None;
        }
        let chief = self.jobs.get_key_value(self.chief_job());
        let others = self.jobs.iter().filter(|(job, _)| *job != self.chief_job() && *job != PS);
        let ordered = chief.into_iter().chain(others).chain(self.jobs.get_key_value(PS));
        // TF: a gap in a job's tasks also takes a number, as if the task only started late.
        let before = ordered.take_while(|(job, _)| **job != self.task_type);
        let n_before: usize = before.filter_map(|(_, tasks)| tasks.keys().next_back()).map(|last| last + 1).sum();
        Some(n_before + self.task_index)
    }

    /// The address of this process's own server in TensorFlow's form (`grpc://host:port`), unless
    /// `session_master` sets another. Empty for a process alone and for an evaluator.
    pub fn master(&self) -> String {
        if self.is_evaluator() {
            return String::new();
        }
        let own = || self.jobs.get(&self.task_type).and_then(|tasks| tasks.get(&self.task_index));
        match (&self.session_master, own()) {
            (Some(master), _) => master.clone(),
            (None, Some(address)) if self.n_tasks() > 1 => format!("grpc://{address}"),
            _ => String::new(),
        }
    }

    /// The address of the evaluation session, if `eval_session_master` sets one for an evaluator or
    /// for a process alone; otherwise empty.
    pub fn eval_master(&self) -> &str {
        let used = self.is_evaluator() || self.jobs.is_empty();
        self.eval_session_master.as_deref().filter(|_| used).unwrap_or_default()
    }

    /// Indices and addresses of a job's tasks; empty for a job that does not exist.
    pub fn addresses(&self, job: &str) -> impl Iterator<Item = (usize, &str)> {
        self.jobs.get(job).into_iter().flatten().map(|(index, address)| (*index, address.as_str()))
    }

    /// The names of the cluster's jobs, sorted; empty for a process alone.
    pub fn jobs(&self) -> impl Iterator<Item = &str> {
        self.jobs.keys().map(String::as_str)
    }

    /// The folder of the model, if `TF_CONFIG` names one.
    pub fn model_dir(&self) -> Option<&Path> {
        self.model_dir.as_deref()
    }

    /// The value of `service` in `TF_CONFIG`, as JSON.
    pub fn service(&self) -> Option<&str> {
        self.service.as_deref()
    }

    /// The number of tasks in the cluster; 0 for a process alone.
    pub(crate) fn n_tasks(&self) -> usize {
        self.jobs.values().map(BTreeMap::len).sum()
    }
}

/// `task = worker 1, n_workers = 3, n_ps = 2`, for the log.
impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.jobs.is_empty() {
            return f.write_str("task = alone");
        }
        let chief = if self.is_chief() { " (chief)" } else { "" };
        write!(f, "task = {} {}{chief}, n_workers = {}", self.task_type, self.task_index, self.n_workers())?;
        write!(f, ", n_ps = {}", self.n_ps())
    }
}
