//! The compiled host part of a program: a pure function of the feeds. Any number of threads may
//! call it.
//!
//! `schedule` groups the nodes. Host ops run their own kernels. Numeric ops that the host needs too
//! (a cast, a comparison) run as [`NumericSteps`](numeric_steps::NumericSteps) on the kernels of
//! `cpu`. Ops that only move elements also work on strings (`rearrange`).

mod host_section;
mod numeric_steps;
mod program;
mod rearrange;
mod schedule;

pub use program::HostProgram;
