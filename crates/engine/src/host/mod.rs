//! The host's part of a program, compiled: a pure function of what is fed, that any number of
//! threads may call.
//!
//! `schedule` groups the nodes: host ops run their own kernels, ops of the step that the host needs
//! too (a cast, a comparison) run as [`NumericSteps`](numeric_steps::NumericSteps) on the kernels
//! of `cpu`, and those that only move elements work on strings as well (`rearrange`).

mod host_section;
mod numeric_steps;
mod program;
mod rearrange;
mod schedule;

pub use program::HostProgram;
