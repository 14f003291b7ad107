//! `bash .ci/fuzz example`; what it does is in `src/example.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::example::check(data));
