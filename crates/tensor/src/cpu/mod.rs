//! CPU kernels over plain slices.
pub mod elementwise;
pub mod isa;
pub mod math;
pub(crate) mod twins;
