//! `bash .ci/fuzz files`; what it does is in `src/files.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::files::check(data));
