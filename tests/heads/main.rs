//! Heads, one file for each topic, in one binary.

mod bad_input;
mod cases;
mod contract;
mod models;
mod reporting;
mod training;
