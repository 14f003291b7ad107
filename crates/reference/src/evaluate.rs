//! Evaluates one node: selects the kernel of its op.

use std::io::Write;
use std::sync::Arc;

use estimand_graph::Node;
use estimand_graph::draw::Position;
use estimand_graph::op::*;
use estimand_graph::sizes::{Sizes, resolve, resolve_dim};
use estimand_tensor::{Array, DType, Dims, Error, Result};

use super::value::Wide;
use super::{combine, elementwise, index, layout, product, recurrent, reduce, resize, softmax, window};

/// Computes a node's results from its inputs.
pub(super) fn evaluate(node: &Node, inputs: &[Arc<Wide>], sizes: &Sizes, position: Position) -> Result<Vec<Wide>> {
    let x: Vec<&Wide> = inputs.iter().map(Arc::as_ref).collect();
    let dims: Dims = match node.outputs.first() {
        Some(spec) => resolve(&spec.shape, sizes)?,
        None => Dims::new(),
    };
    let one = |result: Wide| Ok(vec![result]);
    match &node.op {
        Op::DimSize(DimSize { dim, dtype }) => one(Wide::counts(*dtype, &[], [resolve_dim(*dim, sizes)?].into_iter())),
        Op::Range(Range { size: dim, dtype }) => one(Wide::counts(*dtype, &dims, 0..resolve_dim(*dim, sizes)?)),
        Op::Random(Random { kind, key, .. }) => one(random(*kind, key, &dims, position)),

        Op::Unary(op) => one(elementwise::unary(*op, x[0])?),
        Op::Binary(op) => one(elementwise::binary(*op, x[0], x[1], &dims)?),
        Op::Select(_) => one(elementwise::select(x[0], x[1], x[2], &dims)?),
        Op::Cast(Cast { to }) => one(elementwise::cast(x[0], *to)?),
        Op::StopGradient(_) => one(x[0].clone()),
        Op::Print(Print { label }) => {
            // A failed write to stderr is ignored: nothing depends on it.
            let _ = writeln!(std::io::stderr(), "{label}: {}", x[0].to_array()?);
            one(x[0].clone())
        }

        Op::Reshape(_) => one(x[0].reshape(&dims)?),
        Op::BroadcastTo(_) => one(x[0].broadcast_to(&dims)?),
        Op::SumTo(_) => one(layout::sum_to(x[0], x[1].dims())?),
        Op::Transpose(Transpose { perm }) => one(layout::transpose(x[0], perm)),
        Op::Concat(Concat { axis }) => one(layout::concat(*axis, &x)?),
        Op::Slice(Slice { begin, .. }) => one(layout::slice(x[0], begin, &dims)?),
        Op::StridedSlice(StridedSlice { begin, strides, .. }) => {
            one(layout::strided_slice(x[0], begin, strides, &dims)?)
        }
        Op::StridedSliceGrad(StridedSliceGrad { begin, strides, .. }) => {
            one(layout::strided_slice_grad(x[0], begin, strides, &dims)?)
        }
        Op::Pad(Pad { before, .. }) => one(layout::pad(x[0], x[1], &resolve(before, sizes)?, &dims)?),
        Op::MirrorPad(MirrorPad { paddings, symmetric }) => one(layout::mirror_pad(x[0], paddings, *symmetric, &dims)),
        Op::MirrorPadGrad(MirrorPadGrad { paddings, symmetric }) => {
            one(layout::mirror_pad_grad(x[0], paddings, *symmetric, &dims)?)
        }
        Op::Tile(_) => one(layout::tile(x[0], &dims)),
        Op::Reverse(Reverse { axes }) => one(layout::reverse(x[0], *axes)),
        Op::BandPart(BandPart { lower, upper }) => one(layout::band_part(x[0], *lower, *upper)),

        Op::Reduce(Reduce { kind, axes, .. }) => one(reduce::reduce(*kind, x[0], *axes, &dims)?),
        Op::ArgMax(ArgMax { axis, min, output }) => one(reduce::arg_max(x[0], *axis, *min, *output, &dims)?),
        Op::Cumulate(Cumulate { product, axis, exclusive, reverse }) => {
            one(reduce::cumulate(x[0], *product, *axis, *exclusive, *reverse)?)
        }
        Op::TopK(TopK { k }) => Ok(reduce::top_k(x[0], *k)?.into()),

        Op::MatMul(MatMul { transpose_a: a, transpose_b: b })
        | Op::BatchMatMul(BatchMatMul { adjoint_x: a, adjoint_y: b }) => {
            one(product::matmul(x[0], x[1], *a, *b, &dims)?)
        }
        Op::Conv2d(Conv2d { window: w }) => one(window::convolve(w, false, x[0], x[1])?),
        Op::Conv2dBackpropInput(Conv2dBackpropInput { window: w, .. }) => {
            one(window::backprop_input(w, false, x[0], x[1], &dims)?)
        }
        Op::Conv2dBackpropFilter(Conv2dBackpropFilter { window: w, .. }) => {
            one(window::backprop_filter(w, false, x[0], x[1], &dims)?)
        }
        Op::DepthwiseConv2d(DepthwiseConv2d { window: w }) => one(window::convolve(w, true, x[0], x[1])?),
        Op::DepthwiseConv2dBackpropInput(DepthwiseConv2dBackpropInput { window: w, .. }) => {
            one(window::backprop_input(w, true, x[0], x[1], &dims)?)
        }
        Op::DepthwiseConv2dBackpropFilter(DepthwiseConv2dBackpropFilter { window: w, .. }) => {
            one(window::backprop_filter(w, true, x[0], x[1], &dims)?)
        }
        Op::MaxPool(MaxPool { window: w }) => one(window::max_pool(w, x[0])?),
        Op::MaxPoolGrad(MaxPoolGrad { window: w }) => one(window::max_pool_grad(w, x[0], x[2])?),
        Op::AvgPool(AvgPool { window: w }) => one(window::avg_pool(w, x[0])?),
        Op::AvgPoolGrad(AvgPoolGrad { window: w, .. }) => one(window::avg_pool_grad(w, x[0], &dims)?),

        Op::Softmax(_) => one(softmax::softmax(x[0])?),
        Op::LogSoftmax(_) => one(softmax::log_softmax(x[0])?),
        Op::SoftmaxCrossEntropy(_) => Ok(softmax::cross_entropy(x[0], x[1])?.into()),
        Op::SparseSoftmaxCrossEntropy(_) => Ok(softmax::sparse_cross_entropy(x[0], x[1])?.into()),

        Op::Gather(Gather { axis, batch_dims }) => one(index::gather(x[0], x[1], *axis, *batch_dims)?),
        Op::GatherNd(_) => one(index::gather_nd(x[0], x[1])?),
        Op::ScatterNd(_) => one(index::scatter_nd(x[0], x[1], &dims)?),
        Op::UnsortedSegment(UnsortedSegment { kind, .. }) => one(index::segments(*kind, x[0], x[1], &dims)?),
        Op::SparseSegment(SparseSegment { combiner }) => one(combine::combine(*combiner, &x, &dims)?),
        Op::SparseSegmentGrad(SparseSegmentGrad { combiner, .. }) => one(combine::gradient(*combiner, &x, &dims)?),
        Op::OneHot(OneHot { axis, .. }) => one(index::one_hot(x[0], x[1], x[2], *axis, &dims)?),

        Op::Recurrent(step) => recurrent::forward(step, &x),
        Op::RecurrentGrad(gradient) => recurrent::gradient(&gradient.0, &x),

        Op::Resize(r) => one(resize::resize(r, x[0], &dims)?),
        Op::ResizeGrad(ResizeGrad { resize: r, .. }) => one(resize::resize_grad(r, x[0], &dims)?),

        Op::Custom(custom) => {
            let arrays: Vec<Array> = x.iter().map(|x| x.to_array()).collect::<Result<_>>()?;
            custom.call(&arrays, sizes)?.iter().map(Wide::from_array).collect()
        }
        Op::Host(_)
        | Op::Placeholder(_)
        | Op::Constant(_)
        | Op::Variable(_)
        | Op::Assign(_)
        | Op::Apply(_)
        | Op::Group(_) => Err(Error::internal(format!("{} is no step that computes", node.op.name()))),
    }
}

fn random(kind: RandomKind, key: &str, dims: &[usize], position: Position) -> Wide {
    let n = super::value::count(dims);
    if let RandomKind::Integers { low, high } = kind {
        let mut values = vec![0; n];
        position.draw_integers(low, high, key, dims, &mut values);
        return Wide::ints(DType::I64, dims, values);
    }
    let mut values = vec![0.0; n];
    position.draw_floats(kind, key, dims, &mut values);
    Wide::floats(DType::F32, dims, values.into_iter().map(f64::from).collect())
}
