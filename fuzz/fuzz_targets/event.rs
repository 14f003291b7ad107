//! `bash .ci/fuzz event`; what it does is in `src/event.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| estimand_fuzz::event::check(data));
