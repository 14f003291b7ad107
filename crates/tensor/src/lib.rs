//! Values and computations on them: arrays, shapes, errors, random numbers, the thread pool and the
//! CPU kernels.
//!
//! All other crates of Estimand exchange these types. Nothing here depends on a graph; the only
//! files read are vocabularies.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod arithmetic;
mod array;
mod batch;
mod buffer;
mod collective;
pub mod cpu;
mod dtype;
mod element;
mod error;
mod limits;
mod mode;
pub mod parallel;
mod ragged;
pub mod random;
mod reduction;
mod sha256;
mod shape;
mod spec;
mod strings;
pub mod vocabulary;
mod warning;

pub use arithmetic::{Computed, IntoArray, Operand};
pub use array::{Array, element_count};
pub use batch::{Batch, BatchSpec, Feature, FeatureSpec};
pub use collective::{Collective, OneProcess};
pub use dtype::{DType, Element};
pub use element::{Binary, Unary};
pub use error::{Error, ErrorKind, Result, nearest_name};
pub use limits::Limits;
pub use mode::Mode;
pub use ragged::Ragged;
pub use reduction::Reduction;
pub use sha256::Sha256;
pub use shape::{Dim, Dims, MAX_RANK, Shape, Symbol};
pub use spec::TensorSpec;
pub use strings::{StringIter, StringSlice, Strings};
#[doc(hidden)]
pub use tracing;
#[doc(hidden)]
pub use warning::warn_without_subscriber;
