//! Symbols to programs: graphs, gradients, variables, executors and checkpoints.
//!
//! In the order a model flows through it: [`Graph`] and [`Tensor`] record nodes (`op`, `infer`), [`gradients`] adds the backward
//! nodes, an [`Optimizer`] adds the updates, [`Program`] prunes and fuses what a run needs, an [`Executor`] runs it, and a
//! [`Session`] holds the state between runs.

pub mod checkpoint;
pub mod custom;
mod draw;
mod executor;
mod gradient;
mod graph;
mod infer;
mod initializer;
pub mod op;
mod ops;
mod optimizer;
mod pass;
mod program;
mod reference;
mod sizes;
mod symbols;
mod tensor;
mod variables;

pub use executor::{Entry, Executable, Executor, GradientMut, OnGradient, RunArgs, State};
pub use gradient::{Gradient, gradients};
pub use graph::{Body, Graph, Node, NodeId, Scope, Value};
pub use initializer::Init;
pub use op::{Op, Padding, Reduction};
pub use optimizer::{Apply, Clip, Optimizer, OptimizerId};
pub use program::{Kernel, Program, Step};
pub use reference::Reference;
pub use symbols::{SymbolDef, Symbols};
pub use tensor::{IntoTensor, Tensor};
pub use variables::{Role, VarId, VarSpec, Variables};
