//! What a step moves and computes, counted from its sizes: one table for all kernels, whoever runs them.
//!
//! Bytes are what a step must at least read and write once: of tables that are gathered from, only the rows. FLOPs are those of the
//! textbook: 2 for a term of a product, 1 for an element of an element-wise node or a reduction, whatever the function; layouts,
//! random numbers and ops of one's own count none. Profiles hold both against what the machine can do.

#[cfg(test)]
mod tests;

use std::ops::AddAssign;

use crate::graph::Value;
use crate::op::{Cell, Combiner, Op, PoolWindow, Recurrent, Resize, Window};
use crate::optimizer::Apply;
use crate::program::{Kernel, Program, Step};

/// Bytes that are moved and operations on floats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Additions, multiplications, comparisons and functions of floats.
    pub flops: u64,
}

impl Cost {
    /// Bytes read and written.
    pub fn bytes(&self) -> u64 {
        self.read.saturating_add(self.written)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Cost) {
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.flops = self.flops.saturating_add(other.flops);
    }
}

/// What a machine can do at best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Operations on floats in a second.
    pub flops: f64,
    /// Bytes read and written in a second.
    pub bytes: f64,
}

impl Rates {
    /// The seconds below which nothing of this cost can be done, if memory holds what it reads and writes.
    pub fn bound(&self, cost: &Cost) -> f64 {
        (cost.bytes() as f64 / self.bytes).max(cost.flops as f64 / self.flops)
    }
}

/// A product that cannot overflow: sizes come from what is fed.
fn product(factors: &[usize]) -> u64 {
    factors.iter().fold(1, |all, &n| all.saturating_mul(n as u64))
}

/// The cost of a step whose inputs have the sizes `x` and whose outputs have the sizes `y`.
pub(crate) fn cost(program: &Program, step: &Step, x: &[&[usize]], y: &[&[usize]]) -> Cost {
    let size =
        |(value, dims): (&Value, &&[usize])| product(dims).saturating_mul(program.spec(*value).dtype.size() as u64);
    let sum = |values: &[Value], dims: &[&[usize]]| values.iter().zip(dims).map(size).sum();
    let op = &program.body().node(step.kernel.node()).op;
    let mut cost = Cost { read: sum(&step.inputs, x), written: sum(&step.outputs, y), flops: 0 };
    match op {
        // Other views of the same bytes.
        Op::Reshape(_) | Op::StopGradient => return Cost::default(),
        Op::Gather { .. } | Op::GatherNd => cost.read = sum(&step.inputs[1..], &x[1..]) + cost.written,
        Op::Slice { .. } | Op::StridedSlice { .. } => cost.read = cost.written,
        // The second input only lends its shape.
        Op::SumTo => cost.read = sum(&step.inputs[..1], x),
        Op::Assign(_) => cost.written = cost.read,
        Op::Apply(apply) => return update(program, apply, x, cost),
        _ => {}
    }
    cost.flops = match &step.kernel {
        Kernel::Elementwise(members) => product(&[members.len(), count(y[0])]),
        Kernel::Product { pool, bias, relu, .. } => {
            let (flops, out) = match (op, pool.map(|pool| &program.body().node(pool).op)) {
                (Op::Conv2d(window), Some(pool)) => {
                    let out = convolved(window, x[0], x[1]);
                    (products(out, x[1]) + flops(pool, &[], &y[..1]), out)
                }
                _ => (flops(op, x, y), count(y[0])),
            };
            flops + product(&[usize::from(*bias) + usize::from(*relu), out])
        }
        Kernel::PooledGradient { .. } => match op {
            // The gradient of the bias is one sum over all pixels; the pooling's takes each of its own once.
            Op::Conv2dBackpropFilter(window, _) => {
                let out = convolved(window, x[0], y[0]);
                products(out, y[0]) + product(&[out]) + product(x[2])
            }
            _ => 0,
        },
        // It is known which element was the largest.
        Kernel::Which(_) if matches!(op, Op::MaxPoolGrad(_)) => product(x[1]),
        Kernel::Node(_) | Kernel::Which(_) => flops(op, x, y),
    };
    cost
}

fn count(dims: &[usize]) -> usize {
    dims.iter().product()
}

/// Elements of a convolution's result.
fn convolved(window: &Window, x: &[usize], filter: &[usize]) -> usize {
    let place = |axis: usize, stride: usize, dilation: usize| {
        window.padding.place(x[axis + 1], filter[axis], stride, dilation).map_or(0, |(out, _, _)| out)
    };
    let (strides, dilations) = (window.strides, window.dilations);
    x[0] * place(0, strides.0, dilations.0) * place(1, strides.1, dilations.1) * filter[3]
}

/// Terms of a convolution with `out` results: taps over the border count as all others do.
fn products(out: usize, filter: &[usize]) -> u64 {
    product(&[2, out, filter[0], filter[1], filter[2]])
}

