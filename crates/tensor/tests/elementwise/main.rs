//! Element-wise programs, reductions and softmax beside their naive forms.

mod math;
mod naive;
mod programs;
mod reduce;
mod softmax;
mod sums;
