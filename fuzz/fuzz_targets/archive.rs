//! `bash .ci/fuzz archive`; what it does is in `src/archive.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::archive::check(data));
