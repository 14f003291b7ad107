//! Dtypes and shapes of every op's results, or the error that says what does not fit.
//!
//! The table of rules is here; `expect` checks inputs, `shapes` and `windows` work out sizes.

pub(crate) mod expect;
mod recurrent;
mod shapes;
mod windows;

use estimand_tensor::{DType, Dim, Error, MAX_RANK, Result, Shape, TensorSpec, element_count};
use smallvec::{SmallVec, smallvec};

use crate::graph::NodeId;
use crate::host::Fresh;
use crate::op::{AxisSet, Op, RandomKind, Reduction};
use crate::symbols::Symbols;
use crate::variables::Variables;
use expect::*;
pub(crate) use recurrent::forward as recurrent_specs;
pub(crate) use shapes::broadcast;
use shapes::*;
use windows::*;

type Specs = SmallVec<[TensorSpec; 1]>;

/// The results of an op on inputs of these specs, if it becomes this node.
pub(crate) fn infer(
    op: &Op,
    inputs: &[&TensorSpec],
    symbols: &mut Symbols,
    variables: &Variables,
    node: NodeId,
) -> Result<Specs> {
    let outputs = match op {
        Op::Host(op) => op.rules().infer(inputs, &mut Fresh { symbols, node })?,
        _ => rule(op, inputs, symbols, variables)?,
    };
    for output in &outputs {
        check_shape(&output.shape, symbols)?;
    }
    Ok(outputs)
}

/// A shape has at most eight axes, known symbols, and known sizes that fit the address space.
pub(crate) fn check_shape(shape: &Shape, symbols: &Symbols) -> Result<()> {
    if shape.rank() > MAX_RANK {
        return Err(Error::shape(format!("{shape} has {} axes, at most {MAX_RANK} are supported", shape.rank())));
    }
    for dim in shape.dims() {
        if let Dim::Sym(s) = dim
            && s.0 as usize >= symbols.defs().len()
        {
            return Err(Error::shape(format!("{shape} uses a size that belongs to another graph")));
        }
    }
    let known: SmallVec<[usize; 8]> = shape.dims().iter().filter_map(|d| d.known()).collect();
    element_count(&known).map(drop)
}

fn one(dtype: DType, shape: Shape) -> Result<Specs> {
    Ok(smallvec![TensorSpec { dtype, shape }])
}

fn same(x: &TensorSpec) -> Result<Specs> {
    Ok(smallvec![x.clone()])
}

/// Checks (rows, index, row_splits, weights) and returns the number of ragged rows.
fn lookups(x: &[&TensorSpec], symbols: &mut Symbols) -> Result<Dim> {
    accepts(x[0].dtype.is_float(), x[0].dtype)?;
    integer_ids(x[1], "indices")?;
    expect_rank(1, x[1], "list of indices")?;
    expect_dtype(DType::I64, x[2], "list of row_splits")?;
    expect_rank(1, x[2], "list of row_splits")?;
    if let Some(weights) = x.get(3) {
        same_dtype(x[0], weights)?;
        expect_equal("list of weights", &weights.shape, &x[1].shape)?;
    }
    Ok(symbols.sub(x[2].shape.dims()[0], Dim::Known(1)))
}

fn known_differ(a: Dim, b: Dim) -> bool {
    matches!((a.known(), b.known()), (Some(a), Some(b)) if a != b)
}

