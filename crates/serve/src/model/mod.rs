//! The models of a server: which versions are loaded, and which one a request gets.
//!
//! `versions.rs` lists the folders of a model and applies its policy, `loaded.rs` is a version in
//! memory, `about.rs` what its export says of it, `warmup.rs` tries it, `watcher.rs` loads and
//! drops versions in its own thread, `version_status.rs` is what is known of each version. A
//! request takes an `Arc` of a version and keeps it to its end, so a swap disturbs nobody.

mod about;
mod loaded;
mod version_status;
mod versions;
mod warmup;
mod watcher;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;

use estimand_tensor::{Error, Result};
use tokio::sync::watch;

pub(crate) use about::{About, Column, Made, Unknown};
pub(crate) use loaded::{Computed, Loaded, Signature, sizes};
pub use version_status::{State, VersionStatus};
pub use versions::VersionPolicy;
pub(crate) use watcher::Watcher;

use crate::batch::Batcher;
use crate::metrics::ModelMetrics;
use crate::status::{Answer, Status};
use version_status::Statuses;

/// A model to serve: its name, its folder, and which of its versions to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    pub(crate) name: String,
    pub(crate) base_path: PathBuf,
    pub(crate) policy: VersionPolicy,
    pub(crate) labels: BTreeMap<String, i64>,
    pub(crate) max_requests: Option<usize>,
}

impl ModelConfig {
    /// A model with this name, whose versions are the folders of `base_path` that have a number as
    /// their name. By default the newest version is served.
    pub fn new(name: impl Into<String>, base_path: impl AsRef<Path>) -> ModelConfig {
        let base_path = base_path.as_ref().to_path_buf();
        ModelConfig {
            name: name.into(),
            base_path,
            policy: VersionPolicy::default(),
            labels: BTreeMap::new(),
            max_requests: None,
        }
    }

    /// Sets which versions are loaded. By default the newest one.
    #[must_use]
    pub fn policy(mut self, policy: VersionPolicy) -> ModelConfig {
        self.policy = policy;
        self
    }

    /// Sets the number of requests that may run this model at the same time; a request beyond it is
    /// refused with 429, so that one model cannot take the whole server. By default there is no
    /// limit but that of the server.
    #[must_use]
    pub fn max_requests(mut self, n: usize) -> ModelConfig {
        self.max_requests = Some(n.max(1));
        self
    }

    /// Gives a version a name that requests may use: `/v1/models/census/labels/canary:predict`.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>, version: i64) -> ModelConfig {
        self.labels.insert(label.into(), version);
        self
    }
}

/// A request that runs a model, until it is dropped.
pub(crate) struct Slot<'a>(&'a AtomicUsize);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How versions are found and loaded.
#[derive(Clone, Debug)]
pub(crate) struct LoadSettings {
    /// The time between two looks at the folders; `None` to look only once.
    pub(crate) poll_wait: Option<Duration>,
    /// How often a version that could not be loaded is tried again.
    pub(crate) n_retries: u32,
    /// The time between two tries.
    pub(crate) retry_wait: Duration,
}

impl Default for LoadSettings {
    fn default() -> LoadSettings {
        LoadSettings { poll_wait: Some(Duration::from_secs(1)), n_retries: 5, retry_wait: Duration::from_secs(60) }
    }
}

/// The version that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Latest,
    Version(i64),
    Label(String),
}

/// A model with its loaded versions.
pub(crate) struct Model {
    pub(crate) config: ModelConfig,
    served: RwLock<Arc<BTreeMap<i64, Arc<Loaded>>>>,
    statuses: Mutex<Statuses>,
    pub(crate) metrics: ModelMetrics,
    /// The number of requests that run it now.
    n_running: AtomicUsize,
    /// Whether versions are loaded; a client may unload the model.
    is_wanted: AtomicBool,
    /// Unknown names in requests that were logged.
    warned: Mutex<BTreeSet<String>>,
}

