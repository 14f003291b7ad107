//! Gradients: reverse mode over the graph, one rule for each op.
//!
//! A rule gets the node's inputs, its outputs and the gradients of the outputs, and returns the gradients of the inputs as new
//! nodes. The gradient of a lookup in a variable stays a list of rows.

use std::collections::BTreeMap;
use std::panic::Location;

use estimand_tensor::{Binary, DType, Dim, Error, Result, Shape, Unary};

use crate::graph::{Graph, NodeId, Value};
use crate::op::{Axes, AxisSet, Op, Reduction};
use crate::tensor::Tensor;

/// The gradient of one tensor.
#[derive(Clone, Debug)]
pub enum Gradient {
    /// It does not depend on it.
    None,
    /// Of the tensor's shape.
    Dense(Tensor),
    /// Rows of the first axis; an index may occur several times, its rows are added.
    Rows {
        /// [n]
        indices: Tensor,
        /// [n, ...]
        values: Tensor,
    },
}

impl Gradient {
    /// The numbers of the gradient, whatever rows they belong to.
    pub fn values(&self) -> Option<&Tensor> {
        match self {
            Gradient::None => None,
            Gradient::Dense(values) | Gradient::Rows { values, .. } => Some(values),
        }
    }

    /// The dense form, for a tensor of the given shape; `None` if there is no gradient.
    #[track_caller]
    pub fn to_dense(&self, shape: &Shape) -> Option<Tensor> {
        match self {
            Gradient::None => None,
            Gradient::Dense(g) => Some(g.clone()),
            Gradient::Rows { indices, values } => {
                Some(values.segments(Reduction::Sum, indices, shape.dims()[0], Location::caller()))
            }
        }
    }
}

/// The gradients of the sum of `y`'s elements with respect to each of `xs`.
///
/// Errors are kept by the graph, as everywhere in building.
#[track_caller]
pub fn gradients(y: &Tensor, xs: &[&Tensor]) -> Vec<Gradient> {
    let site = Location::caller();
    let graph = y.graph();
    let none = || xs.iter().map(|_| Gradient::None).collect();
    if y.is_poisoned() || xs.iter().any(|x| x.is_poisoned()) {
        return none();
    }
    if let Some(x) = xs.iter().find(|x| !x.graph().same(graph)) {
        graph.record(
            Error::config(format!("gradient with respect to {}, which belongs to another graph", x.describe())),
            site,
        );
        return none();
    }
    if !y.dtype().is_float() {
        graph.record(
            Error::dtype(Some(DType::F32), y.dtype(), format!("gradient of {}, which is not a float", y.describe())),
            site,
        );
        return none();
    }
    match Backward::new(graph, y, xs, site).run() {
        Ok(found) => found,
        Err(error) => {
            graph.record(error, site);
            none()
        }
    }
}

/// One pass from `y` back to the `xs`.
struct Backward<'a> {
    graph: &'a Graph,
    site: &'static Location<'static>,
    xs: &'a [&'a Tensor],
    /// Whether a node lies between some x and y.
    between: Vec<bool>,
    /// What has arrived at each value so far.
    arrived: BTreeMap<Value, Gradient>,
}

