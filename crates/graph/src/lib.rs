//! Symbols to programs: graphs, gradients, variables, executors and checkpoints.
//!
//! In the order a model flows through it: [`Graph`] and [`Tensor`] record nodes (`op`, `infer`), [`gradients`] adds the backward
//! nodes, an [`Optimizer`] adds the updates, [`Program`] prunes and fuses what a run needs, an [`Executor`] runs it, and a
//! [`Session`] holds the state between runs.
//!
//! ```
//! use estimand_graph::{Graph, Session};
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

pub mod checkpoint;
mod compiled;
mod cost;
mod cpu;
pub mod custom;
mod draw;
mod executor;
mod gradient;
mod graph;
pub mod graph_def;
mod host;
mod initializer;
mod looks;
mod lookup;
pub mod meaning;
pub mod op;
mod ops;
mod optimizer;
mod pass;
mod program;
mod purpose;
mod ragged;
mod reference;
pub mod saved_model;
mod session;
mod sizes;
mod slots;
mod sources;
mod symbols;
mod table;
mod tensor;
#[doc(hidden)]
pub mod testing;
mod trace;
mod variables;

pub use compiled::Compiled;
pub use cost::{Cost, Rates};
pub use cpu::Cpu;
pub use executor::{Executable, Executor, GradientMut, OnGradient, RunArgs, State};
pub use gradient::{Gradient, gradients};
pub use graph::{Body, Graph, Node, NodeId, Scope, Value};
pub use host::{HostOp, HostProgram};
pub use initializer::Init;
pub use lookup::Lookup;
pub use op::{Combiner, Op, Padding, Reduction};
pub use ops::{Parsed, RecurrentInputs, RecurrentOutputs, StepFunction};
pub use optimizer::{Apply, Clip, Optimizer, OptimizerId};
pub use program::{Kernel, Member, Program, Step};
pub use ragged::{CrossKey, RaggedTensor};
pub use reference::Reference;
pub use session::Session;
pub use symbols::{SymbolDef, Symbols};
pub use table::LookupTable;
pub use tensor::{IntoTensor, Tensor};
pub use trace::{Part, TimedStep, Trace};
pub use variables::{Role, VarId, VarSpec, Variables};
