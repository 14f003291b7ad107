//! Loads and drops versions, in a thread of its own: requests never wait for it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use estimand_tensor::{Error, Result};

use super::version_status::{Failure, State};
use super::{LoadSettings, Loaded, Model, Models, Surroundings, versions};

/// The thread that looks at the folders of models.
pub(crate) struct Watcher {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    models: Arc<Models>,
    settings: LoadSettings,
    surroundings: Surroundings,
}

impl Watcher {
    /// Loads the versions that are there, then watches the folders.
    pub(crate) fn start(models: Arc<Models>, settings: LoadSettings, surroundings: Surroundings) -> Result<Watcher> {
        let shared = Arc::new(Shared { models, settings, surroundings });
        let mut state = Passed::default();
        shared.look(&mut state);
        let in_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("estimand-models".into())
            .spawn(move || in_thread.watch(state))
            .map_err(|e| Error::config(format!("cannot start the thread that loads models: {e}")))?;
        Ok(Watcher { shared, thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.shared.models.tell(|signal| signal.is_stopped = true);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// What the thread remembers from look to look.
#[derive(Default)]
struct Passed {
    /// Versions that are not served any more. They are dropped here, not by the last request.
    retired: Vec<(Arc<Model>, Arc<Loaded>)>,
    /// The last problem of each folder, to log it once.
    problems: BTreeMap<String, String>,
}

impl Shared {
    fn watch(&self, mut passed: Passed) {
        while let Some(ticket) = self.models.wait(self.settings.poll_wait) {
            self.look(&mut passed);
            self.models.looked.send_replace(ticket);
        }
    }

    /// Brings each model to the versions that its policy wants.
    fn look(&self, passed: &mut Passed) {
        for model in self.models.all().values() {
            self.look_at(model, passed);
        }
        passed.retired.retain(|(model, loaded)| {
            let is_used = Arc::strong_count(loaded) > 1;
            if !is_used {
                model.change_statuses(|statuses| {
                    // It may have been loaded again meanwhile.
                    if statuses.in_state(State::Unloading).contains(&loaded.version) {
                        statuses.set(loaded.version, State::End);
                    }
                });
                tracing::info!("unloaded version {} of model `{}`", loaded.version, model.config.name);
            }
            is_used
        });
    }

    fn look_at(&self, model: &Arc<Model>, passed: &mut Passed) {
        let name = &model.config.name;
        if !model.is_wanted() {
            return self.keep(model, BTreeMap::new(), passed);
        }
        let there = match versions::list(&model.config.base_path) {
            Ok(there) if there.is_empty() => {
                let message = format!("no version found in {}", model.config.base_path.display());
                return self.problem(name, message, passed);
            }
            Ok(there) => there,
            Err(error) => {
                let message = format!("cannot list {}: {error}", model.config.base_path.display());
                return self.problem(name, message, passed);
            }
        };
        passed.problems.remove(name);
        let (wanted, n) = model.config.policy.wanted(&there);
        let mut kept = BTreeMap::new();
        for version in wanted {
            if kept.len() >= n {
                break;
            }
            let folder = &there[&version];
            // A version of the same number from the folder that the model had before is another.
            let loaded = match model.served().get(&version).filter(|loaded| loaded.folder == *folder) {
                Some(loaded) => Some(Arc::clone(loaded)),
                None => self.load(model, version, folder),
            };
            if let Some(loaded) = loaded {
                kept.insert(version, loaded);
            }
        }
        // A folder whose versions all fail leaves the old ones.
        if !kept.is_empty() {
            self.keep(model, kept, passed);
        }
    }

    /// Serves only these versions. The others end when their last request does.
    fn keep(&self, model: &Arc<Model>, kept: BTreeMap<i64, Arc<Loaded>>, passed: &mut Passed) {
        let served = model.served();
        let dropped: Vec<i64> = served.keys().filter(|version| !kept.contains_key(version)).copied().collect();
        if dropped.is_empty() {
            return;
        }
        for version in &dropped {
            model.change_statuses(|statuses| statuses.set(*version, State::Unloading));
            passed.retired.push((Arc::clone(model), Arc::clone(&served[version])));
        }
        model.publish(kept);
    }

    /// Loads a version and serves it, beside the others.
    fn load(&self, model: &Arc<Model>, version: i64, folder: &Path) -> Option<Arc<Loaded>> {
        let fingerprint = versions::fingerprint(folder);
        let before = model.change_statuses(|statuses| statuses.failure(version).cloned());
        if let Some(failure) = &before {
            let may_retry =
                failure.n_tries <= self.settings.n_retries && failure.last.elapsed() >= self.settings.retry_wait;
            if failure.fingerprint == fingerprint && !may_retry {
                return None;
            }
        }
        model.change_statuses(|statuses| statuses.set(version, State::Loading));
        let start = Instant::now();
        let open = AssertUnwindSafe(|| Loaded::open(version, folder, &self.surroundings));
        let opened = catch_unwind(open).unwrap_or_else(|_| Err(Error::internal("the reader of models panicked")));
        match opened {
            Ok(loaded) => {
                let loaded = Arc::new(loaded);
                let mut versions = (*model.served()).clone();
                versions.insert(version, Arc::clone(&loaded));
                model.publish(versions);
                model.change_statuses(|statuses| statuses.set(version, State::Available));
                tracing::info!(
                    "loaded version {version} of model `{}` in {} ms",
                    model.config.name,
                    start.elapsed().as_millis()
                );
                Some(loaded)
            }
            Err(error) => {
                let n_tries = before.filter(|failure| failure.fingerprint == fingerprint).map_or(0, |f| f.n_tries) + 1;
                let failure = Failure { fingerprint, n_tries, last: Instant::now() };
                model.change_statuses(|statuses| statuses.fail(version, &error.to_string(), failure));
                tracing::error!("version {version} of model `{}` cannot be loaded: {error}", model.config.name);
                None
            }
        }
    }

    fn problem(&self, name: &str, message: String, passed: &mut Passed) {
        if passed.problems.get(name) != Some(&message) {
            tracing::warn!("model `{name}`: {message}");
            passed.problems.insert(name.to_string(), message);
        }
    }
}
