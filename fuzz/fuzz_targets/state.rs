//! `bash .ci/fuzz state`; what it does is in `src/state.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::state::check(data));
