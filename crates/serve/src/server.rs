//! [`Server`] collects the settings, and [`Running`] is a server that answers.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use estimand_tensor::{Error, Result};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use crate::batch::{Batcher, BatchingParameters};
use crate::core::{Core, Settings};
use crate::http;
use crate::json::UnknownKeys;
use crate::model::{LoadSettings, ModelConfig, Models, Surroundings, VersionStatus, Watcher};
use crate::signals::Signals;
use crate::tls::Tls;

/// A model server that is not started yet.
///
/// ```no_run
/// use estimand_serve::Server;
///
/// Server::new().model("census", "exports/census").run()?;
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a server does nothing before run() or start()"]
pub struct Server {
    models: Vec<ModelConfig>,
    host: IpAddr,
    grpc_port: Option<u16>,
    rest_port: Option<u16>,
    n_threads: Option<usize>,
    drain: Duration,
    batching: Option<BatchingParameters>,
    load: LoadSettings,
    checks_answers: bool,
    tls: Option<Tls>,
    settings: Settings,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            models: Vec::new(),
            host: Ipv4Addr::LOCALHOST.into(),
            grpc_port: Some(8500),
            rest_port: Some(8501),
            n_threads: None,
            drain: Duration::from_secs(30),
            batching: None,
            load: LoadSettings::default(),
            checks_answers: true,
            tls: None,
            settings: Settings::default(),
        }
    }
}

impl Server {
    /// A server without models.
    pub fn new() -> Server {
        Server::default()
    }

    /// Adds a model: the newest version in `base_path`, whose versions are folders with a number as
    /// their name.
    pub fn model(self, name: impl Into<String>, base_path: impl AsRef<Path>) -> Server {
        self.model_config(ModelConfig::new(name, base_path))
    }

    /// Adds a model with other settings than the default.
    pub fn model_config(mut self, model: ModelConfig) -> Server {
        self.models.push(model);
        self
    }

    /// Sets the address to listen at. By default 127.0.0.1: only programs on this machine can ask.
    pub fn host(mut self, host: IpAddr) -> Server {
        self.host = host;
        self
    }

    /// Sets the port for gRPC; `Some(0)` takes any free port. By default 8500. Every port answers
    /// REST and gRPC.
    pub fn grpc_port(mut self, port: impl Into<Option<u16>>) -> Server {
        self.grpc_port = port.into();
        self
    }

    /// Sets the port for REST; `Some(0)` takes any free port. By default 8501. Every port answers
    /// REST and gRPC.
    pub fn rest_port(mut self, port: impl Into<Option<u16>>) -> Server {
        self.rest_port = port.into();
        self
    }

    /// Sets the number of threads that answer. By default the number of processors.
    pub fn threads(mut self, n: usize) -> Server {
        self.n_threads = Some(n.max(1));
        self
    }

    /// Sets how often the folders of models are looked at. By default each second; `None` looks
    /// only at the start.
    pub fn poll_wait(mut self, wait: impl Into<Option<Duration>>) -> Server {
        self.load.poll_wait = wait.into();
        self
    }

    /// Sets how often a version that cannot be loaded is tried again while its files do not change.
    /// By default 5 times, a minute apart. Changed files are tried at once.
    pub fn load_retries(mut self, n: u32, wait: Duration) -> Server {
        (self.load.n_retries, self.load.retry_wait) = (n, wait);
        self
    }

    /// Serves a version even if it does not give the answers that its export carries. By default
    /// such a version is refused, and the one before it stays.
    pub fn accept_changed_answers(mut self) -> Server {
        self.checks_answers = false;
        self
    }

    /// Joins the rows of concurrent requests. By default each request runs alone.
    pub fn batching(mut self, parameters: BatchingParameters) -> Server {
        self.batching = Some(parameters);
        self
    }

    /// Sets the time limit of a REST request. By default 30 s.
    pub fn timeout(mut self, limit: Duration) -> Server {
        self.settings.timeout = limit;
        self
    }

