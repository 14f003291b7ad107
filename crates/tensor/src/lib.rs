//! Values and what is computed on them.
pub mod cpu;
pub mod parallel;
