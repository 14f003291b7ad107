//! The ops, a file for each family. The list of all ops is matched without a wildcard, so that a
//! new op is a compile error here.

mod elementwise;
mod image;
pub(crate) mod index;
mod pad;
mod product;
mod recurrent;
mod reduce;
pub(crate) mod segment;
mod shape;
mod slice;

use estimand_graph::Op;
use estimand_tensor::{Error, Result};

use crate::host;
use crate::message::AttributeProto;
use crate::node::NodeWriter;
use crate::refuse::no_counterpart;

/// Short for the writer that all ops take.
pub(crate) type At<'w, 'a, 's, 'r> = NodeWriter<'w, 'a, 's, 'r>;

const GRADIENT: &str = "it is part of a gradient, and an ONNX model only predicts";
const STATE: &str = "it changes variables, and an ONNX model only predicts";

/// Writes a node. Returns the names of its outputs.
pub(crate) fn write(at: &mut At<'_, '_, '_, '_>) -> Result<Vec<String>> {
    let one = match &at.node.op {
        Op::Placeholder(_) => return Err(Error::internal("a placeholder is fed, not written")),
        Op::Constant(constant) => at.constant(&constant.0)?,
        Op::Variable(variable) => {
            let name = &at.writer.body.variables().spec(variable.0).name;
            at.writer.variable(name)?
        }
        Op::DimSize(op) => shape::dim_size(at, op)?,
        Op::Range(op) => shape::range(at, op)?,
        Op::Random(_) => return no_counterpart(at, "the random numbers of a run depend on its step and seed"),

        Op::Unary(op) => elementwise::unary(at, *op)?,
        Op::Binary(op) => elementwise::binary(at, *op)?,
        Op::Select(_) => elementwise::select(at)?,
        Op::Cast(op) => {
            let x = at.x(0)?;
            at.cast(&x, at.dtype(0), op.to)
        }
        Op::StopGradient(_) => at.x(0)?,
        Op::Print(_) => return no_counterpart(at, "a runtime would print at every request"),

        Op::Reshape(_) => shape::reshape(at)?,
        Op::BroadcastTo(op) => shape::broadcast_to(at, op)?,
        Op::Transpose(op) => {
            let x = at.x(0)?;
            let perm: Vec<usize> = op.perm.iter().map(|&axis| axis.into()).collect();
            at.transpose(&x, &perm)
        }
        Op::Concat(op) => shape::concat(at, op)?,
        Op::Slice(op) => slice::slice(at, op)?,
        Op::StridedSlice(op) => slice::strided_slice(at, op)?,
        Op::Pad(op) => pad::pad(at, op)?,
        Op::MirrorPad(op) => pad::mirror_pad(at, op)?,
        Op::Tile(op) => shape::tile(at, op)?,
        Op::Reverse(op) => slice::reverse(at, op)?,
        Op::BandPart(op) => shape::band_part(at, op)?,

        Op::Reduce(op) => reduce::reduce(at, op)?,
        Op::ArgMax(op) => reduce::arg_max(at, op)?,
        Op::Cumulate(op) => reduce::cumulate(at, op)?,
        Op::TopK(op) => return reduce::top_k(at, op),

        Op::MatMul(op) => product::matmul(at, op)?,
        Op::BatchMatMul(op) => product::batch_matmul(at, op)?,
        Op::Conv2d(op) => image::conv2d(at, op)?,
        Op::Conv2dBackpropInput(op) => image::transposed_conv2d(at, op)?,
        Op::DepthwiseConv2d(op) => image::depthwise_conv2d(at, op)?,
        Op::MaxPool(op) => image::max_pool(at, op)?,
        Op::AvgPool(op) => image::avg_pool(at, op)?,
        Op::Resize(op) => image::resize(at, op)?,

        Op::Softmax(_) => over_last(at, "Softmax")?,
        Op::LogSoftmax(_) => over_last(at, "LogSoftmax")?,

        Op::Gather(op) => index::gather(at, op)?,
        Op::GatherNd(_) => index::gather_nd(at)?,
        Op::ScatterNd(op) => index::scatter_nd(at, op)?,
        Op::OneHot(op) => index::one_hot(at, op)?,
        Op::UnsortedSegment(op) => segment::unsorted_segment(at, op)?,
        Op::SparseSegment(op) => segment::sparse_segment(at, op)?,

        Op::Recurrent(op) => return recurrent::recurrent(at, op),
        Op::Host(op) => return host::write(at, op),

        Op::Custom(_) => return no_counterpart(at, "it is Rust code"),
        Op::Assign(_) | Op::Apply(_) | Op::Group(_) => return no_counterpart(at, STATE),
        Op::SoftmaxCrossEntropy(_) | Op::SparseSoftmaxCrossEntropy(_) => {
            return no_counterpart(at, "it is a loss, and an ONNX model only predicts");
        }
        Op::SumTo(_)
        | Op::StridedSliceGrad(_)
        | Op::MirrorPadGrad(_)
        | Op::Conv2dBackpropFilter(_)
        | Op::DepthwiseConv2dBackpropInput(_)
        | Op::DepthwiseConv2dBackpropFilter(_)
        | Op::MaxPoolGrad(_)
        | Op::AvgPoolGrad(_)
        | Op::SparseSegmentGrad(_)
        | Op::RecurrentGrad(_)
        | Op::ResizeGrad(_) => return no_counterpart(at, GRADIENT),
    };
    Ok(vec![one])
}

/// A function over the last axis.
fn over_last(at: &mut At<'_, '_, '_, '_>, op: &str) -> Result<String> {
    let x = at.x(0)?;
    Ok(at.add_with(op, &[&x], vec![AttributeProto::int("axis", -1)]))
}
