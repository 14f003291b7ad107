//! Input pipelines: lazy plans that turn files and arrays into batches and can resume at any row.
//!
//! A [`Dataset`] is a plan. Building one reads nothing; [`Dataset::explain`] prints it; iterating
//! yields batches. Every item carries the [`Position`] after it. A stream opened at a position
//! resumes with the very next row, even after shuffling, repetition and threads.
//!
//! ```
//! use estimand_data::Dataset;
//! use estimand_tensor::{Array, Result};
//!
//! let data = Dataset::from_arrays([("x", Array::from([1.0f32, 2.0, 3.0])), ("y", Array::from([0i64, 1, 1]))])
//!     .label("y")
//!     .shuffle(1_000, 7)
//!     .repeat(2)
//!     .batch(2);
//!
//! let mut batches = data.iter();
//! let first = batches.next().transpose()?;
//! let place = batches.position().to_bytes();
//! let rest: Vec<_> = batches.collect::<Result<_>>()?;
//!
//! let continued = data.iter_from(&Default::default(), &estimand_data::Position::from_bytes(&place)?);
//! assert_eq!(continued.collect::<Result<Vec<_>>>()?, rest);
//! # assert_eq!(first.unwrap().n_rows() + rest.iter().map(|b| b.n_rows()).sum::<usize>(), 6);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```
//!
//! The modules, from the bottom up: `position.rs` is a place in a stream. `stage.rs` holds the
//! interfaces. `rows.rs` cuts and joins rows. `source/` and `transform/` hold one stage per file.
//! `dataset.rs` is the interface that users call. `format/` reads files of whole arrays, `image/`
//! reads images, and `datasets/` loads data sets by name. `writer/` writes files. `statistics/`
//! summarises columns, and `schema/` checks them.

#![warn(clippy::return_self_not_must_use)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod agreement;
mod dataset;
pub mod datasets;
pub mod fetch;
mod files;
mod fingerprint;
mod format;
mod head;
pub mod image;
pub mod input_fn;
mod ordered;
mod position;
mod rows;
pub mod schema;
mod source;
mod stage;
pub mod statistics;
mod told;
mod transform;
pub mod writer;

pub use dataset::{Batches, Dataset};
pub use estimand_tensor::Limits;
pub use estimand_wire::example::ListSpec;
pub use files::{Compression, Files, OnError};
pub use format::{cifar10, idx, npy, npz, zip};
pub use head::FirstRows;
pub use ordered::Ordered;
pub use position::Position;
pub use rows::{slice as slice_rows, specs_of};
pub use schema::Schema;
pub use source::csr::Csr;
pub use source::csv::{Csv, InferredColumn};
pub use source::libsvm::{IndexBase, LibSvm};
pub use source::placeholders::Placeholders;
pub use stage::{Indexed, InputContext, Stage, Stream, StreamItem, Unit};
pub use statistics::Statistics;
pub use transform::{buckets::Buckets, padded_batch::Pad, prefetch::Place};
