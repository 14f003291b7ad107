//! `bash .ci/fuzz saved_model`; what it does is in `src/saved_model.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::saved_model::check(data));
