//! The state that all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::json::UnknownKeys;
use crate::model::{Model, Models, VersionStatus};
use crate::status::{Answer, Status};
use crate::tokens::Tokens;

/// Limits and switches of a server.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The time limit of a REST request, from its head to its answer.
    pub(crate) timeout: Duration,
    /// The time in which a client must send the head of a request.
    pub(crate) head_timeout: Duration,
    /// The largest body of a request.
    pub(crate) max_body_bytes: usize,
    /// The number of bytes that the bodies of all requests may have together.
    pub(crate) max_total_bytes: usize,
    /// The number of requests that are answered at the same time.
    pub(crate) max_requests: usize,
    /// The largest head of a request.
    pub(crate) max_head_bytes: usize,
    /// What to do with names that a model does not have.
    pub(crate) unknown_keys: UnknownKeys,
    pub(crate) has_cors: bool,
    pub(crate) has_access_log: bool,
    /// The path of the page for Prometheus.
    pub(crate) metrics_path: Option<String>,
    /// Whom requests may come from; empty for all.
    pub(crate) tokens: Tokens,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            timeout: Duration::from_secs(30),
            head_timeout: Duration::from_secs(30),
            max_body_bytes: 64 << 20,
            max_total_bytes: 512 << 20,
            max_requests: 4_096,
            max_head_bytes: 64 << 10,
            unknown_keys: UnknownKeys::default(),
            has_cors: false,
            has_access_log: false,
            metrics_path: Some("/monitoring/prometheus/metrics".into()),
            tokens: Tokens::default(),
        }
    }
}

/// The shared state.
pub(crate) struct Core {
    pub(crate) models: Arc<Models>,
    pub(crate) settings: Settings,
    n_requests: AtomicUsize,
    n_bytes: AtomicUsize,
    is_stopping: AtomicBool,
}

/// A part of a limit that a request holds until it ends.
pub(crate) struct Share<'a> {
    counter: &'a AtomicUsize,
    n: usize,
}

impl Share<'_> {
    /// Takes more of the memory for bodies.
    pub(crate) fn grow(&mut self, n: usize, core: &Core) -> Answer<()> {
        let mut more = core.reserve(n)?;
        self.n += std::mem::take(&mut more.n);
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.n, Ordering::Relaxed);
    }
}

impl Core {
    pub(crate) fn new(models: Arc<Models>, settings: Settings) -> Core {
        Core {
            models,
            settings,
            n_requests: AtomicUsize::new(0),
            n_bytes: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Admits a request, unless too many are being answered.
    pub(crate) fn admit(&self) -> Answer<Share<'_>> {
        let share = Share { counter: &self.n_requests, n: 1 };
        let limit = self.settings.max_requests;
        if self.n_requests.fetch_add(1, Ordering::Relaxed) >= limit {
            return Err(Status::full(format!(
                "{limit} requests are being answered, which is the limit; try again later"
            )));
        }
        Ok(share)
    }

    /// Reserves memory for a body.
    pub(crate) fn reserve(&self, n: usize) -> Answer<Share<'_>> {
        let share = Share { counter: &self.n_bytes, n };
        let limit = self.settings.max_total_bytes;
        if self.n_bytes.fetch_add(n, Ordering::Relaxed).saturating_add(n) > limit {
            return Err(Status::full(format!(
                "the bodies of all requests together would have more than {limit} bytes; try again later"
            )));
        }
        Ok(share)
    }

    /// Whether new requests are welcome: all models are loaded, and the server does not stop.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_stopping() && self.models.are_ready()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
    }
}

/// The statuses of a model: of all versions, or of one.
pub(crate) fn statuses(model: &Model, version: Option<i64>) -> Answer<Vec<VersionStatus>> {
    let (name, mut all) = (&model.config.name, model.statuses());
    if let Some(version) = version {
        all.retain(|one| one.version == version);
        if all.is_empty() {
            return Err(Status::not_found(format!("Could not find version {version} of model {name}")));
        }
    }
    if all.is_empty() {
        return Err(Status::not_found(format!("Could not find any versions of model {name}")));
    }
    Ok(all)
}
