//! The tests of layers and losses, one file for each topic, in one binary.

mod contract;
mod errors;
mod fixture;
mod layers;
mod programs;
mod scopes;
mod tensorflow;
