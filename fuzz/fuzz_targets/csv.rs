//! `bash .ci/fuzz csv`; what it does is in `src/csv.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::csv::check(data));