/// The table.
fn flops(op: &Op, x: &[&[usize]], y: &[&[usize]]) -> u64 {
    let inner = |d: &[usize], transposed: bool| d[d.len() - if transposed { 2 } else { 1 }];
    let taps = |filter: &[usize]| filter[0] * filter[1];
    let area = |window: &PoolWindow| window.size.0 * window.size.1;
    match op {
        Op::MatMul { transpose_a: t, .. } | Op::BatchMatMul { adjoint_x: t, .. } => {
            product(&[2, count(y[0]), inner(x[0], *t)])
        }
        Op::Conv2d(_) => products(count(y[0]), x[1]),
        Op::Conv2dBackpropInput(..) => products(count(x[1]), x[0]),
        Op::Conv2dBackpropFilter(..) => products(count(x[1]), y[0]),
        Op::DepthwiseConv2d(_) => product(&[2, count(y[0]), taps(x[1])]),
        Op::DepthwiseConv2dBackpropInput(..) => product(&[2, count(x[1]), taps(x[0])]),
        Op::DepthwiseConv2dBackpropFilter(..) => product(&[2, count(x[1]), taps(y[0])]),
        Op::MaxPool(w) | Op::AvgPool(w) => product(&[count(y[0]), area(w)]),
        Op::MaxPoolGrad(w) => product(&[count(x[2]), area(w)]),
        Op::AvgPoolGrad(w, _) => product(&[count(x[0]), area(w)]),

        // Largest, difference, exponential, sum, quotient (or difference).
        Op::Softmax | Op::LogSoftmax => product(&[5, count(x[0])]),
        // And the gradient, and a product and a sum for the loss.
        Op::SoftmaxCrossEntropy => product(&[8, count(x[0])]),
        // Gradient and loss differ at the label alone.
        Op::SparseSoftmaxCrossEntropy => product(&[5, count(x[0])]) + product(&[2, count(x[1])]),

        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast(_) => product(y[0]),
        Op::Reduce { .. } | Op::SumTo | Op::ArgMax { .. } | Op::Cumulate { .. } | Op::TopK(_) => product(x[0]),
        Op::MirrorPadGrad { .. } => product(x[0]),
        Op::UnsortedSegment { .. } => product(x[0]),
        Op::ScatterNd(_) => product(x[1]),
        Op::SparseSegment(combiner) => looked_up(*combiner, x, y[0]),
        Op::SparseSegmentGrad(combiner, _) => looked_up(*combiner, x, x[0]),
        Op::Recurrent(step) => recurrent(step, x[0], x[1]),
        // Two products, of the states' gradients and of the kernel's, instead of one.
        Op::RecurrentGrad(step) => recurrent(step, y[0], y[1]).saturating_mul(2),
        // Three interpolations of a difference, a product and a sum; backwards, four products and sums.
        Op::Resize(Resize { bilinear: true, .. }) => product(&[9, count(y[0])]),
        Op::ResizeGrad(Resize { bilinear: true, .. }, _) => product(&[8, count(x[0])]),
        Op::ResizeGrad(..) => product(x[0]),
        _ => 0,
    }
}

/// The product with the recurrent kernel, the sum with the input's, and a function and a product for each gate.
fn recurrent(step: &Recurrent, x: &[usize], kernel: &[usize]) -> u64 {
    let products = if step.cell == (Cell::Gru { reset_after: false }) { 2 } else { 1 };
    product(&[2 * products * kernel[0], count(x)]).saturating_add(product(&[3, count(x)]))
}

/// A row of each id is added, weighted if there are weights, and the combined row is divided.
fn looked_up(combiner: Combiner, x: &[&[usize]], combined: &[usize]) -> u64 {
    let width = count(&combined[1..]);
    let divided = if combiner == Combiner::Sum { 0 } else { product(combined) };
    product(&[count(x[1]), width, if x.len() > 3 { 2 } else { 1 }]) + divided
}

/// An update reads and writes a variable and its slots: all of it, or the rows that have a gradient, each once as the host makes
/// them. 2 operations change an element of the variable, and 4 one of a slot.
fn update(program: &Program, apply: &Apply, x: &[&[usize]], moved: Cost) -> Cost {
    let body = program.body();
    let config = &body.optimizers()[apply.optimizer.0 as usize];
    let whole = count(&body.variables().spec(apply.variable).dims);
    let changed = match x {
        [_, rows] if !config.decays_all_rows() => count(rows),
        _ => whole,
    };
    let n_slots = apply.slots.len();
    let state = product(&[changed, 1 + n_slots, size_of::<f32>()]);
    Cost { read: moved.read.saturating_add(state), written: state, flops: product(&[changed, 2 + 4 * n_slots]) }
}
