//! The tests of layers, losses and metrics, one file for each topic, in one binary.

mod column_cases;
mod column_errors;
mod column_oracle;
mod column_programs;
mod contract;
mod errors;
mod fixture;
mod layers;
mod metrics;
mod programs;
mod scopes;
mod tensorflow;
