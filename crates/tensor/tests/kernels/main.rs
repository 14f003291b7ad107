//! The product kernels against naive loops, and the laws their bits obey.

mod conv;
mod matmul;
mod numbers;
