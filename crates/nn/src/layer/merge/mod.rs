//! Layers without weights that join several tensors, where branches of a model meet.

mod concat;
mod dot;
mod elementwise;

use estimand_graph::Tensor;

pub use concat::Concat;
pub use dot::Dot;
pub use elementwise::{Add, Average, Maximum, Minimum, Multiply, Subtract};

/// Describes the inputs for error messages.
fn described(inputs: &[Tensor]) -> String {
    inputs.iter().map(Tensor::describe).collect::<Vec<_>>().join(", ")
}
