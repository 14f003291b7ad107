//! `bash .ci/fuzz keras_config`; what it does is in `src/keras_config.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::keras_config::check(data));