impl<'a> Backward<'a> {
    fn new(graph: &'a Graph, y: &Tensor, xs: &'a [&'a Tensor], site: &'static Location<'static>) -> Backward<'a> {
        let last = y.value().node.0 as usize;
        let between = {
            let body = graph.body();
            let mut between = vec![false; last + 1];
            for x in xs {
                if let Some(b) = between.get_mut(x.value().node.0 as usize) {
                    *b = true;
                }
            }
            for (i, node) in body.nodes()[..=last].iter().enumerate() {
                between[i] |= node.inputs.iter().any(|v| between[v.node.0 as usize]);
            }
            between
        };
        let ones = y.ones_like();
        let arrived = BTreeMap::from([(y.value(), Gradient::Dense(ones))]);
        Backward { graph, site, xs, between, arrived }
    }

    fn run(mut self) -> Result<Vec<Gradient>> {
        for id in (0..self.between.len()).rev() {
            if !self.between[id] || self.xs.iter().any(|x| x.value().node.0 as usize == id && self.is_source(id)) {
                continue;
            }
            let node_id = NodeId(id as u32);
            let (op, inputs, n_outputs, name) = {
                let body = self.graph.body();
                let node = body.node(node_id);
                (node.op.clone(), node.inputs.clone(), node.outputs.len(), node.name.clone())
            };
            let value = |output: usize| Value { node: node_id, output: output as u16 };
            let upstream: Vec<Option<Tensor>> = (0..n_outputs)
                .map(|o| {
                    // Not borrowed while `to_dense` adds a node.
                    let shape = self.graph.body().spec(value(o)).shape.clone();
                    self.arrived.get(&value(o)).and_then(|g| g.to_dense(&shape))
                })
                .collect();
            if inputs.is_empty() || upstream.iter().all(Option::is_none) {
                continue;
            }
            let rule = Rule {
                graph: self.graph,
                site: self.site,
                x: inputs.iter().map(|&v| self.graph.tensor(v)).collect(),
                y: (0..n_outputs).map(|o| self.graph.tensor(value(o))).collect(),
                upstream,
                wanted: inputs.iter().map(|v| self.between[v.node.0 as usize]).collect(),
            };
            let found = rule.apply(&op).map_err(|e| e.context(format!("gradient of `{name}` ({})", op.name())))?;
            for (input, gradient) in inputs.iter().zip(found) {
                if self.between[input.node.0 as usize] {
                    self.add(*input, gradient);
                }
            }
        }
        let arrived = &mut self.arrived;
        Ok(self.xs.iter().map(|x| arrived.get(&x.value()).cloned().unwrap_or(Gradient::None)).collect())
    }

    fn is_source(&self, id: usize) -> bool {
        self.graph.body().nodes()[id].inputs.is_empty()
    }

    /// Adds to what has arrived. Rows stay rows as long as everything that arrives is rows.
    fn add(&mut self, at: Value, gradient: Gradient) {
        let earlier = self.arrived.remove(&at).unwrap_or(Gradient::None);
        let shape = self.graph.body().spec(at).shape.clone();
        let site = self.site;
        let sum = match (earlier, gradient) {
            (Gradient::None, g) | (g, Gradient::None) => g,
            (Gradient::Rows { indices: i, values: v }, Gradient::Rows { indices: j, values: w })
                if i.dtype() == j.dtype() =>
            {
                Gradient::Rows {
                    indices: self.graph.node(Op::Concat(0), &[&i, &j], site),
                    values: self.graph.node(Op::Concat(0), &[&v, &w], site),
                }
            }
            (a, b) => match (a.to_dense(&shape), b.to_dense(&shape)) {
                (Some(a), Some(b)) => Gradient::Dense(a.binary(Binary::Add, &b, site)),
                (Some(g), None) | (None, Some(g)) => Gradient::Dense(g),
                (None, None) => Gradient::None,
            },
        };
        if !matches!(sum, Gradient::None) {
            self.arrived.insert(at, sum);
        }
    }
}

/// Everything a rule may use.
struct Rule<'a> {
    graph: &'a Graph,
    site: &'static Location<'static>,
    x: Vec<Tensor>,
    y: Vec<Tensor>,
    upstream: Vec<Option<Tensor>>,
    /// Which inputs need a gradient.
    wanted: Vec<bool>,
}

type Found = Vec<Gradient>;

fn dense(gradients: impl IntoIterator<Item = Tensor>) -> Result<Found> {
    Ok(gradients.into_iter().map(Gradient::Dense).collect())
}

impl Rule<'_> {
    /// The gradient of output `i`, zeros if nothing arrived there.
    fn dy(&self, i: usize) -> Tensor {
        self.upstream[i].clone().unwrap_or_else(|| self.y[i].zeros_like())
    }

    fn node(&self, op: Op, inputs: &[&Tensor]) -> Tensor {
        self.graph.node(op, inputs, self.site)
    }

    fn b(&self, op: Binary, a: &Tensor, b: &Tensor) -> Tensor {
        a.binary(op, b, self.site)
    }

    fn u(&self, op: Unary, a: &Tensor) -> Tensor {
        a.unary(op, self.site)
    }

    fn c(&self, like: &Tensor, value: f64) -> Tensor {
        like.number(value, self.site)
    }

    fn nothing(&self) -> Result<Found> {
        Ok(self.x.iter().map(|_| Gradient::None).collect())
    }

