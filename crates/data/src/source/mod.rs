//! Where rows come from.

pub(crate) mod memory;
mod tfrecord;
