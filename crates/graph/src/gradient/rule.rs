//! The table: the gradient of every op, and what the rules are written with.

use std::panic::Location;

use estimand_tensor::{Binary, Dim, Error, Result, Shape, Unary};

use super::Gradient;
use crate::graph::Graph;
use crate::op::{Axes, AxisSet, Op, Reduction};
use crate::tensor::Tensor;

/// Everything a rule may use.
pub(super) struct Rule<'a> {
    pub(super) graph: &'a Graph,
    pub(super) site: &'static Location<'static>,
    pub(super) x: Vec<Tensor>,
    pub(super) y: Vec<Tensor>,
    pub(super) upstream: Vec<Option<Tensor>>,
    /// Which inputs need a gradient.
    pub(super) wanted: Vec<bool>,
}

pub(super) type Found = Vec<Gradient>;

pub(super) fn dense(gradients: impl IntoIterator<Item = Tensor>) -> Result<Found> {
    Ok(gradients.into_iter().map(Gradient::Dense).collect())
}

impl Rule<'_> {
    /// The gradient of output `i`, zeros if nothing arrived there.
    pub(super) fn dy(&self, i: usize) -> Tensor {
        self.upstream[i].clone().unwrap_or_else(|| self.y[i].zeros_like())
    }

    pub(super) fn node(&self, op: Op, inputs: &[&Tensor]) -> Tensor {
        self.graph.node(op, inputs, self.site)
    }

    pub(super) fn b(&self, op: Binary, a: &Tensor, b: &Tensor) -> Tensor {
        a.binary(op, b, self.site)
    }

    pub(super) fn u(&self, op: Unary, a: &Tensor) -> Tensor {
        a.unary(op, self.site)
    }

    pub(super) fn c(&self, like: &Tensor, value: f64) -> Tensor {
        like.number(value, self.site)
    }

    pub(super) fn nothing(&self) -> Result<Found> {
        Ok(self.x.iter().map(|_| Gradient::None).collect())
    }

    /// Sums a gradient over the axes along which `input` was broadcast.
    pub(super) fn unbroadcast(&self, g: &Tensor, input: &Tensor) -> Tensor {
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
                // Equal or 1: only the run can tell.
                Some(_) => return self.node(Op::SumTo, &[g, input]),
            }
        }
        g.reduce(Reduction::Sum, axes, false, self.site).reshape_to(narrow.clone(), self.site)
    }

    /// Both gradients of a broadcast binary op; the unneeded one is not built.
    pub(super) fn pair(&self, gx: impl FnOnce() -> Tensor, gy: impl FnOnce() -> Tensor) -> Result<Found> {
        self.two(|| self.unbroadcast(&gx(), &self.x[0]), || self.unbroadcast(&gy(), &self.x[1]))
    }

    pub(super) fn two(&self, first: impl FnOnce() -> Tensor, second: impl FnOnce() -> Tensor) -> Result<Found> {
        Ok(vec![
            if self.wanted[0] { Gradient::Dense(first()) } else { Gradient::None },
            if self.wanted[1] { Gradient::Dense(second()) } else { Gradient::None },
        ])
    }

    pub(super) fn apply(&self, op: &Op) -> Result<Found> {
        use Binary::*;
        let x = &self.x;
        match op {
            Op::Unary(u) => self.unary(*u),
            Op::Binary(b) => self.binary(*b),
            Op::Select => {
                let (dy, zero) = (self.dy(0), self.c(&self.dy(0), 0.0));
                let then = self.node(Op::Select, &[&x[0], &dy, &zero]);
                let other = self.node(Op::Select, &[&x[0], &zero, &dy]);
                Ok(vec![
                    Gradient::None,
                    Gradient::Dense(self.unbroadcast(&then, &x[1])),
                    Gradient::Dense(self.unbroadcast(&other, &x[2])),
                ])
            }
            Op::Cast(to) if to.is_float() && x[0].dtype().is_float() => {
                dense([self.node(Op::Cast(x[0].dtype()), &[&self.dy(0)])])
            }
            Op::Cast(_) | Op::StopGradient | Op::ArgMax { .. } | Op::OneHot { .. } | Op::Host(_) => self.nothing(),
            Op::Print(_) => dense([self.dy(0)]),

            Op::Reshape(_) => dense([self.dy(0).reshape_to(x[0].shape().clone(), self.site)]),
            Op::BroadcastTo(_) => dense([self.unbroadcast(&self.dy(0), &x[0])]),
            Op::SumTo => {
                let g = self.dy(0).broadcast_shape(x[0].shape().clone(), self.site);
                Ok(vec![Gradient::Dense(g), Gradient::None])
            }
            Op::Transpose(perm) => dense([self.node(Op::Transpose(inverse(perm)), &[&self.dy(0)])]),
            Op::Concat(axis) => self.concat(*axis),
            Op::Slice { begin, size } => {
                let before: Shape = begin.iter().map(|&b| Dim::Known(b)).collect();
                let after = x[0].shape().dims().iter().zip(begin).zip(size.dims()).map(|((&d, &b), &n)| {
                    self.graph.symbols_mut(|s| {
                        let rest = s.sub(d, n);
                        s.sub(rest, Dim::Known(b))
                    })
                });
                let after: Shape = after.collect();
                let padded = self.node(Op::Pad { before, after }, &[&self.dy(0), &self.c(&x[0], 0.0)]);
                // Padding back may have made a formula where the shape is known to be x's.
                dense([padded.reshape_to(x[0].shape().clone(), self.site)])
            }
            Op::StridedSlice { begin, strides, .. } => {
                let op = Op::StridedSliceGrad {
                    begin: begin.clone(),
                    strides: strides.clone(),
                    shape: x[0].shape().clone(),
                };
                dense([self.node(op, &[&self.dy(0)])])
            }
            Op::StridedSliceGrad { begin, strides, .. } => {
                let size = x[0].shape().known().unwrap_or_default().to_vec();
                dense([self
                    .node(Op::StridedSlice { begin: begin.clone(), strides: strides.clone(), size }, &[&self.dy(0)])])
            }
            Op::Pad { before, .. } => {
                let Some(begin) = before.known() else { return Err(not_differentiable("padding of unknown size")) };
                let dy = self.dy(0);
                let inner = self.node(Op::Slice { begin: begin.to_vec(), size: x[0].shape().clone() }, &[&dy]);
                let sum = |t: &Tensor| t.reduce(Reduction::Sum, AxisSet::all(t.rank()), false, self.site);
                let value =
                    if self.wanted[1] { Gradient::Dense(self.b(Sub, &sum(&dy), &sum(&inner))) } else { Gradient::None };
                Ok(vec![Gradient::Dense(inner), value])
            }
            Op::MirrorPad { paddings, symmetric } => dense([
                self.node(Op::MirrorPadGrad { paddings: paddings.clone(), symmetric: *symmetric }, &[&self.dy(0)])
            ]),
            Op::MirrorPadGrad { paddings, symmetric } => {
                dense([self.node(Op::MirrorPad { paddings: paddings.clone(), symmetric: *symmetric }, &[&self.dy(0)])])
            }
            Op::Tile(multiples) => self.tile(multiples),
            Op::Reverse(axes) => dense([self.node(Op::Reverse(*axes), &[&self.dy(0)])]),

            Op::Reduce { kind, axes, .. } => self.reduce(*kind, *axes),
            Op::Cumulate { product, axis, exclusive, reverse } => {
                let back = |exclusive, g: &Tensor| {
                    self.node(Op::Cumulate { product: false, axis: *axis, exclusive, reverse: !*reverse }, &[g])
                };
                dense([match product {
                    false => back(*exclusive, &self.dy(0)),
                    // TF: divides by x, so an element of 0 gives NaN.
                    true => self.b(Div, &back(*exclusive, &self.b(Mul, &self.y[0], &self.dy(0))), &x[0]),
                }])
            }
            Op::TopK(_) => self.top_k(),

            Op::MatMul { transpose_a, transpose_b } => self.matmul(*transpose_a, *transpose_b),
            Op::BatchMatMul { adjoint_x, adjoint_y } => self.batch_matmul(*adjoint_x, *adjoint_y),
            Op::Conv2d(w) => self.two(
                || self.node(Op::Conv2dBackpropInput(*w, x[0].shape().clone()), &[&x[1], &self.dy(0)]),
                || self.node(Op::Conv2dBackpropFilter(*w, x[1].shape().clone()), &[&x[0], &self.dy(0)]),
            ),
            Op::Conv2dBackpropInput(w, _) => self.two(
                || self.node(Op::Conv2dBackpropFilter(*w, x[0].shape().clone()), &[&self.dy(0), &x[1]]),
                || self.node(Op::Conv2d(*w), &[&self.dy(0), &x[0]]),
            ),
            Op::Conv2dBackpropFilter(w, _) => self.two(
                || self.node(Op::Conv2dBackpropInput(*w, x[0].shape().clone()), &[&self.dy(0), &x[1]]),
                || self.node(Op::Conv2d(*w), &[&x[0], &self.dy(0)]),
            ),
            Op::DepthwiseConv2d(w) => self.two(
                || self.node(Op::DepthwiseConv2dBackpropInput(*w, x[0].shape().clone()), &[&x[1], &self.dy(0)]),
                || self.node(Op::DepthwiseConv2dBackpropFilter(*w, x[1].shape().clone()), &[&x[0], &self.dy(0)]),
            ),
            Op::DepthwiseConv2dBackpropInput(w, _) => self.two(
                || self.node(Op::DepthwiseConv2dBackpropFilter(*w, x[0].shape().clone()), &[&self.dy(0), &x[1]]),
                || self.node(Op::DepthwiseConv2d(*w), &[&self.dy(0), &x[0]]),
            ),
            Op::DepthwiseConv2dBackpropFilter(w, _) => self.two(
                || self.node(Op::DepthwiseConv2dBackpropInput(*w, x[0].shape().clone()), &[&self.dy(0), &x[1]]),
                || self.node(Op::DepthwiseConv2d(*w), &[&x[0], &self.dy(0)]),
            ),
            Op::MaxPool(w) => dense([self.node(Op::MaxPoolGrad(*w), &[&x[0], &self.y[0], &self.dy(0)])]),
            Op::AvgPool(w) => dense([self.node(Op::AvgPoolGrad(*w, x[0].shape().clone()), &[&self.dy(0)])]),
            Op::AvgPoolGrad(w, _) => dense([self.node(Op::AvgPool(*w), &[&self.dy(0)])]),

            Op::Softmax => {
                // dx = (dy - sum(dy * y)) * y
                let (y, dy) = (&self.y[0], self.dy(0));
                let dot = self.b(Mul, &dy, y).sum_axes(&[-1], true);
                dense([self.b(Mul, &self.b(Sub, &dy, &dot), y)])
            }
            Op::LogSoftmax => {
                // dx = dy - sum(dy) * softmax(x)
                let dy = self.dy(0);
                let total = dy.sum_axes(&[-1], true);
                dense([self.b(Sub, &dy, &self.b(Mul, &total, &self.u(Unary::Exp, &self.y[0])))])
            }
            Op::SparseSoftmaxCrossEntropy | Op::SoftmaxCrossEntropy => self.cross_entropy(op),

            Op::Gather { axis, batch_dims } => self.gather(*axis, *batch_dims),
            Op::GatherNd => {
                let g = self.node(Op::ScatterNd(x[0].shape().clone()), &[&x[1], &self.dy(0)]);
                Ok(vec![Gradient::Dense(g), Gradient::None])
            }
            Op::ScatterNd(_) => {
                Ok(vec![Gradient::None, Gradient::Dense(self.node(Op::GatherNd, &[&self.dy(0), &x[0]]))])
            }
            Op::UnsortedSegment { kind, .. } => self.segments(*kind),
            Op::SparseSegment(combiner) => self.lookups(*combiner),
            Op::SparseSegmentGrad(combiner, _) => self.lookups_gradient(*combiner),
            Op::Recurrent(step) => self.recurrent(step),
            Op::RecurrentGrad(_) => Err(not_differentiable("the gradient of a recurrent network")),
            Op::Resize(r) => dense([self.node(Op::ResizeGrad(*r, x[0].shape().clone()), &[&self.dy(0)])]),
            Op::ResizeGrad(r, _) => dense([self.node(Op::Resize(*r), &[&self.dy(0)])]),
            Op::Custom(custom) => self.custom(custom),
            Op::MaxPoolGrad(_) => Err(not_differentiable("the second derivative of max pooling")),
            Op::Placeholder
            | Op::Constant(_)
            | Op::Variable(_)
            | Op::DimSize(..)
            | Op::Range(..)
            | Op::Random { .. }
            | Op::Assign(_)
            | Op::Apply(_)
            | Op::Group => self.nothing(),
        }
    }

    fn matmul(&self, ta: bool, tb: bool) -> Result<Found> {
        let (a, b, dy) = (&self.x[0], &self.x[1], self.dy(0));
        let product = |x: &Tensor, y: &Tensor, tx: bool, ty: bool| {
            self.node(Op::MatMul { transpose_a: tx, transpose_b: ty }, &[x, y])
        };
        self.two(
            || if ta { product(b, &dy, tb, true) } else { product(&dy, b, false, !tb) },
            || if tb { product(&dy, a, true, ta) } else { product(a, &dy, !ta, false) },
        )
    }

    fn batch_matmul(&self, ax: bool, ay: bool) -> Result<Found> {
        let (a, b, dy) = (&self.x[0], &self.x[1], self.dy(0));
        let product = |x: &Tensor, y: &Tensor, tx: bool, ty: bool| {
            self.node(Op::BatchMatMul { adjoint_x: tx, adjoint_y: ty }, &[x, y])
        };
        let da = || if ax { product(b, &dy, ay, true) } else { product(&dy, b, false, !ay) };
        let db = || if ay { product(&dy, a, true, ax) } else { product(a, &dy, !ax, false) };
        self.two(|| self.unbroadcast(&da(), a), || self.unbroadcast(&db(), b))
    }

    fn cross_entropy(&self, op: &Op) -> Result<Found> {
        use Binary::*;
        let logits = &self.x[0];
        let column = |t: &Tensor| t.expand_dims(-1);
        if self.upstream[1].is_some() {
            return Err(not_differentiable("the second derivative of a cross entropy"));
        }
        let dy = column(&self.dy(0));
        let dlogits = Gradient::Dense(self.b(Mul, &dy, &self.y[1]));
        let dlabels = if self.wanted[1] && *op == Op::SoftmaxCrossEntropy {
            Gradient::Dense(self.b(Mul, &dy, &self.u(Unary::Neg, &self.node(Op::LogSoftmax, &[logits]))))
        } else {
            Gradient::None
        };
        Ok(vec![dlogits, dlabels])
    }

    fn custom(&self, custom: &crate::custom::CustomOp) -> Result<Found> {
        let Some(kernel) = &custom.gradient else {
            return Err(not_differentiable(&format!("custom op `{}`", custom.name))
                .help("give it a gradient with CustomOp::gradient, or cut it off with stop_gradient"));
        };
        let gradient = crate::custom::CustomOp {
            name: format!("{}/gradient", custom.name).into(),
            outputs: self.x.iter().map(|x| x.spec().clone()).collect(),
            kernel: kernel.clone(),
            gradient: None,
        };
        let dys: Vec<Tensor> = (0..self.y.len()).map(|i| self.dy(i)).collect();
        let inputs: Vec<&Tensor> = self.x.iter().chain(&dys).collect();
        let first = self.node(Op::Custom(gradient), &inputs);
        Ok((0..self.x.len())
            .map(|i| match self.x[i].dtype().is_float() {
                true => Gradient::Dense(self.graph.output(&first, i as u16)),
                false => Gradient::None,
            })
            .collect())
    }
}

pub(super) fn inverse(perm: &Axes) -> Axes {
    let mut inverse = perm.clone();
    for (to, &from) in perm.iter().enumerate() {
        inverse[from as usize] = to as u8;
    }
    inverse
}

pub(super) fn not_differentiable(what: &str) -> Error {
    Error::unsupported(format!("{what} is not differentiable")).help("cut it off with stop_gradient if that is meant")
}
