//! A model server for the clients of TensorFlow Serving and KServe.
//!
//! It loads exports of Estimand and of TensorFlow's Estimator, answers REST and gRPC requests, and
//! swaps versions without a failed request.
//!
//! ```no_run
//! use estimand_serve::Server;
//!
//! // curl -d '{"instances": [{"age": 39.0, "job": "nurse"}]}' localhost:8501/v1/models/census:predict
//! Server::new().model("census", "exports/census").run()?;
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! A request passes through `http/` (connections, limits), `rest/`, `kserve/` or `grpc/` (paths and
//! messages), `json/` (values become arrays), `model/` (the version that answers), `infer.rs` and
//! `batch/` (the run), `drift/` (what the values say) and back. `server.rs` puts the parts
//! together.

#[cfg(feature = "mimalloc")]
mod allocator;
mod batch;
mod body;
mod core;
mod drift;
mod explain;
#[doc(hidden)]
pub mod fuzzing;
mod grpc;
mod http;
mod infer;
mod json;
mod kserve;
mod metrics;
mod model;
mod page;
mod rest;
mod server;
mod signals;
mod status;
mod tls;
mod tokens;

/// The programs of the book's chapter.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/serve.md")]
mod chapter {}

#[cfg(feature = "mimalloc")]
pub use allocator::Allocator;
pub use batch::BatchingParameters;
pub use json::UnknownKeys;
pub use model::{ModelConfig, State, VersionPolicy, VersionStatus};
pub use server::{Running, Server};
pub use signals::Signals;
pub use status::{Code, Status};
pub use tls::Tls;
