//! `bash .ci/fuzz npy`; what it does is in `src/npy.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::npy::check(data));
