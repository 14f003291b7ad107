//! The product kernels against naive loops, and the laws their bits obey.

mod conv;
mod depthwise;
mod matmul;
mod numbers;
mod pool2d;
mod windows;
