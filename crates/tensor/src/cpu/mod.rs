//! CPU kernels over plain slices.
pub mod elementwise;
pub mod gather;
pub mod index;
pub mod isa;
pub mod layout;
pub mod math;
pub mod number;
pub(crate) mod prefetch;
pub mod scatter;
pub(crate) mod split;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod twins;