    /// Sets the time in which a client must send the head of a request; an idle connection is
    /// closed after it. By default 30 s.
    pub fn head_timeout(mut self, limit: Duration) -> Server {
        self.settings.head_timeout = limit;
        self
    }

    /// Sets the largest body of a request. By default 64 MiB.
    pub fn max_body_bytes(mut self, n: usize) -> Server {
        self.settings.max_body_bytes = n;
        self.settings.max_total_bytes = self.settings.max_total_bytes.max(n);
        self
    }

    /// Sets the number of bytes that the bodies of all requests may have together; a request beyond
    /// it is refused with 429. By default 512 MiB.
    pub fn max_total_bytes(mut self, n: usize) -> Server {
        self.settings.max_total_bytes = n;
        self
    }

    /// Sets the number of requests that are answered at the same time; a request beyond it is
    /// refused with 429. By default 4,096.
    pub fn max_requests(mut self, n: usize) -> Server {
        self.settings.max_requests = n;
        self
    }

    /// Sets what to do with names in a request that the model does not have. By default as
    /// TensorFlow Serving does.
    pub fn unknown_keys(mut self, policy: UnknownKeys) -> Server {
        self.settings.unknown_keys = policy;
        self
    }

    /// Lets pages of other sites ask, as TensorFlow Serving's `--rest_api_enable_cors_support`. By
    /// default browsers refuse it.
    pub fn cors(mut self) -> Server {
        self.settings.has_cors = true;
        self
    }

    /// Logs a line for each REST request. By default none.
    pub fn access_log(mut self) -> Server {
        self.settings.has_access_log = true;
        self
    }

    /// Sets the path of the page for Prometheus. By default `/monitoring/prometheus/metrics`.
    pub fn metrics_path(mut self, path: impl Into<Option<String>>) -> Server {
        self.settings.metrics_path = path.into();
        self
    }

    /// Encrypts all connections. By default none are.
    pub fn tls(mut self, tls: Tls) -> Server {
        self.tls = Some(tls);
        self
    }

    /// Adds a token: from now on a request needs one, as `authorization: Bearer TOKEN`. By default
    /// requests need none. `/healthz`, `/livez`, the health of gRPC and the empty page never do.
    pub fn token(mut self, token: &str) -> Result<Server> {
        self.settings.tokens.add(token)?;
        Ok(self)
    }

    /// Sets how long a server that stops waits for requests that have begun. By default 30 s.
    pub fn drain(mut self, limit: Duration) -> Server {
        self.drain = limit;
        self
    }

    /// Loads the models and starts to answer. Models that cannot be loaded are tried again later;
    /// their status tells the reason.
    pub fn start(self) -> Result<Running> {
        if self.grpc_port.is_none() && self.rest_port.is_none() {
            return Err(Error::config("the server has no port").help("set a port with rest_port or grpc_port"));
        }
        let acceptor =
            self.tls.as_ref().map(|tls| Ok::<_, Error>(TlsAcceptor::from(Arc::new(tls.config()?)))).transpose()?;
        if !self.settings.tokens.is_empty() && acceptor.is_none() && !self.host.is_loopback() {
            tracing::warn!(
                "tokens are sent over connections that are not encrypted: everybody on the way can read them"
            );
        }
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.enable_all().thread_name("estimand-serve");
        if let Some(n) = self.n_threads {
            runtime.worker_threads(n);
        }
        let runtime =
            runtime.build().map_err(|e| Error::config(format!("cannot start the threads of the server: {e}")))?;
        let bind = |port: Option<u16>| -> Result<Option<TcpListener>> {
            let Some(port) = port else { return Ok(None) };
            let address = SocketAddr::new(self.host, port);
            let _context = runtime.enter();
            listen(address).map(Some).map_err(|e| {
                Error::config(format!("cannot listen at {address}: {e}"))
                    .help("another program may use the port: choose another one")
            })
        };
        let listeners = [bind(self.grpc_port)?, bind(self.rest_port)?];
        let address = |listener: &Option<TcpListener>| listener.as_ref().and_then(|l| l.local_addr().ok());
        let [grpc, rest] = listeners.each_ref().map(address);

        let batcher = self.batching.map(Batcher::start).transpose()?.map(Arc::new);
        let models = Arc::new(Models::new(self.models)?);
        let surroundings = Surroundings { batcher: batcher.clone(), checks_answers: self.checks_answers };
        let watcher = Watcher::start(Arc::clone(&models), self.load, surroundings)?;
        let core = Arc::new(Core::new(models, self.settings));
        let (stop, stopped) = watch::channel(false);
        let (open, closed) = mpsc::channel(1);
        for listener in listeners.into_iter().flatten() {
            runtime.spawn(http::listen(listener, acceptor.clone(), Arc::clone(&core), stopped.clone(), open.clone()));
        }
        let parts = Parts { runtime, closed, watcher, batcher };
        Ok(Running { core, grpc, rest, drain: self.drain, stop, parts: Some(parts) })
    }