fn rule(op: &Op, x: &[&TensorSpec], symbols: &mut Symbols, variables: &Variables) -> Result<Specs> {
    match op {
        Op::Placeholder | Op::Host(_) => Err(Error::internal(format!("{} has no rule of shapes here", op.name()))),
        Op::Constant(c) => one(c.0.dtype(), Shape::from(c.0.dims())),
        Op::Variable(id) => {
            let spec = variables.spec(*id);
            one(spec.dtype, Shape::from(&spec.dims[..]))
        }
        Op::DimSize(_, dtype) => {
            number(*dtype)?;
            one(*dtype, Shape::scalar())
        }
        Op::Range(dim, dtype) => {
            number(*dtype)?;
            one(*dtype, Shape::from([*dim]))
        }
        Op::Random { kind, shape, .. } => match kind {
            RandomKind::Integers { low, high } if low >= high => {
                Err(Error::config(format!("random integers in [{low}, {high}): the range is empty")))
            }
            RandomKind::Integers { .. } => one(DType::I64, shape.clone()),
            _ => one(DType::F32, shape.clone()),
        },

        Op::Unary(u) => {
            accepts(u.accepts(x[0].dtype), x[0].dtype)?;
            one(u.output(x[0].dtype), x[0].shape.clone())
        }
        Op::Binary(b) => {
            same_dtype(x[0], x[1])?;
            accepts(b.accepts(x[0].dtype), x[0].dtype)?;
            one(b.output(x[0].dtype), broadcast(&x[0].shape, &x[1].shape, symbols)?)
        }
        Op::Select => {
            expect_dtype(DType::Bool, x[0], "condition")?;
            same_dtype(x[1], x[2])?;
            let branches = broadcast(&x[1].shape, &x[2].shape, symbols)?;
            one(x[1].dtype, broadcast(&x[0].shape, &branches, symbols)?)
        }
        Op::Cast(to) => {
            let text = |d: DType| d == DType::Str;
            if text(*to) || text(x[0].dtype) {
                return Err(Error::dtype(None, x[0].dtype, format!("cannot cast {} to {to}", x[0].dtype))
                    .help("strings and numbers are converted by string ops"));
            }
            one(*to, x[0].shape.clone())
        }
        Op::StopGradient | Op::Print(_) => same(x[0]),

        Op::Reshape(shape) => {
            let shape = reshape(&x[0].shape, shape, symbols)?;
            one(x[0].dtype, shape)
        }
        Op::BroadcastTo(shape) => {
            // A symbol may turn out to be the size it meets, or 1: only the run can tell.
            let fits = |(from, to): (&Dim, &Dim)| from == to || matches!(from, Dim::Known(1) | Dim::Sym(_));
            let from = x[0].shape.dims();
            if from.len() > shape.rank() || !from.iter().rev().zip(shape.dims().iter().rev()).all(fits) {
                return Err(Error::shape(format!("{} cannot be broadcast to {shape}", x[0].shape)));
            }
            one(x[0].dtype, shape.clone())
        }
        Op::SumTo => {
            same_dtype(x[0], x[1])?;
            one(x[1].dtype, x[1].shape.clone())
        }
        Op::Transpose(perm) => {
            let rank = x[0].shape.rank();
            let mut seen = AxisSet::default();
            for &axis in perm {
                seen.0 |= 1u32.checked_shl(axis.into()).unwrap_or(0);
            }
            if perm.len() != rank || seen != AxisSet::all(rank) {
                return Err(Error::shape(format!(
                    "permutation {:?} of a tensor with {rank} axes; expected each of 0..{rank} once",
                    perm.as_slice()
                )));
            }
            one(x[0].dtype, perm.iter().map(|&a| x[0].shape.dims()[a as usize]).collect())
        }
        Op::Concat(axis) => concat(*axis, x, symbols),
        Op::Slice { begin, size } => {
            expect_rank_of(begin.len(), x[0], "begin")?;
            expect_rank_of(size.rank(), x[0], "size")?;
            for (axis, (&b, (&n, &d))) in begin.iter().zip(size.dims().iter().zip(x[0].shape.dims())).enumerate() {
                if let (Some(n), Some(d)) = (n.known(), d.known())
                    && b.checked_add(n).is_none_or(|end| end > d)
                {
                    return Err(Error::index(format!(
                        "slice {b}..{} of axis {axis}, which has size {d}",
                        b.saturating_add(n)
                    )));
                }
            }
            one(x[0].dtype, size.clone())
        }
        Op::StridedSlice { begin, strides, size } => {
            expect_rank_of(begin.len(), x[0], "begin")?;
            expect_rank_of(strides.len(), x[0], "strides")?;
            strided_bounds(begin, strides, size, &x[0].shape)?;
            one(x[0].dtype, Shape::from(&size[..]))
        }
        Op::StridedSliceGrad { begin, strides, shape } => {
            let size = x[0].shape.known().ok_or_else(|| Error::shape("a strided slice has known sizes"))?;
            strided_bounds(begin, strides, &size, shape)?;
            one(x[0].dtype, shape.clone())
        }
        Op::Pad { before, after } => {
            same_dtype(x[0], x[1])?;
            expect_rank(0, x[1], "padding value")?;
            expect_rank_of(before.rank(), x[0], "paddings")?;
            expect_rank_of(after.rank(), x[0], "paddings")?;
            let mut dims = Vec::new();
            for ((&d, &b), &a) in x[0].shape.dims().iter().zip(before.dims()).zip(after.dims()) {
                let with_before = symbols.add(d, b)?;
                dims.push(symbols.add(with_before, a)?);
            }
            one(x[0].dtype, dims.into_iter().collect())
        }
        Op::MirrorPad { paddings, symmetric } => mirror_pad(x[0], paddings, *symmetric),
        Op::MirrorPadGrad { paddings, .. } => {
            expect_rank_of(paddings.len(), x[0], "paddings")?;
            let inner = |(&d, &(b, a)): (&Dim, &(usize, usize))| match (d, b + a) {
                (d, 0) => Some(d),
                (d, border) => d.known()?.checked_sub(border).map(Dim::Known),
            };
            let dims: Option<Vec<Dim>> = x[0].shape.dims().iter().zip(paddings).map(inner).collect();
            let dims = dims.ok_or_else(|| Error::shape("mirror padding needs known sizes"))?;
            one(x[0].dtype, dims.into_iter().collect())
        }
        Op::Tile(multiples) => {
            expect_rank_of(multiples.len(), x[0], "multiples")?;
            let mut dims = Vec::new();
            for (&d, &m) in x[0].shape.dims().iter().zip(multiples) {
                dims.push(symbols.mul(d, Dim::Known(m))?);
            }
            one(x[0].dtype, dims.into_iter().collect())
        }
        Op::Reverse(axes) => {
            within_rank(*axes, x[0])?;
            same(x[0])
        }

        Op::Reduce { kind, axes, keep_dims } => {
            accepts(kind.accepts(x[0].dtype), x[0].dtype)?;
            within_rank(*axes, x[0])?;
            let kept = |(axis, &d): (usize, &Dim)| match (axes.contains(axis), keep_dims) {
                (false, _) => Some(d),
                (true, true) => Some(Dim::Known(1)),
                (true, false) => None,
            };
            one(x[0].dtype, x[0].shape.dims().iter().enumerate().filter_map(kept).collect())
        }
        Op::ArgMax { axis, output, .. } => {
            accepts(x[0].dtype.is_number(), x[0].dtype)?;
            accepts(matches!(output, DType::I32 | DType::I64), *output)?;
            let axis = axis_of(*axis, x[0])?;
            if x[0].shape.dims()[axis] == Dim::Known(0) {
                return Err(Error::shape(format!(
                    "axis {axis} of {} is empty: there is no largest element",
                    x[0].shape
                )));
            }
            let mut shape = x[0].shape.clone();
            shape.0.remove(axis);
            one(*output, shape)
        }
        Op::Cumulate { axis, .. } => {
            accepts(x[0].dtype.is_number(), x[0].dtype)?;
            axis_of(*axis, x[0])?;
            same(x[0])
        }
        Op::TopK(k) => {
            accepts(x[0].dtype.is_number(), x[0].dtype)?;
            let mut shape = x[0].shape.clone();
            let Some(last) = shape.0.last_mut() else {
                return Err(Error::shape("top_k of a single number; expected at least one axis"));
            };
            if last.known().is_some_and(|n| *k > n) {
                return Err(Error::shape(format!("top_k: k = {k} but the last axis has {last} elements")));
            }
            *last = Dim::Known(*k);
            Ok(smallvec![
                TensorSpec { dtype: x[0].dtype, shape: shape.clone() },
                TensorSpec { dtype: DType::I32, shape }
            ])
        }

        Op::MatMul { transpose_a, transpose_b } => {
            floats(x)?;
            expect_rank(2, x[0], "first matrix")?;
            expect_rank(2, x[1], "second matrix")?;
            let shape = product_shape(x, *transpose_a, *transpose_b)?;
            one(x[0].dtype, shape)
        }
        Op::BatchMatMul { adjoint_x, adjoint_y } => {
            floats(x)?;
            if x[0].shape.rank() < 2 || x[1].shape.rank() < 2 {
                return Err(Error::shape(format!("{} and {}: both need two axes or more", x[0].shape, x[1].shape)));
            }
            let matrix = product_shape(x, *adjoint_x, *adjoint_y)?;
            let lead = |s: &Shape| s.dims()[..s.rank() - 2].iter().copied().collect::<Shape>();
            let mut shape = broadcast(&lead(&x[0].shape), &lead(&x[1].shape), symbols)?;
            shape.0.extend(matrix.0);
            one(x[0].dtype, shape)
        }
        Op::Conv2d(window) => {
            floats(x)?;
            let shape = conv_shape(window, &x[0].shape, &x[1].shape, false, symbols)?;
            one(x[0].dtype, shape)
        }
        Op::Conv2dBackpropInput(window, shape) => {
            floats(x)?;
            expect_equal("gradient", &x[1].shape, &conv_shape(window, shape, &x[0].shape, false, symbols)?)?;
            one(x[1].dtype, shape.clone())
        }
        Op::Conv2dBackpropFilter(window, shape) => {
            floats(x)?;
            expect_equal("gradient", &x[1].shape, &conv_shape(window, &x[0].shape, shape, false, symbols)?)?;
            one(x[0].dtype, shape.clone())
        }
        Op::DepthwiseConv2d(window) => {
            floats(x)?;
            let shape = conv_shape(window, &x[0].shape, &x[1].shape, true, symbols)?;
            one(x[0].dtype, shape)
        }
        Op::DepthwiseConv2dBackpropInput(window, shape) => {
            floats(x)?;
            expect_equal("gradient", &x[1].shape, &conv_shape(window, shape, &x[0].shape, true, symbols)?)?;
            one(x[1].dtype, shape.clone())
        }
        Op::DepthwiseConv2dBackpropFilter(window, shape) => {
            floats(x)?;
            expect_equal("gradient", &x[1].shape, &conv_shape(window, &x[0].shape, shape, true, symbols)?)?;
            one(x[0].dtype, shape.clone())
        }
        Op::MaxPool(window) | Op::AvgPool(window) => {
            floats(x)?;
            let shape = pool_shape(window, &x[0].shape, symbols)?;
            one(x[0].dtype, shape)
        }
        Op::MaxPoolGrad(window) => {
            floats(x)?;
            let pooled = pool_shape(window, &x[0].shape, symbols)?;
            expect_equal("output", &x[1].shape, &pooled)?;
            expect_equal("gradient", &x[2].shape, &pooled)?;
            same(x[0])
        }
        Op::AvgPoolGrad(window, shape) => {
            floats(x)?;
            expect_equal("gradient", &x[0].shape, &pool_shape(window, shape, symbols)?)?;
            one(x[0].dtype, shape.clone())
        }

        Op::Softmax | Op::LogSoftmax => {
            floats(x)?;
            if x[0].shape.rank() == 0 {
                return Err(Error::shape("a single number; expected at least one axis"));
            }
            same(x[0])
        }
        Op::SoftmaxCrossEntropy => {
            floats(x)?;
            expect_rank(2, x[0], "logits")?;
            expect_equal("labels", &x[1].shape, &x[0].shape)?;
            losses(x[0])
        }
        Op::SparseSoftmaxCrossEntropy => {
            floats(&x[..1])?;
            expect_rank(2, x[0], "logits")?;
            integer_ids(x[1], "labels")?;
            if x[1].shape.dims() != &x[0].shape.dims()[..1] {
                return Err(Error::shape(format!(
                    "labels {} for logits {}; expected one label a row, [{}]",
                    x[1].shape,
                    x[0].shape,
                    x[0].shape.dims()[0]
                )));
            }
            losses(x[0])
        }

        Op::Gather { axis, batch_dims } => {
            integer_ids(x[1], "indices")?;
            let axis = axis_of(*axis, x[0])?;
            let (p, i) = (x[0].shape.dims(), x[1].shape.dims());
            if *batch_dims > axis || *batch_dims > i.len() || p[..*batch_dims] != i[..*batch_dims] {
                return Err(Error::shape(format!(
                    "batch_dims = {batch_dims} with axis {axis}: params {} and indices {} do not share their first {batch_dims} axes",
                    x[0].shape, x[1].shape
                )));
            }
            one(x[0].dtype, p[..axis].iter().chain(&i[*batch_dims..]).chain(&p[axis + 1..]).copied().collect())
        }
        Op::GatherNd => {
            let depth = index_depth(x[1], &x[0].shape)?;
            let i = x[1].shape.dims();
            one(x[0].dtype, i[..i.len() - 1].iter().chain(&x[0].shape.dims()[depth..]).copied().collect())
        }
        Op::ScatterNd(shape) => {
            accepts(x[1].dtype.is_number(), x[1].dtype)?;
            let depth = index_depth(x[0], shape)?;
            let i = x[0].shape.dims();
            let expected: Shape = i[..i.len() - 1].iter().chain(&shape.dims()[depth..]).copied().collect();
            expect_equal("updates", &x[1].shape, &expected)?;
            one(x[1].dtype, shape.clone())
        }
        Op::UnsortedSegment { kind, num_segments } => {
            integer_ids(x[1], "segment ids")?;
            accepts(x[0].dtype.is_number(), x[0].dtype)?;
            if !matches!(kind, Reduction::Sum | Reduction::Max | Reduction::Min | Reduction::Prod) {
                return Err(Error::config(format!("segments have no {}", kind.tf_name())));
            }
            let rank = x[1].shape.rank();
            if x[0].shape.rank() < rank || x[0].shape.dims()[..rank] != *x[1].shape.dims() {
                return Err(Error::shape(format!(
                    "data {} and segment ids {}: the ids' shape must begin the data's",
                    x[0].shape, x[1].shape
                )));
            }
            one(x[0].dtype, [*num_segments].iter().chain(&x[0].shape.dims()[rank..]).copied().collect())
        }
        Op::SparseSegment(_) => {
            let n_rows = lookups(x, symbols)?;
            if x[0].shape.rank() == 0 {
                return Err(Error::shape(format!("the rows are {}, expected at least one axis", x[0])));
            }
            one(x[0].dtype, [n_rows].iter().chain(&x[0].shape.dims()[1..]).copied().collect())
        }
        Op::SparseSegmentGrad(_, n_rows) => {
            let n_segments = lookups(x, symbols)?;
            if x[0].shape.rank() == 0 || (known_differ(x[0].shape.dims()[0], n_segments)) {
                return Err(Error::shape(format!("the gradient is {}, expected {n_segments} rows", x[0])));
            }
            one(x[0].dtype, [*n_rows].iter().chain(&x[0].shape.dims()[1..]).copied().collect())
        }
        Op::OneHot { depth, axis } => {
            integer_ids(x[0], "indices")?;
            same_dtype(x[1], x[2])?;
            expect_rank(0, x[1], "on value")?;
            expect_rank(0, x[2], "off value")?;
            if *axis > x[0].shape.rank() {
                return Err(Error::shape(format!("one_hot axis {axis} of indices {}", x[0].shape)));
            }
            let mut shape = x[0].shape.clone();
            shape.0.insert(*axis, Dim::Known(*depth));
            one(x[1].dtype, shape)
        }

        Op::Recurrent(step) => recurrent::forward(step, x),
        Op::RecurrentGrad(step) => recurrent::gradient(step, x),

        Op::Resize(r) => {
            expect_dtype(DType::F32, x[0], "image")?;
            expect_rank(4, x[0], "image")?;
            if r.size.0 == 0 || r.size.1 == 0 {
                return Err(Error::config(format!("resize to {:?}: sizes must be positive", r.size)));
            }
            let d = x[0].shape.dims();
            one(x[0].dtype, Shape::from([d[0], r.size.0.into(), r.size.1.into(), d[3]]))
        }
        Op::ResizeGrad(_, shape) => {
            expect_rank(4, x[0], "gradient")?;
            one(x[0].dtype, shape.clone())
        }

        Op::Custom(custom) => Ok(custom.outputs.iter().cloned().collect()),
        Op::Assign(id) => {
            let spec = variables.spec(*id);
            let expected = Shape::from(&spec.dims[..]);
            expect_dtype(spec.dtype, x[0], "value")?;
            if x[0].shape != expected {
                return Err(Error::shape(format!(
                    "a value of {} for variable `{}`, which is {expected}",
                    x[0].shape, spec.name
                )));
            }
            Ok(smallvec![])
        }
        Op::Apply(apply) => {
            let spec = variables.spec(apply.variable);
            let gradient = x[x.len() - 1];
            expect_dtype(spec.dtype, gradient, "gradient")?;
            let expected = Shape::from(&spec.dims[..]);
            let fits = match x {
                [dense] => dense.shape == expected,
                [ids, rows] => {
                    rows.shape.rank() == expected.rank()
                        && rows.shape.dims()[1..] == expected.dims()[1..]
                        && ids.shape.rank() == 1
                        && ids.shape.dims()[0] == rows.shape.dims()[0]
                }
                _ => false,
            };
            if !fits {
                return Err(Error::shape(format!(
                    "a gradient of {} for variable `{}`, which is {expected}",
                    gradient.shape, spec.name
                )));
            }
            Ok(smallvec![])
        }
        Op::Group => Ok(smallvec![]),
    }
}
