//! The bodies of the fuzz targets: plain functions that take bytes and must not panic.
//!
//! The ordinary tests call them too, with mutations of TensorFlow's and numpy's files
//! (`crates/*/tests/mutation.rs`), so that they also run without libFuzzer.

pub mod archive;
pub mod bundle;
pub mod config;
pub mod csv;
pub mod event;
pub mod example;
pub mod files;
pub mod graph_def;
pub mod hdf5;
pub mod idx;
pub mod image;
pub mod keras_archive;
pub mod keras_config;
pub mod mutate;
pub mod npy;
pub mod packed;
pub mod position;
pub mod saved_model;
pub mod schema;
pub mod snappy;
pub mod state;
pub mod vocabulary;
