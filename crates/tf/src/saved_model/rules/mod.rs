//! The read rules of TensorFlow's ops.
//!
//! An op with the same semantics as one of ours becomes one node, and our op's file (`op/`) reads
//! it. Other ops become compositions; their rules are here, by family. A rule takes a node's inputs
//! in the form it needs (a tensor, known integers, sizes) and returns the node's outputs. Integers
//! that are sizes are tracked before any rule runs (`follow`).

mod arithmetic;
mod batch_norm;
mod blocks;
mod body;
mod branch;
mod einsum;
mod elementwise;
mod example;
mod follow;
mod index;
mod joining;
mod list;
pub(super) mod loops;
mod segment;
mod shaping;
mod slicing;
mod source;
mod sparse;
pub(super) mod table;
mod text;
mod while_loop;

use std::collections::HashMap;
use std::sync::LazyLock;

use estimand_graph::op::reading::ReadRule;
use estimand_tensor::Error;

use super::checks::Check;
use super::composed;
use super::node_reader::{NodeReader, Outputs, one};

/// A rule that reads an op as a composition.
type Rule = fn(&mut NodeReader<'_, '_>) -> Outputs;

/// Reads a node.
pub(super) fn read(call: &mut NodeReader<'_, '_>) -> Outputs {
    if let Some(check) = Check::of(call.reader.nodes, call.def) {
        return check.read(call);
    }
    if let Some(outputs) = composed::read(call)? {
        return Ok(outputs);
    }
    if let Some(items) = follow::follow(call)? {
        return Ok(items);
    }
    if let Some(ids) = table::with_buckets(call)? {
        return one(ids);
    }
    let def = call.def;
    match (own(&def.op), composed(&def.op)) {
        (Some(rule), _) => Ok(rule(call)?.into_iter().map(Into::into).collect()),
        (None, Some(rule)) => rule(call),
        (None, None) => Err(Error::internal("an op without a rule")),
    }
}

/// Whether the nodes of an op can be read.
pub(super) fn is_known(op: &str) -> bool {
    own(op).is_some() || composed(op).is_some()
}

/// The read rule of an op that corresponds to one of ours.
fn own(op: &str) -> Option<ReadRule> {
    static OWN: LazyLock<HashMap<&str, ReadRule>> = LazyLock::new(|| estimand_graph::op::readers().collect());
    OWN.get(op).copied()
}

/// The rule of an op that becomes several of ours, or none.
fn composed(op: &str) -> Option<Rule> {
    Some(match op {
        "Const" => source::constant,
        "Placeholder" | "PlaceholderV2" => source::placeholder,
        "Identity" | "PlaceholderWithDefault" | "EnsureShape" | "Snapshot" | "PreventGradient" => source::identity,
        "IdentityN" => source::identity_n,
        "VarHandleOp" => source::handle,
        "VariableV2" | "Variable" => source::variable,
        "ReadVariableOp" => source::read_variable,
        "VariableShape" => source::variable_shape,
        "RestoreV2" => source::restore,
        "Shape" => source::shape,
        "ShapeN" => source::shape_n,
        "Size" => source::size,
        "Rank" => source::rank,
        "Fill" => source::fill,
        "ZerosLike" | "OnesLike" => source::like,
        "Range" => source::range,

        "Select" => elementwise::select_rows,
        "BiasAdd" => elementwise::bias_add,
        "AddN" => elementwise::add_n,
        "LeakyRelu" => elementwise::leaky_relu,
        "Erfc" => elementwise::erfc,
        "IsInf" => elementwise::is_inf,
        "Sinh" => elementwise::sinh,
        "Cosh" => elementwise::cosh,
        "Tan" => elementwise::tan,
        "Asinh" => elementwise::asinh,
        "Acosh" => elementwise::acosh,
        "Atanh" => elementwise::atanh,
        "Bitcast" => elementwise::bitcast,
        "BitwiseAnd" => elementwise::bitwise_and,
        "ClipByValue" => elementwise::clip,
        "Div" => elementwise::div,
        "Bucketize" => elementwise::bucketize,

        "ExpandDims" => shaping::expand_dims,
        "Squeeze" => shaping::squeeze,
        "Tile" => shaping::tile,
        "BroadcastGradientArgs" => shaping::broadcast_gradient_axes,

        "Pack" => joining::pack,
        "Unpack" => joining::unpack,
        "Split" => joining::split,
        "SplitV" => joining::split_sizes,
        "Roll" => joining::roll,

        "Slice" => slicing::slice,
        "StridedSlice" => slicing::strided_slice,
        "StridedSliceGrad" => slicing::strided_slice_grad,

        "SpaceToBatchND" => blocks::space_to_batch,
        "BatchToSpaceND" => blocks::batch_to_space,

        "Einsum" => einsum::einsum,
        "FusedBatchNorm" | "FusedBatchNormV2" | "FusedBatchNormV3" => batch_norm::batch_norm,

        "ResourceGather" => index::resource_gather,
        "Where" => index::where_true,
        "Unique" => index::unique,
        "DynamicPartition" => index::partition,
        "DynamicStitch" | "ParallelDynamicStitch" => index::stitch,

        "DenseBincount" => segment::bincount,
        "RaggedBincount" => segment::ragged_bincount,
        "SegmentSum" | "SegmentMean" | "SegmentMax" | "SegmentMin" | "SegmentProd" => segment::sorted,

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

        "HashTableV2" | "HashTable" | "MutableHashTableV2" => table::table,
        "LookupTableFindV2" | "LookupTableFind" => table::find,
        "LookupTableSizeV2" | "LookupTableSize" => table::size,

        "StatelessWhile" | "While" => loops::read_while,
        "StatelessIf" | "If" => branch::read_if,
        "TensorListReserve" => list::reserve,
        "TensorListFromTensor" => list::from_tensor,
        "TensorListStack" => list::stack,
        "TensorListGetItem" => list::get_item,
        "TensorListSetItem" => list::set_item,
        "TensorListLength" => list::length,

        "ParseExampleV2" => example::parse,
        "ParseExample" => example::parse_first,
        _ => return None,
    })
}

/// Whether an op fills a table. Such nodes run before all others.
pub(super) fn fills_table(op: &str) -> bool {
    table::FILLERS.contains(&op)
}
