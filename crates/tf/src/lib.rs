//! TensorFlow's graph formats: writes our graphs as a [GraphDef](graph_def), and reads and runs
//! [SavedModels](saved_model), [writes](saved_model_writer) them, and [checks](golden) their
//! answers.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod array_json;
pub mod golden;
pub mod graph_def;
pub mod saved_model;
pub mod saved_model_writer;
