//! CPU kernels over plain slices.
pub(crate) mod add;
pub mod conv;
pub mod elementwise;
pub mod gather;
pub mod index;
pub mod isa;
pub mod layout;
pub mod math;
pub mod matmul;
pub(crate) mod matvec;
pub(crate) mod microkernel;
pub mod number;
pub(crate) mod pack;
pub mod packed;
pub mod prefetch;
pub mod resize;
pub mod scan;
pub mod scatter;
pub mod segment;
pub(crate) mod simd;
pub mod sort;
pub(crate) mod split;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod twins;
pub mod window;
