//! `bash .ci/fuzz vocabulary`; what it does is in `src/vocabulary.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::vocabulary::check(data));
