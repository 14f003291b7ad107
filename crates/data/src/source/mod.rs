//! Where rows come from.

pub(crate) mod memory;
pub(crate) mod tfrecord;