    /// Sums a gradient over the axes along which `input` was broadcast.
    fn unbroadcast(&self, g: &Tensor, input: &Tensor) -> Tensor {
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
    fn pair(&self, gx: impl FnOnce() -> Tensor, gy: impl FnOnce() -> Tensor) -> Result<Found> {
        self.two(|| self.unbroadcast(&gx(), &self.x[0]), || self.unbroadcast(&gy(), &self.x[1]))
    }

    /// The reduced tensor with its axes back, size 1.
    fn keep_dims(&self, t: &Tensor, axes: AxisSet) -> Tensor {
        let x = self.x[0].shape();
        let kept =
            x.dims().iter().enumerate().map(|(a, &d)| if axes.contains(a) { Dim::Known(1) } else { d }).collect();
        t.reshape_to(kept, self.site)
    }

    /// The number of elements that `axes` of the first input hold, as a tensor of its dtype.
    fn count(&self, axes: AxisSet) -> Result<Tensor> {
        let x = &self.x[0];
        let dims: Vec<Dim> = axes.iter().map(|a| x.shape().dims()[a]).collect();
        let product = self.graph.symbols_mut(|s| s.product(&dims))?;
        Ok(x.dim_size(product, x.dtype(), self.site))
    }

    fn apply(&self, op: &Op) -> Result<Found> {
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
            Op::Cast(_) | Op::StopGradient | Op::ArgMax { .. } | Op::OneHot { .. } => self.nothing(),
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

    fn two(&self, first: impl FnOnce() -> Tensor, second: impl FnOnce() -> Tensor) -> Result<Found> {
        Ok(vec![
            if self.wanted[0] { Gradient::Dense(first()) } else { Gradient::None },
            if self.wanted[1] { Gradient::Dense(second()) } else { Gradient::None },
        ])
    }

    fn unary(&self, op: Unary) -> Result<Found> {
        use Binary::*;
        let (x, y) = (&self.x[0], &self.y[0]);
        if op.output(x.dtype()) == DType::Bool {
            return self.nothing();
        }
        let dy = self.dy(0);
        let times = |factor: Tensor| self.b(Mul, &dy, &factor);
        dense([match op {
            Unary::Neg => self.u(Unary::Neg, &dy),
            Unary::Abs => times(self.u(Unary::Sign, x)),
            Unary::Sign | Unary::Floor | Unary::Ceil | Unary::Round => return self.nothing(),
            Unary::Exp => times(y.clone()),
            Unary::Expm1 => times(self.u(Unary::Exp, x)),
            Unary::Log => self.b(Div, &dy, x),
            Unary::Log1p => self.b(Div, &dy, &self.b(Add, &self.c(x, 1.0), x)),
            Unary::Sqrt => self.b(SqrtGrad, y, &dy),
            Unary::Rsqrt => self.b(RsqrtGrad, y, &dy),
            Unary::Square => times(self.b(Mul, &self.c(x, 2.0), x)),
            Unary::Reciprocal => self.b(ReciprocalGrad, y, &dy),
            Unary::Sin => times(self.u(Unary::Cos, x)),
            Unary::Cos => self.u(Unary::Neg, &times(self.u(Unary::Sin, x))),
            Unary::Tanh => self.b(TanhGrad, y, &dy),
            Unary::Sigmoid => self.b(SigmoidGrad, y, &dy),
            Unary::Erf => {
                // 2 / sqrt(pi) * exp(-x^2)
                let bell = self.u(Unary::Exp, &self.u(Unary::Neg, &self.u(Unary::Square, x)));
                self.b(Mul, &times(self.c(x, std::f64::consts::FRAC_2_SQRT_PI)), &bell)
            }
            Unary::Softplus => self.b(SoftplusGrad, &dy, x),
            Unary::Softsign => self.b(SoftsignGrad, &dy, x),
            Unary::Relu => self.b(ReluGrad, &dy, y),
            Unary::Relu6 => self.b(Relu6Grad, &dy, y),
            Unary::Elu => self.b(EluGrad, &dy, y),
            Unary::Selu => self.b(SeluGrad, &dy, y),
            Unary::LogicalNot | Unary::IsNan | Unary::IsFinite => return self.nothing(),
        }])
    }

    fn binary(&self, op: Binary) -> Result<Found> {
        use Binary::*;
        let (x, y) = (&self.x[0], &self.x[1]);
        if op.output(x.dtype()) == DType::Bool {
            return self.nothing();
        }
        let dy = self.dy(0);
        let mul = |a: &Tensor, b: &Tensor| self.b(Mul, a, b);
        let neg = |a: &Tensor| self.u(Unary::Neg, a);
        // Where one of two wins, the gradient goes to it; TF: to the first if they are equal.
        let winner = |compare: Binary| {
            let zero = self.c(&dy, 0.0);
            let first = self.b(compare, x, y);
            let gx = self.node(Op::Select, &[&first, &dy, &zero]);
            let gy = self.node(Op::Select, &[&first, &zero, &dy]);
            self.pair(|| gx, || gy)
        };
        match op {
            Add => self.pair(|| dy.clone(), || dy.clone()),
            Sub => self.pair(|| dy.clone(), || neg(&dy)),
            Mul => self.pair(|| mul(&dy, y), || mul(x, &dy)),
            Div => self.pair(|| self.b(Div, &dy, y), || mul(&dy, &self.b(Div, &self.b(Div, &neg(x), y), y))),
            DivNoNan => {
                self.pair(|| self.b(DivNoNan, &dy, y), || mul(&dy, &self.b(DivNoNan, &self.b(DivNoNan, &neg(x), y), y)))
            }
            FloorMod => self.pair(|| dy.clone(), || neg(&mul(&dy, &self.b(FloorDiv, x, y)))),
            Pow => self.pow(),
            Maximum => winner(GreaterEqual),
            Minimum => winner(LessEqual),
            SquaredDifference => {
                let scaled = mul(&mul(&self.c(x, 2.0), &dy), &self.b(Sub, x, y));
                self.pair(|| scaled.clone(), || neg(&scaled))
            }
            // The gradients of gradients that a second derivative needs.
            ReluGrad | Relu6Grad => Ok(vec![Gradient::Dense(self.unbroadcast(&self.b(op, &dy, y), x)), Gradient::None]),
            TanhGrad => self.pair(|| mul(&mul(&mul(&self.c(x, -2.0), &dy), y), x), || self.b(TanhGrad, x, &dy)),
            SigmoidGrad => self.pair(
                || mul(&mul(&dy, y), &self.b(Sub, &self.c(x, 1.0), &mul(&self.c(x, 2.0), x))),
                || self.b(SigmoidGrad, x, &dy),
            ),
            FloorDiv => self.nothing(),
            EluGrad | SeluGrad | SoftplusGrad | SoftsignGrad | SqrtGrad | RsqrtGrad | ReciprocalGrad => {
                Err(not_differentiable("this second derivative"))
            }
            Less | LessEqual | Greater | GreaterEqual | Equal | NotEqual | LogicalAnd | LogicalOr => self.nothing(),
        }
    }

    fn pow(&self) -> Result<Found> {
        use Binary::*;
        let (x, y, z, dy) = (&self.x[0], &self.x[1], &self.y[0], self.dy(0));
        let one = self.c(y, 1.0);
        let base = || self.b(Mul, &self.b(Mul, &dy, y), &self.b(Pow, x, &self.b(Sub, y, &one)));
        let exponent = || {
            // TF: ln x only where x > 0, so that 0^y has gradient 0.
            let zero = self.c(x, 0.0);
            let positive = self.b(Greater, x, &zero);
            let safe = self.node(Op::Select, &[&positive, x, &self.c(x, 1.0)]);
            let log = self.node(Op::Select, &[&positive, &self.u(Unary::Log, &safe), &zero]);
            self.b(Mul, &self.b(Mul, &dy, z), &log)
        };
        self.pair(base, exponent)
    }

    fn concat(&self, axis: usize) -> Result<Found> {
        let dy = self.dy(0);
        let mut begin = vec![0usize; dy.rank()];
        let mut found = Vec::new();
        for x in &self.x {
            let slice = Op::Slice { begin: begin.clone(), size: x.shape().clone() };
            found.push(Gradient::Dense(self.node(slice, &[&dy])));
            match x.shape().dims()[axis] {
                Dim::Known(n) => begin[axis] += n,
                Dim::Sym(_) if found.len() == self.x.len() => {}
                Dim::Sym(_) => return Err(not_differentiable("joining along an axis of unknown size")),
            }
        }
        Ok(found)
    }

    fn tile(&self, multiples: &[usize]) -> Result<Found> {
        // Split every axis into (repeat, size) and sum over the repeats.
        let mut split = Shape::scalar();
        let mut repeats = AxisSet::default();
        for (&m, &d) in multiples.iter().zip(self.x[0].shape().dims()) {
            if m != 1 {
                repeats.0 |= 1 << split.rank();
                split.0.push(Dim::Known(m));
            }
            split.0.push(d);
        }
        let apart = self.dy(0).reshape_to(split, self.site);
        dense([apart
            .reduce(Reduction::Sum, repeats, false, self.site)
            .reshape_to(self.x[0].shape().clone(), self.site)])
    }

    fn reduce(&self, kind: Reduction, axes: AxisSet) -> Result<Found> {
        use Binary::*;
        let x = &self.x[0];
        let full = |t: &Tensor| t.broadcast_shape(x.shape().clone(), self.site);
        let dy = self.keep_dims(&self.dy(0), axes);
        dense([match kind {
            Reduction::Sum => full(&dy),
            Reduction::Mean => full(&self.b(Div, &dy, &self.count(axes)?)),
            Reduction::Max | Reduction::Min => {
                // TF: equal winners share the gradient.
                let y = self.keep_dims(&self.y[0], axes);
                let winners = self.b(Equal, x, &y);
                let winners = self.node(Op::Cast(x.dtype()), &[&winners]);
                let share = winners.reduce(Reduction::Sum, axes, true, self.site);
                self.b(Mul, &self.b(Div, &winners, &share), &dy)
            }
            Reduction::Prod => self.product_gradient(axes, &dy)?,
            Reduction::All | Reduction::Any => return self.nothing(),
        }])
    }

    /// Products of all other elements, from exclusive running products in both directions, so that zeros are no problem.
    fn product_gradient(&self, axes: AxisSet, dy: &Tensor) -> Result<Tensor> {
        let x = &self.x[0];
        // The reduced axes go to the end and become one.
        let rest = (0..x.rank()).filter(|&a| !axes.contains(a));
        let perm: Axes = rest.chain(axes.iter()).map(|a| a as u8).collect();
        let n_kept = x.rank() - axes.iter().count();
        let permuted = self.node(Op::Transpose(perm.clone()), &[x]);
        let last = self.graph.symbols_mut(|s| s.product(&permuted.shape().dims()[n_kept..]))?;
        let flat: Shape = permuted.shape().dims()[..n_kept].iter().copied().chain([last]).collect();
        let row = permuted.reshape_to(flat, self.site);
        let running =
            |reverse| self.node(Op::Cumulate { product: true, axis: n_kept, exclusive: true, reverse }, &[&row]);
        let others =
            self.b(Binary::Mul, &running(false), &running(true)).reshape_to(permuted.shape().clone(), self.site);
        let others = self.node(Op::Transpose(inverse(&perm)), &[&others]);
        Ok(self.b(Binary::Mul, &others, dy))
    }

    fn top_k(&self) -> Result<Found> {
        // Scatter along the last axis: flatten the rows and add each row's offset to its indices.
        let (x, indices) = (&self.x[0], &self.y[1]);
        let dims = x.shape().dims();
        let (lead, width) = (&dims[..dims.len() - 1], dims[dims.len() - 1]);
        let (rows, total) = self.graph.symbols_mut(|s| Ok::<_, Error>((s.product(lead)?, s.product(dims)?)))?;
        let Some(width) = width.known() else { return Err(not_differentiable("top_k of an axis of unknown size")) };
        let k = self.y[0].shape().dims()[dims.len() - 1];
        let ids = self.node(Op::Cast(DType::I64), &[indices]).reshape_to(Shape::from([rows, k]), self.site);
        let first = self.node(Op::Range(rows, DType::I64), &[]).reshape_to(Shape::from([rows, 1.into()]), self.site);
        let offset = self.b(Binary::Mul, &first, &self.c(&first, width as f64));
        let flat_k = self.graph.symbols_mut(|s| s.product(&[rows, k]))?;
        let ids = self.b(Binary::Add, &ids, &offset).reshape_to(Shape::from([flat_k]), self.site);
        let dy = self.dy(0).reshape_to(Shape::from([flat_k]), self.site);
        let flat = dy.segments(Reduction::Sum, &ids, total, self.site);
        dense([flat.reshape_to(x.shape().clone(), self.site)])
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

    fn gather(&self, axis: usize, batch_dims: usize) -> Result<Found> {
        let (params, indices, dy) = (&self.x[0], &self.x[1], self.dy(0));
        let flat_ids = |ids: &Tensor| -> Result<(Tensor, Dim)> {
            let n = self.graph.symbols_mut(|s| s.product(ids.shape().dims()))?;
            Ok((ids.reshape_to(Shape::from([n]), self.site), n))
        };
        let gradient = match (axis, batch_dims) {
            (0, 0) => {
                let (ids, n) = flat_ids(indices)?;
                let mut shape = params.shape().clone();
                shape.0[0] = n;
                Gradient::Rows { indices: ids, values: dy.reshape_to(shape, self.site) }
            }
            (_, 0) => {
                // Bring the gathered axes to the front, sum the segments, and put the axis back.
                let k = indices.rank();
                let order = (axis..axis + k).chain(0..axis).chain(axis + k..dy.rank());
                let front = self.node(Op::Transpose(order.map(|a| a as u8).collect()), &[&dy]);
                let (ids, n) = flat_ids(indices)?;
                let mut shape = Shape::from([n]);
                shape.0.extend(front.shape().dims()[k..].iter().copied());
                let rows = front.reshape_to(shape, self.site);
                let summed = rows.segments(Reduction::Sum, &ids, params.shape().dims()[axis], self.site);
                let back = (1..=axis).chain([0]).chain(axis + 1..params.rank());
                Gradient::Dense(self.node(Op::Transpose(back.map(|a| a as u8).collect()), &[&summed]))
            }
            _ => self.batched_gather(axis, batch_dims)?,
        };
        Ok(vec![gradient, Gradient::None])
    }

    /// With batch axes: offset the ids so that each batch has its own segments.
    fn batched_gather(&self, axis: usize, batch_dims: usize) -> Result<Gradient> {
        let (params, indices, dy) = (&self.x[0], &self.x[1], self.dy(0));
        if axis != batch_dims {
            return Err(not_differentiable("gather with batch_dims on a later axis"));
        }
        let (p, i) = (params.shape().dims().to_vec(), indices.shape().dims().to_vec());
        let (batches, per_batch, n, total) = self.graph.symbols_mut(|s| {
            let batches = s.product(&p[..batch_dims])?;
            let per_batch = s.product(&i[batch_dims..])?;
            Ok::<_, Error>((batches, per_batch, s.product(&i)?, s.product(&[batches, p[axis]])?))
        })?;
        let size = params.dim_size(p[axis], indices.dtype(), self.site);
        let first =
            self.node(Op::Range(batches, indices.dtype()), &[]).reshape_to(Shape::from([batches, 1.into()]), self.site);
        let ids = indices.reshape_to(Shape::from([batches, per_batch]), self.site);
        let ids =
            self.b(Binary::Add, &ids, &self.b(Binary::Mul, &first, &size)).reshape_to(Shape::from([n]), self.site);
        let mut shape = Shape::from([n]);
        shape.0.extend(p[axis + 1..].iter().copied());
        let rows = dy.reshape_to(shape, self.site);
        let summed = rows.segments(Reduction::Sum, &ids, total, self.site);
        Ok(Gradient::Dense(summed.reshape_to(params.shape().clone(), self.site)))
    }

    fn segments(&self, kind: Reduction) -> Result<Found> {
        use Binary::*;
        let (data, ids, dy) = (&self.x[0], &self.x[1], self.dy(0));
        // TF: rows with a negative id were dropped; they take no gradient.
        let zero = self.c(ids, 0.0);
        let kept = self.b(GreaterEqual, ids, &zero);
        let safe = self.b(Maximum, ids, &zero);
        let back = |t: &Tensor| self.node(Op::Gather { axis: 0, batch_dims: 0 }, &[t, &safe]);
        let mut mask_shape = ids.shape().clone();
        mask_shape.0.resize(data.rank(), Dim::Known(1));
        let kept = kept.reshape_to(mask_shape, self.site);
        let only_kept = |t: &Tensor| self.node(Op::Select, &[&kept, t, &self.c(t, 0.0)]);
        let gradient = match kind {
            Reduction::Sum => only_kept(&back(&dy)),
            Reduction::Max | Reduction::Min => {
                // TF: equal winners share the gradient.
                let winners = self.node(Op::Cast(data.dtype()), &[&self.b(Equal, data, &back(&self.y[0]))]);
                let winners = only_kept(&winners);
                let num = self.y[0].shape().dims()[0];
                let share = winners.segments(Reduction::Sum, ids, num, self.site);
                let portion = self.b(Mul, &winners, &back(&self.b(DivNoNan, &dy, &share)));
                only_kept(&portion)
            }
            _ => return Err(not_differentiable("a segment product")),
        };
        Ok(vec![Gradient::Dense(gradient), Gradient::None])
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

fn inverse(perm: &Axes) -> Axes {
    let mut inverse = perm.clone();
    for (to, &from) in perm.iter().enumerate() {
        inverse[from as usize] = to as u8;
    }
    inverse
}

fn not_differentiable(what: &str) -> Error {
    Error::unsupported(format!("{what} is not differentiable")).help("cut it off with stop_gradient if that is meant")
}
