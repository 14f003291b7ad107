//! The methods of [`Tensor`](crate::Tensor) that models are written with, by family.
//!
//! Each method is one op, or a composition that the fusing pass makes as fast as one op.

mod example;
mod image;
mod index;
mod math;
mod nn;
mod options;
mod product;
mod random;
mod recurrent;
mod reduce;
mod shape;
mod text;

pub use example::Parsed;
pub use options::{Axes, Encoding, Mirror, Running, Transposed};
pub(crate) use recurrent::next_states;
pub use recurrent::{RecurrentInputs, RecurrentOutputs, StepFunction};
