//! `Factor`: a range from which a random layer draws.

use estimand_graph::Tensor;
use estimand_tensor::Result;
use estimand_tensor::{Dim, Shape};

use crate::config::{Field, Json, Node};

/// One number or two. One number `f` means the range from `-f` to `f` for movements, and from
/// `1 - f` to `1 + f` for the contrast.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Factor {
    pub(super) lower: f64,
    pub(super) upper: f64,
    /// Whether the user gave one number.
    is_one: bool,
}

impl From<f64> for Factor {
    fn from(factor: f64) -> Factor {
        Factor { lower: -factor, upper: factor, is_one: true }
    }
}

impl From<(f64, f64)> for Factor {
    fn from((lower, upper): (f64, f64)) -> Factor {
        Factor { lower, upper, is_one: false }
    }
}

impl Factor {
    /// Whether the range rises and both ends are in bounds.
    pub(super) fn fits(self, low: f64, high: f64) -> bool {
        self.lower <= self.upper && self.lower >= low && self.upper <= high
    }

    /// The two numbers as the user gave them; one stands for both.
    pub(super) fn given(self) -> (f64, f64) {
        if self.is_one { (self.upper, self.upper) } else { (self.lower, self.upper) }
    }

    /// One number of the range for each row, `[batch, 1, ..]` with `rank` axes.
    #[track_caller]
    pub(super) fn draw(self, x: &Tensor, rank: usize) -> Tensor {
        let ones = std::iter::repeat_n(Dim::Known(1), rank - 1);
        let shape: Shape = x.shape().dims().iter().take(1).copied().chain(ones).collect();
        between(&x.graph().random_uniform(shape), self.lower, self.upper)
    }
}

/// Numbers from [0, 1) moved to a range.
#[track_caller]
pub(super) fn between(u: &Tensor, lower: f64, upper: f64) -> Tensor {
    u * (upper - lower) + lower
}

/// One number as Keras writes it, or a list of two.
impl Field for Factor {
    fn write(&self) -> Result<Json> {
        if self.is_one { self.upper.write() } else { vec![self.lower, self.upper].write() }
    }

    fn read(node: &Node<'_>) -> Result<Factor> {
        if !node.value().is_array() {
            return f64::read(node).map(Factor::from);
        }
        match Vec::<f64>::read(node)?[..] {
            [lower, upper] => Ok((lower, upper).into()),
            _ => Err(node.expected("a number, or two")),
        }
    }
}
