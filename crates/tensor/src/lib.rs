//! Values and what is computed on them.
pub mod cpu;
pub mod dtype;
pub mod element;
pub mod parallel;

pub use dtype::{DType, Element};
pub use element::{Binary, Unary};
