//! `bash .ci/fuzz image`; what it does is in `src/image.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::image::check(data));
