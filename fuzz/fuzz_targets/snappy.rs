//! `bash .ci/fuzz snappy`; what it does is in `src/snappy.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::snappy::check(data));
