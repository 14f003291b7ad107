//! `bash .ci/fuzz graph_def`; what it does is in `src/graph_def.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::graph_def::check(data));
