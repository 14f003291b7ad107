//! `bash .ci/fuzz packed`; what it does is in `src/packed.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::packed::check(data));
