//! `bash .ci/fuzz bundle`; what it does is in `src/bundle.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::bundle::check(data));