impl Model {
    fn new(config: ModelConfig) -> Model {
        let (served, statuses, warned) = (RwLock::default(), Mutex::default(), Mutex::default());
        Model {
            config,
            served,
            statuses,
            metrics: ModelMetrics::default(),
            n_running: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(true),
            warned,
        }
    }

    /// The loaded versions.
    pub(crate) fn served(&self) -> Arc<BTreeMap<i64, Arc<Loaded>>> {
        self.served.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, versions: BTreeMap<i64, Arc<Loaded>>) {
        *self.served.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(versions);
    }

    /// The version of a choice.
    pub(crate) fn find(&self, choice: &Choice) -> Answer<Arc<Loaded>> {
        let (name, served) = (&self.config.name, self.served());
        let version = match choice {
            Choice::Latest => {
                let latest = served.values().next_back();
                return latest.cloned().ok_or_else(|| self.not_served(format!("Latest({name})")));
            }
            Choice::Version(version) => *version,
            Choice::Label(label) => self.version_of(label)?,
        };
        served.get(&version).cloned().ok_or_else(|| self.not_served(format!("Specific({name}, {version})")))
    }

    /// The version that a label stands for.
    pub(crate) fn version_of(&self, label: &str) -> Answer<i64> {
        let version = self.config.labels.get(label).copied();
        version.ok_or_else(|| Status::invalid(format!("Unrecognized servable version label: {label}")))
    }

    /// Says why no version answers: the reason of the newest failure, if there is one.
    fn not_served(&self, request: String) -> Status {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = statuses.newest_failure().map(|reason| format!("; {reason}")).unwrap_or_default();
        Status::not_found(format!("Servable not found for request: {request}{reason}"))
    }

