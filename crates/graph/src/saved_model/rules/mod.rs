//! What each of TensorFlow's ops becomes: one rule for each, by family.
//!
//! A rule takes a node's inputs in the form it wants (a tensor, known integers, sizes) and returns the node's outputs. Ops with
//! TensorFlow's own meaning are one node of ours; others are compositions of ours.

mod arithmetic;
mod elementwise;
mod example;
mod image;
mod index;
mod joining;
mod product;
mod reduce;
mod segment;
mod shaping;
mod slicing;
mod source;
mod sparse;
pub(super) mod table;
mod text;

use estimand_tensor::{Binary, Unary};

use super::call::{Call, Outputs};

/// How the nodes of an op are read.
pub(super) type Rule = fn(&mut Call<'_, '_>) -> Outputs;

/// The rule of an op.
pub(super) fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "Const" => source::constant,
        "Placeholder" | "PlaceholderV2" => source::placeholder,
        "Identity" | "PlaceholderWithDefault" | "EnsureShape" | "Snapshot" | "PreventGradient" => source::identity,
        "StopGradient" => source::stop_gradient,
        "IdentityN" => source::identity_n,
        "VarHandleOp" => source::handle,
        "VariableV2" | "Variable" => source::variable,
        "ReadVariableOp" => source::read_variable,
        "VariableShape" => source::variable_shape,
        "Shape" => source::shape,
        "ShapeN" => source::shape_n,
        "Size" => source::size,
        "Rank" => source::rank,
        "Fill" => source::fill,
        "ZerosLike" | "OnesLike" => source::like,
        "Range" => source::range,
        "RandomUniform" | "RandomStandardNormal" | "TruncatedNormal" | "RandomUniformInt" => source::random,

        "Cast" => elementwise::cast,
        "Select" => elementwise::select_rows,
        "SelectV2" => elementwise::select,
        "BiasAdd" => elementwise::bias_add,
        "AddN" => elementwise::add_n,
        "LeakyRelu" => elementwise::leaky_relu,
        "ClipByValue" => elementwise::clip,
        "Div" => elementwise::div,
        "Print" => elementwise::print,
        "Bucketize" => elementwise::bucketize,
        "Add" => elementwise::binary,
        _ if unary(op).is_some() => elementwise::unary,
        _ if binary(op).is_some() => elementwise::binary,

        "Reshape" => shaping::reshape,
        "ExpandDims" => shaping::expand_dims,
        "Squeeze" => shaping::squeeze,
        "Transpose" => shaping::transpose,
        "BroadcastTo" => shaping::broadcast_to,
        "Tile" => shaping::tile,
        "Pad" | "PadV2" => shaping::pad,
        "MirrorPad" | "MirrorPadGrad" => shaping::mirror_pad,
        "ReverseV2" => shaping::reverse,
        "BroadcastGradientArgs" => shaping::broadcast_gradient_axes,

        "ConcatV2" => joining::concat,
        "Concat" => joining::concat_axis_first,
        "Pack" => joining::pack,
        "Unpack" => joining::unpack,
        "Split" => joining::split,
        "SplitV" => joining::split_sizes,

        "Slice" => slicing::slice,
        "StridedSlice" => slicing::strided_slice,
        "StridedSliceGrad" => slicing::strided_slice_grad,

        "Sum" | "Mean" | "Prod" | "Max" | "Min" | "All" | "Any" => reduce::reduce,
        "ArgMax" | "ArgMin" => reduce::arg_max,
        "Cumsum" | "Cumprod" => reduce::cumulate,
        "TopKV2" => reduce::top_k,
        "Softmax" | "LogSoftmax" => reduce::softmax,
        "SoftmaxCrossEntropyWithLogits" | "SparseSoftmaxCrossEntropyWithLogits" => reduce::cross_entropy,

        "MatMul" => product::matmul,
        "BatchMatMul" | "BatchMatMulV2" => product::batch_matmul,
        "Conv2D" | "DepthwiseConv2dNative" => product::convolution,
        "Conv2DBackpropInput" | "DepthwiseConv2dNativeBackpropInput" => product::convolution_input_gradient,
        "Conv2DBackpropFilter" | "DepthwiseConv2dNativeBackpropFilter" => product::convolution_filter_gradient,
        "FusedBatchNorm" | "FusedBatchNormV2" | "FusedBatchNormV3" => product::batch_norm,

        "MaxPool" | "AvgPool" | "MaxPoolGrad" => image::pool,
        "AvgPoolGrad" => image::avg_pool_gradient,
        "ResizeBilinear" | "ResizeNearestNeighbor" => image::resize,
        "ResizeBilinearGrad" | "ResizeNearestNeighborGrad" => image::resize_gradient,

        "GatherV2" | "Gather" => index::gather,
        "ResourceGather" => index::resource_gather,
        "GatherNd" => index::gather_nd,
        "ScatterNd" => index::scatter_nd,
        "OneHot" => index::one_hot,
        "Where" => index::where_true,
        "Unique" => index::unique,
        "DynamicPartition" => index::partition,
        "DynamicStitch" | "ParallelDynamicStitch" => index::stitch,

        "UnsortedSegmentSum" | "UnsortedSegmentMax" | "UnsortedSegmentMin" | "UnsortedSegmentProd" => segment::unsorted,
        "DenseBincount" => segment::bincount,
        "SegmentSum" | "SegmentMean" | "SegmentMax" | "SegmentMin" | "SegmentProd" => segment::sorted,
        "SparseSegmentSum" | "SparseSegmentMean" | "SparseSegmentSqrtN" => segment::sparse,
        "SparseSegmentSumWithNumSegments"
        | "SparseSegmentMeanWithNumSegments"
        | "SparseSegmentSqrtNWithNumSegments" => segment::sparse,

        "SparseSegmentSumGrad" | "SparseSegmentMeanGrad" | "SparseSegmentSqrtNGrad" => segment::sparse_gradient,

        "SparseReshape" => sparse::reshape,
        "SparseFillEmptyRows" => sparse::fill_empty_rows,
        "SparseToDense" => sparse::to_dense,
        "SparseSlice" => sparse::slice,
        "SparseConcat" => sparse::concat,
        "SparseReorder" => sparse::reorder,
        "SparseCross" | "SparseCrossV2" => sparse::cross,
        "SparseTensorDenseMatMul" => sparse::dense_matmul,
        "RaggedTensorToSparse" => sparse::from_ragged,
        "RaggedTensorToTensor" => sparse::ragged_to_dense,

        "StringToHashBucketFast" | "StringToHashBucketStrong" => text::hash_bucket,
        "AsString" => text::as_string,
        "StringLower" | "StringUpper" | "StringStrip" | "Substr" | "StaticRegexReplace" | "RegexReplace" => text::edit,
        "StaticRegexFullMatch" | "RegexFullMatch" => text::full_match,
        "StringToNumber" => text::to_number,
        "StringLength" => text::length,
        "StringSplitV2" => text::split,
        "StringJoin" => text::join,
        "ReduceJoin" => text::reduce_join,

        "HashTableV2" | "HashTable" => table::table,
        "LookupTableFindV2" | "LookupTableFind" => table::find,
        "LookupTableSizeV2" | "LookupTableSize" => table::size,

        "ParseExampleV2" => example::parse,
        "ParseExample" => example::parse_first,
        _ => return None,
    })
}

/// Whether an op fills a table: such nodes run before everything else.
pub(super) fn fills_table(op: &str) -> bool {
    table::FILLERS.contains(&op)
}

/// The element-wise op of a name.
fn unary(op: &str) -> Option<Unary> {
    Unary::ALL.iter().copied().find(|unary| unary.tf_name() == op)
}

/// The element-wise op of a name.
fn binary(op: &str) -> Option<Binary> {
    match op {
        "Add" => Some(Binary::Add),
        _ => Binary::ALL.iter().copied().find(|binary| binary.tf_name() == op),
    }
}
