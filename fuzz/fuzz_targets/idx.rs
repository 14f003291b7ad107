//! `bash .ci/fuzz idx`; what it does is in `src/idx.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::idx::check(data));
