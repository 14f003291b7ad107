//! The sources of rows, one per file.

pub(crate) mod csv;
pub(crate) mod generator;
pub(crate) mod loaded;
pub(crate) mod memory;
mod records;
mod sequence;
mod text;
mod tfrecord;
