//! Tests of heads, one file per topic.

mod bad_input;
mod cases;
mod contract;
mod exports;
mod reporting;
mod rows;
mod tensorflow;
mod training;
