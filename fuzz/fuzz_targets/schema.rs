//! `bash .ci/fuzz schema`; what it does is in `src/schema.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::schema::check(data));
