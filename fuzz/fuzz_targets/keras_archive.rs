//! `bash .ci/fuzz keras_archive`; what it does is in `src/keras_archive.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::keras_archive::check(data));
