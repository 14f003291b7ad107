//! The symbolic layer: graphs, shapes, gradients, variables, optimizers and the programs that
//! executors run.
//!
//! A model passes through these in order: [`Graph`] and [`Tensor`] record nodes (`op`),
//! [`gradients`] adds the backward nodes, an [`Optimizer`] adds the updates, and a [`Program`]
//! lists the steps of a run. An [`Executor`] compiles the program. The session in the crate
//! `estimand-engine` keeps the variables between runs.
//!
//! ```
//! use estimand_engine::Session;
//! use estimand_graph::Graph;
//! use estimand_tensor::{Array, DType, Dim};
//!
//! let g = Graph::new();
//! let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
//! let y = (&x * 2.0 + 1.0).sum();
//! let mut session = Session::new(&g)?;
//! let total = session.run(&[&y], &[(&x, Array::from([1.0f32, 2.0]))])?;
//! assert_eq!(total[0].item::<f32>()?, 8.0);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod body;
mod build_state;
pub mod cost;
pub mod custom;
#[doc(hidden)]
pub mod draw;
pub mod executor;
mod gradient;
mod graph;
#[doc(hidden)]
pub mod host;
mod initializer;
mod line;
#[doc(hidden)]
pub mod looks;
mod lookup;
pub mod meaning;
pub mod op;
mod ops;
mod optimizer;
#[doc(hidden)]
pub mod pass;
mod program;
mod ragged;
#[doc(hidden)]
pub mod sizes;
#[doc(hidden)]
pub mod slots;
#[doc(hidden)]
pub mod sources;
mod symbolic;
mod symbols;
mod table;
mod tensor;
pub mod trace;
mod value;
mod variables;

pub use body::{Body, Node};
pub use cost::{Cost, Rates};
pub use executor::{Executable, Executor, GradientMut, OnGradient, RunArgs, State};
pub use gradient::{Gradient, gradients};
pub use graph::{Graph, Scope};
pub use host::HostOp;
pub use host::ragged::IdSource;
pub use initializer::{Fan, Initializer, Spread};
pub use line::Line;
pub use lookup::Lookup;
pub use op::{Combiner, Op, Padding, Reduction};
pub use ops::{Axes, Encoding, Mirror, Parsed, RecurrentInputs, RecurrentOutputs, Running, StepFunction, Transposed};
pub use optimizer::{Apply, ApplyGradients, Clip, Minimize, Optimizer, OptimizerId};
pub use program::{FusedKernel, Kernel, Program, Step};
pub use ragged::{CrossKey, RaggedTensor};
pub use symbolic::{SymbolicScalars, SymbolicUpdate, Updated, symbolic_projection};
pub use symbols::{SymbolDef, Symbols};
pub use table::LookupTable;
pub use tensor::{IntoTensor, Tensor};
pub use trace::{Phase, TimedStep, Trace};
pub use value::{NodeId, Value};
pub use variables::{Role, VarId, VarSpec, Variables};
