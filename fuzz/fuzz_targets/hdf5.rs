//! `bash .ci/fuzz hdf5`; what it does is in `src/hdf5.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::hdf5::check(data));
