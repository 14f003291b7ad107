//! `bash .ci/fuzz config`; what it does is in `src/config.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::config::check(data));
