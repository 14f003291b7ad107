//! `bash .ci/fuzz position`; what it does is in `src/position.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::position::check(data));
