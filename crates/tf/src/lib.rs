//! TensorFlow's graphs: ours written as a [GraphDef](graph_def), and its [SavedModels](saved_model)
//! read and run.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod graph_def;
pub mod saved_model;