    /// Logs names that the model does not have, each of them once.
    pub(crate) fn warn_of(&self, names: &[String]) {
        const MAX_NAMES: usize = 100;
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            if warned.len() < MAX_NAMES && warned.insert(name.clone()) {
                tracing::warn!("model `{}` has no input `{name}`, which a request names", self.config.name);
            }
        }
    }

    /// Admits a request to run the model, unless too many do.
    pub(crate) fn admit(&self) -> Answer<Slot<'_>> {
        let n = self.n_running.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(&self.n_running);
        match self.config.max_requests {
            Some(limit) if n >= limit => Err(Status::full(format!(
                "{limit} requests run model `{}`, which is its limit; try again later",
                self.config.name
            ))),
            _ => Ok(slot),
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Why a model that was just looked at has no version, or not its newest; `None` if it has.
    pub(crate) fn not_loaded(&self) -> Option<String> {
        let failure = self.change_statuses(|statuses| statuses.newest_failure());
        match (failure, self.served().is_empty()) {
            (Some(reason), _) => Some(reason),
            (None, true) => Some(format!("no version found in {}", self.config.base_path.display())),
            (None, false) => None,
        }
    }

    /// What is known of each version, the newest first.
    pub(crate) fn statuses(&self) -> Vec<VersionStatus> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner).all()
    }

    fn change_statuses<T>(&self, change: impl FnOnce(&mut Statuses) -> T) -> T {
        change(&mut self.statuses.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The models of a server, by name.
#[derive(Default)]
pub(crate) struct Models {
    by_name: RwLock<Arc<BTreeMap<String, Arc<Model>>>>,
    /// Wakes the thread that loads versions.
    signal: Mutex<Signal>,
    wake: Condvar,
    /// The number of looks at the folders that have ended, by the tickets that asked for them.
    looked: watch::Sender<u64>,
}

/// What the thread that loads versions is told.
#[derive(Clone, Copy, Default)]
struct Signal {
    is_changed: bool,
    is_stopped: bool,
    /// The number of requests for a look so far.
    n_asked: u64,
}

impl Models {
    pub(crate) fn new(configs: Vec<ModelConfig>) -> Result<Models> {
        let models = Models::default();
        models.configure(configs)?;
        Ok(models)
    }

    pub(crate) fn all(&self) -> Arc<BTreeMap<String, Arc<Model>>> {
        self.by_name.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the configuration. Models keep their loaded versions until their folder has others.
    pub(crate) fn configure(&self, configs: Vec<ModelConfig>) -> Result<()> {
        for (i, config) in configs.iter().enumerate() {
            if config.name.is_empty() {
                return Err(Error::config(format!("the model of {} has no name", config.base_path.display())));
            }
            if let Some(other) = configs[..i].iter().find(|other| other.name == config.name) {
                return Err(Error::config(format!(
                    "two models have the name `{}`: {} and {}",
                    config.name,
                    other.base_path.display(),
                    config.base_path.display()
                ))
                .help("give each model its own name"));
            }
        }
        let old = self.all();
        let mut new = BTreeMap::new();
        for config in configs {
            let model = Model::new(config);
            let name = model.config.name.clone();
            let model = match old.get(&name) {
                Some(known) if known.config == model.config => Arc::clone(known),
                // Also for another folder: the old versions answer until those of the new one are
                // loaded.
                Some(known) => {
                    model.publish((*known.served()).clone());
                    model.change_statuses(|statuses| *statuses = known.change_statuses(|known| known.clone()));
                    model.is_wanted.store(known.is_wanted(), Ordering::Relaxed);
                    Arc::new(model)
                }
                None => Arc::new(model),
            };
            new.insert(name, model);
        }
        *self.by_name.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        self.tell(|signal| signal.is_changed = true);
        Ok(())
    }

    /// Asks that a model is loaded or unloaded. The ticket is for [`Models::looked`].
    pub(crate) fn want(&self, model: &Model, is_wanted: bool) -> u64 {
        model.is_wanted.store(is_wanted, Ordering::Relaxed);
        if is_wanted {
            model.change_statuses(Statuses::forgive);
        }
        let mut signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        signal.is_changed = true;
        signal.n_asked += 1;
        self.wake.notify_all();
        signal.n_asked
    }

    /// Waits until the thread that loads versions has looked, for a ticket.
    pub(crate) async fn looked(&self, ticket: u64) {
        let mut looked = self.looked.subscribe();
        // The sender lives as long as this.
        let _ = looked.wait_for(|done| *done >= ticket).await;
    }

    fn tell(&self, change: impl FnOnce(&mut Signal)) {
        change(&mut self.signal.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_all();
    }

    /// Waits until a time has passed or something is told. Returns the newest ticket, or `None` to
    /// stop.
    fn wait(&self, limit: Option<Duration>) -> Option<u64> {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        let is_quiet = |signal: &mut Signal| !signal.is_changed && !signal.is_stopped;
        let mut signal = match limit {
            Some(limit) => {
                self.wake.wait_timeout_while(signal, limit, is_quiet).map_or_else(|e| e.into_inner().0, |woken| woken.0)
            }
            None => self.wake.wait_while(signal, is_quiet).unwrap_or_else(PoisonError::into_inner),
        };
        signal.is_changed = false;
        (!signal.is_stopped).then_some(signal.n_asked)
    }

    /// The model with a name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Model>> {
        self.all().get(name).cloned()
    }

    /// The version of a model, or the error that TensorFlow Serving answers.
    pub(crate) fn loaded(&self, name: &str, choice: &Choice) -> Answer<(Arc<Model>, Arc<Loaded>)> {
        let Some(model) = self.find(name) else {
            let request = match choice {
                Choice::Version(version) => format!("Specific({name}, {version})"),
                Choice::Latest | Choice::Label(_) => format!("Latest({name})"),
            };
            return Err(Status::not_found(format!("Servable not found for request: {request}")));
        };
        let loaded = model.find(choice)?;
        Ok((model, loaded))
    }

    /// Whether each model has a version that answers.
    pub(crate) fn are_ready(&self) -> bool {
        self.all().values().all(|model| !model.is_wanted() || !model.served().is_empty())
    }
}

/// What a version needs besides its files.
#[derive(Clone, Default)]
pub(crate) struct Surroundings {
    /// Joins the rows of requests, if that is switched on.
    pub(crate) batcher: Option<Arc<Batcher>>,
    /// Whether a version must give the answers that its export carries.
    pub(crate) checks_answers: bool,
}
