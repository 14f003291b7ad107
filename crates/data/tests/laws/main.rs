//! The laws of pipelines, one file for each topic, in one binary.

mod bad_input;
mod caches;
mod combined;
mod csv;
mod datasets;
mod fingerprints;
mod head;
mod input_fn;
mod libsvm;
#[path = "../../../../tests/estimator/hooks/log_lines.rs"]
mod log_lines;
mod map_feature;
mod plans;
mod resume;
mod schema;
mod semantics;
mod sequences;
mod splits;
mod statistics;
mod tensorflow;
mod warnings;
mod writers;
