//! Transformations of rows and batches, one stage per file.
//!
//! These stages add nothing to the position of their input: `batch`, `map`, `filter`, `shard`,
//! `roles`, padding, `sparse_to_dense`.

pub(crate) mod batch;
pub(crate) mod bucket;
pub(crate) mod buckets;
pub(crate) mod cache;
pub(crate) mod concatenate;
pub(crate) mod dense_to_ragged;
pub(crate) mod enumerate;
pub(crate) mod filter;
pub(crate) mod interleave;
pub(crate) mod map;
mod map_feature;
pub(crate) mod mixed;
pub(crate) mod padded_batch;
pub(crate) mod prefetch;
pub(crate) mod repeat;
pub(crate) mod roles;
pub(crate) mod sample;
pub(crate) mod shard;
pub(crate) mod shuffle;
pub(crate) mod skip;
pub(crate) mod sparse_to_dense;
mod split;
pub(crate) mod take;
pub(crate) mod unbatch;
pub(crate) mod window;
pub(crate) mod zip;
