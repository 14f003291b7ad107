//! CPU kernels over plain slices.