    /// Answers requests until the process is interrupted or terminated, then stops gracefully.
    pub fn run(self) -> Result<()> {
        let running = self.start()?;
        running.wait_for_signal()?;
        running.shutdown();
        Ok(())
    }
}

/// Opens a port. Many clients may come at once.
fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    const WAITING: u32 = 4_096;
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(WAITING)
}

/// A server that answers. Dropping it stops it gracefully.
pub struct Running {
    core: Arc<Core>,
    grpc: Option<SocketAddr>,
    rest: Option<SocketAddr>,
    drain: Duration,
    stop: watch::Sender<bool>,
    parts: Option<Parts>,
}

/// Threads, in the order in which they end.
struct Parts {
    runtime: Runtime,
    /// Closed when the last connection ends.
    closed: mpsc::Receiver<std::convert::Infallible>,
    watcher: Watcher,
    batcher: Option<Arc<Batcher>>,
}

impl Running {
    /// The address for gRPC.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.grpc
    }

    /// The address for REST.
    pub fn rest_address(&self) -> Option<SocketAddr> {
        self.rest
    }

    /// What is known of the versions of a model, the newest first; `None` if there is no such
    /// model.
    pub fn versions(&self, model: &str) -> Option<Vec<VersionStatus>> {
        Some(self.core.models.find(model)?.statuses())
    }

    /// Replaces the models. Those that stay go on without a pause, also if their folder changes:
    /// the old versions answer until new ones are loaded. Others are loaded soon.
    pub fn configure(&self, models: Vec<ModelConfig>) -> Result<()> {
        self.core.models.configure(models)
    }

    /// Whether each model has a version that answers.
    pub fn is_ready(&self) -> bool {
        self.core.is_ready()
    }

    /// Catches the signals that end a process from now on, so that [`Signals::wait`] sees each.
    pub fn signals(&self) -> Result<Signals<'_>> {
        let parts = self.parts.as_ref().ok_or_else(|| Error::internal("a server that has ended waits for signals"))?;
        Signals::catch(&parts.runtime)
    }

    /// Returns when the process is interrupted (Ctrl-C) or terminated.
    pub fn wait_for_signal(&self) -> Result<()> {
        self.signals()?.wait()
    }

    /// Stops: no new connection is accepted, requests that have begun are answered.
    pub fn shutdown(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(mut parts) = self.parts.take() else { return };
        self.core.stop();
        // Nobody may be listening.
        let _ = self.stop.send(true);
        let drained =
            parts.runtime.block_on(async { tokio::time::timeout(self.drain, parts.closed.recv()).await.is_ok() });
        if !drained {
            tracing::warn!("some requests were not answered within {} ms", self.drain.as_millis());
        }
        parts.runtime.shutdown_timeout(Duration::from_secs(1));
        drop(parts.watcher);
        drop(parts.batcher);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
