//! The context that gradient rules are written with.

use std::panic::Location;

use estimand_tensor::{Binary, Dim, Error, Result, Unary};

use super::Gradient;
use crate::graph::Graph;
use crate::op::{AxisSet, Op, Reduction, SumTo};
use crate::tensor::Tensor;

/// A node during backpropagation: everything that its gradient rule may use.
pub struct Backprop<'a> {
    pub graph: &'a Graph,
    /// The source line that requested the gradient.
    pub site: &'static Location<'static>,
    /// The node's inputs.
    pub x: Vec<Tensor>,
    /// The node's results.
    pub y: Vec<Tensor>,
    /// The gradients of the results; `None` for a result without one.
    pub upstream: Vec<Option<Tensor>>,
    /// Which inputs need a gradient.
    pub wanted: Vec<bool>,
}

/// A gradient for each input.
pub type Found = Vec<Gradient>;

/// Dense gradients of all inputs.
pub(crate) fn dense(gradients: impl IntoIterator<Item = Tensor>) -> Result<Found> {
    Ok(gradients.into_iter().map(Gradient::Dense).collect())
}

impl Backprop<'_> {
    /// The gradient of output `i`; zeros if it has none.
    pub(crate) fn dy(&self, i: usize) -> Tensor {
        self.upstream[i].clone().unwrap_or_else(|| self.y[i].zeros_like())
    }

    /// Adds a node.
    pub(crate) fn node(&self, op: impl Into<Op>, inputs: &[&Tensor]) -> Tensor {
        self.graph.node(op, inputs, self.site)
    }

    pub(crate) fn binary(&self, op: Binary, a: &Tensor, b: &Tensor) -> Tensor {
        a.binary(op, b, self.site)
    }

    pub(crate) fn unary(&self, op: Unary, a: &Tensor) -> Tensor {
        a.unary(op, self.site)
    }

    /// A constant of a tensor's dtype.
    pub(crate) fn number(&self, like: &Tensor, value: f64) -> Tensor {
        like.number(value, self.site)
    }

    /// Returns no gradient for any input.
    pub(crate) fn nothing(&self) -> Result<Found> {
        Ok(self.x.iter().map(|_| Gradient::None).collect())
    }

    /// Sums a gradient over the axes along which `input` was broadcast.
    pub(crate) fn unbroadcast(&self, g: &Tensor, input: &Tensor) -> Tensor {
        let (wide, narrow) = (g.shape(), input.shape());
        if wide == narrow {
            return g.clone();
        }
        let missing = wide.rank() - narrow.rank();
        let mut axes = AxisSet::default();
        for (axis, &d) in wide.dims().iter().enumerate() {
            match axis.checked_sub(missing).map(|i| narrow.dims()[i]) {
                None => axes.0 |= 1 << axis,
                Some(n) if n == d => {}
                Some(Dim::Known(1)) => axes.0 |= 1 << axis,
                // Equal or 1: known only at run time.
                Some(_) => return self.node(SumTo, &[g, input]),
            }
        }
        g.reduce(Reduction::Sum, axes, false, self.site).reshape_to(narrow.clone(), self.site)
    }

    /// Both gradients of a broadcast binary op; the unneeded one is not built.
    pub(crate) fn broadcast_pair(&self, gx: impl FnOnce() -> Tensor, gy: impl FnOnce() -> Tensor) -> Result<Found> {
        self.pair(|| self.unbroadcast(&gx(), &self.x[0]), || self.unbroadcast(&gy(), &self.x[1]))
    }

    /// The gradients of two inputs; the unneeded one is not built.
    pub(crate) fn pair(&self, first: impl FnOnce() -> Tensor, second: impl FnOnce() -> Tensor) -> Result<Found> {
        Ok(vec![
            if self.wanted[0] { Gradient::Dense(first()) } else { Gradient::None },
            if self.wanted[1] { Gradient::Dense(second()) } else { Gradient::None },
        ])
    }
}

/// The error for an op without a gradient.
pub(crate) fn not_differentiable(what: &str) -> Error {
    Error::unsupported(format!("{what} is not differentiable"))
        .help("use stop_gradient if no gradient should flow through it")
}
