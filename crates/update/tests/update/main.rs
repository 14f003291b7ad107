//! Update rules: what holds for all of them, and their numbers.

mod contract;
mod spec_cases;
mod tensorflow;
