//! `bash .ci/fuzz serve_rest`; what it does is in `crates/serve/src/fuzzing.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_serve::fuzzing::rest(data));
