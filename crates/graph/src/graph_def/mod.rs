//! A graph in TensorFlow's spelling: what stock TensorFlow runs, differentiates and serves.
//!
//! Ops have TensorFlow's names and meaning, so most of a [`GraphDef`] is a dump of the nodes. What differs is spelled out here:
//! attributes that TensorFlow takes as inputs become constants (`shaping`, `reduce`, `product`, `index`), sizes known only at run
//! time are computed in the graph (`sizes`), and variables are handles that are read (`source`, `effect`).
//!
//! Numbers are equal to ours within rounding, with one exception: random ops draw from the same distribution but not the same
//! stream, since TensorFlow's generator cannot be addressed by row.
//!
//! ```
//! use estimand_graph::{Graph, Init, graph_def};
//! use estimand_tensor::{DType, Dim};
//!
//! let graph = Graph::new();
//! let x = graph.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
//! let y = x.matmul(&graph.variable("w", [3, 1], Init::Zeros));
//! let written = graph_def::graph_def(&graph.body(), &[y.value()])?;
//! let names: Vec<&str> = written.node.iter().map(|n| n.name.as_str()).collect();
//! assert_eq!(names, ["x", "w", "w/Read/ReadVariableOp", "MatMul"]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod combine;
mod effect;
mod elementwise;
mod index;
mod names;
mod product;
mod recurrent;
mod reduce;
mod shaping;
mod sizes;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use estimand_tensor::{Array, DType, Error, Result, Symbol, TensorSpec};
use estimand_wire::{AttrValue, DataType, GraphDef, Message, NodeDef, VersionDef};

use indexmap::IndexSet;

use crate::graph::{Body, Node, NodeId, Value};
use crate::op::Op;
use crate::variables::VarId;

pub use names::Names;

/// The version of the GraphDef format that TensorFlow 2.15 writes.
const PRODUCER: i32 = 1645;

/// The nodes that these values need, as TensorFlow spells them. Equal graphs give equal messages.
///
/// An op that TensorFlow does not have is an error that names it. [`Names`] tells what a value is called in the result.
///
/// Nodes that look up in tables need them initialized: see [`export`].
pub fn graph_def(body: &Body, fetches: &[Value]) -> Result<GraphDef> {
    Ok(export(body, fetches)?.graph_def)
}

/// A graph with what must happen before it runs.
#[derive(Clone, Debug)]
pub struct Export {
    /// The nodes.
    pub graph_def: GraphDef,
    /// The nodes that fill tables, to be run once.
    pub initializers: Vec<String>,
    /// The files that they read.
    pub assets: Vec<Asset>,
}

/// A file that a graph reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// The constant that holds the file's name.
    pub tensor: String,
    /// The file.
    pub path: PathBuf,
}

/// [`graph_def`] with the initializers of its tables and the files they read.
pub fn export(body: &Body, fetches: &[Value]) -> Result<Export> {
    let mut writer = Writer::new(body);
    for id in needed(body, fetches)? {
        writer.node(id)?;
    }
    let versions = Some(VersionDef { producer: PRODUCER, ..Default::default() });
    let graph_def = GraphDef { node: writer.written, versions, ..Default::default() };
    Ok(Export { graph_def, initializers: writer.initializers, assets: writer.assets })
}

/// [`graph_def`] as the bytes of a file. Equal graphs give equal bytes.
pub fn graph_def_bytes(body: &Body, fetches: &[Value]) -> Result<Vec<u8>> {
    Ok(graph_def(body, fetches)?.encode_to_vec())
}

/// The nodes that the fetches depend on, in the order of building.
fn needed(body: &Body, fetches: &[Value]) -> Result<Vec<NodeId>> {
    if fetches.iter().any(|fetch| fetch.node.0 as usize >= body.nodes().len()) {
        return Err(Error::config("a fetch does not belong to this graph"));
    }
    let needed = crate::pass::needed(body, fetches);
    Ok((0..needed.len()).filter(|&i| needed[i]).map(|i| NodeId(i as u32)).collect())
}

/// Everything that has been written so far, and what it is called.
pub(crate) struct Writer<'a> {
    body: &'a Body,
    names: Names,
    written: Vec<NodeDef>,
    /// Placeholders are also written when only their sizes are needed; each once.
    placeholders: IndexSet<NodeId>,
    /// The nodes that hold a variable's handle.
    handles: BTreeMap<VarId, String>,
    /// The nodes that read a variable.
    reads: BTreeMap<VarId, Vec<String>>,
    /// The nodes that compute a size, an i32 scalar each.
    sizes: BTreeMap<Symbol, String>,
    /// Whether a size is being written, which may ask for others.
    is_inside_size: bool,
    /// The handles of tables, by the address of their terms and by direction.
    pub(crate) tables: BTreeMap<(usize, bool), String>,
    pub(crate) initializers: Vec<String>,
    pub(crate) assets: Vec<Asset>,
}

impl<'a> Writer<'a> {
    fn new(body: &'a Body) -> Writer<'a> {
        Writer {
            body,
            names: Names::new(body),
            written: Vec::new(),
            placeholders: IndexSet::new(),
            handles: BTreeMap::new(),
            reads: BTreeMap::new(),
            sizes: BTreeMap::new(),
            is_inside_size: false,
            tables: BTreeMap::new(),
            initializers: Vec::new(),
            assets: Vec::new(),
        }
    }

    /// Writes a node, after the constants and sizes it needs.
    fn node(&mut self, id: NodeId) -> Result<()> {
        let node = self.body.node(id);
        let mut def = NodeDef::new(self.names.node(id), node.op.name());
        def.input = node.inputs.iter().map(|&v| self.names.tensor(v)).collect();
        let def = match self.spell(id, node, def) {
            Ok(Some(def)) => def,
            Ok(None) => return Ok(()),
            Err(e) => return Err(e.context(format!("node `{}` ({})", node.name, node.op.name())).at(node.site)),
        };
        self.written.push(def);
        Ok(())
    }

    /// Completes a node that has its name, its op and our inputs; `None` if it is written already.
    fn spell(&mut self, id: NodeId, node: &'a Node, def: NodeDef) -> Result<Option<NodeDef>> {
        Ok(Some(match &node.op {
            Op::Placeholder => {
                self.placeholder(id);
                return Ok(None);
            }
            Op::Constant(c) => source::constant(def, &c.0)?,
            Op::Variable(id) => self.variable(def, *id),
            Op::DimSize(dim, dtype) => self.dim_size(def, *dim, *dtype)?,
            Op::Range(dim, dtype) => self.range(def, *dim, *dtype)?,
            Op::Random { kind, shape, key } => self.random(def, *kind, shape, key)?,

            Op::Unary(op) => elementwise::unary(def, *op, self.dtype(node, 0)),
            Op::Binary(op) => elementwise::binary(def, *op, self.dtype(node, 0)),
            Op::Select => typed(def, "T", self.dtype(node, 1)),
            Op::Cast(to) => typed(typed(def, "SrcT", self.dtype(node, 0)), "DstT", *to),
            Op::StopGradient | Op::Softmax | Op::LogSoftmax | Op::SoftmaxCrossEntropy => {
                typed(def, "T", self.dtype(node, 0))
            }
            Op::Print(label) => elementwise::print(def, label, self.dtype(node, 0)),
            Op::SparseSoftmaxCrossEntropy => {
                typed(typed(def, "T", self.dtype(node, 0)), "Tlabels", self.dtype(node, 1))
            }

            Op::Reshape(shape) => self.reshape(def, node, shape)?,
            Op::BroadcastTo(shape) => self.broadcast_to(def, node, shape)?,
            Op::SumTo => self.sum_to(def, node),
            Op::Transpose(perm) => self.transpose(def, node, perm)?,
            Op::Concat(axis) => self.concat(def, node, *axis)?,
            Op::Slice { begin, size } => self.slice(def, node, begin, size)?,
            Op::StridedSlice { begin, strides, size } => self.strided_slice(def, node, begin, strides, size)?,
            Op::StridedSliceGrad { begin, strides, shape } => {
                self.strided_slice_grad(def, node, begin, strides, shape)?
            }
            Op::Pad { before, after } => self.pad(def, node, before, after)?,
            Op::MirrorPad { paddings, symmetric } | Op::MirrorPadGrad { paddings, symmetric } => {
                self.mirror_pad(def, node, paddings, *symmetric)?
            }
            Op::Tile(multiples) => self.tile(def, node, multiples)?,
            Op::Reverse(axes) => self.reverse(def, node, *axes)?,

            Op::Reduce { kind, axes, keep_dims } => self.reduce(def, node, *kind, *axes, *keep_dims)?,
            Op::ArgMax { axis, output, .. } => self.arg_max(def, node, *axis, *output)?,
            Op::Cumulate { axis, exclusive, reverse, .. } => self.cumulate(def, node, *axis, *exclusive, *reverse)?,
            Op::TopK(k) => self.top_k(def, node, *k)?,

            Op::MatMul { transpose_a, transpose_b } => {
                typed(def, "T", self.dtype(node, 0)).attr("transpose_a", *transpose_a).attr("transpose_b", *transpose_b)
            }
            Op::BatchMatMul { adjoint_x, adjoint_y } => {
                typed(def, "T", self.dtype(node, 0)).attr("adj_x", *adjoint_x).attr("adj_y", *adjoint_y)
            }
            Op::Conv2d(window) | Op::DepthwiseConv2d(window) => {
                product::convolution(typed(def, "T", self.dtype(node, 0)), window)
            }
            Op::Conv2dBackpropInput(window, shape) | Op::DepthwiseConv2dBackpropInput(window, shape) => {
                self.convolution_gradient(def, node, window, shape, 0)?
            }
            Op::Conv2dBackpropFilter(window, shape) | Op::DepthwiseConv2dBackpropFilter(window, shape) => {
                self.convolution_gradient(def, node, window, shape, 1)?
            }
            Op::MaxPool(window) | Op::MaxPoolGrad(window) | Op::AvgPool(window) => {
                product::pooling(typed(def, "T", self.dtype(node, 0)), window)
            }
            Op::AvgPoolGrad(window, shape) => self.avg_pool_gradient(def, node, window, shape)?,

            Op::Gather { axis, batch_dims } => self.gather(def, node, *axis, *batch_dims)?,
            Op::GatherNd => typed(typed(def, "Tparams", self.dtype(node, 0)), "Tindices", self.dtype(node, 1)),
            Op::ScatterNd(shape) => self.scatter_nd(def, node, shape)?,
            Op::UnsortedSegment { num_segments, .. } => self.unsorted_segment(def, node, *num_segments)?,
            Op::SparseSegment(combiner) => self.sparse_segment(def, node, *combiner)?,
            Op::SparseSegmentGrad(combiner, n_rows) => self.sparse_segment_grad(def, node, *combiner, *n_rows)?,
            Op::OneHot { depth, axis } => self.one_hot(def, node, *depth, *axis)?,

            Op::Recurrent(step) => self.recurrent(def, node, step)?,
            Op::RecurrentGrad(step) => self.recurrent_gradient(def, node, step)?,

            Op::Resize(resize) => self.resize(def, node, resize)?,
            Op::ResizeGrad(resize, shape) => self.resize_gradient(def, node, resize, shape)?,

            Op::Host(op) => op.rules().spell(def, node, self)?,
            Op::Custom(custom) => return Err(effect::refuse_custom(custom.name())),
            Op::Assign(id) => self.assign(def, *id),
            Op::Apply(apply) => return Err(effect::refuse_apply(self.body, apply)),
            Op::Group => effect::group(def),
        }))
    }

    /// Dtype and shape of one of a node's inputs.
    pub(crate) fn spec(&self, node: &Node, input: usize) -> &'a TensorSpec {
        self.body.spec(node.inputs[input])
    }

    /// The dtype of one of a node's inputs.
    pub(crate) fn dtype(&self, node: &Node, input: usize) -> DType {
        self.body.spec(node.inputs[input]).dtype
    }

    /// The beginning of a node that belongs to another: `owner/role`.
    pub(crate) fn part(&mut self, owner: &str, role: &str, op: &str) -> NodeDef {
        NodeDef::new(self.names.unused(&format!("{owner}/{role}")), op)
    }

    /// Writes a node and returns what its first output is called.
    pub(crate) fn add(&mut self, def: NodeDef) -> String {
        let name = def.name.clone();
        self.written.push(def);
        name
    }

    /// A constant that belongs to a node.
    pub(crate) fn constant(&mut self, owner: &str, role: &str, value: &Array) -> Result<String> {
        let def = self.part(owner, role, "Const");
        let def = source::constant(def, value)?;
        Ok(self.add(def))
    }

    /// A number of TensorFlow's usual index type, that belongs to a node.
    pub(crate) fn int(&mut self, owner: &str, role: &str, value: usize) -> Result<String> {
        let value = index_number(value as i64)?;
        self.constant(owner, role, &Array::scalar(value))
    }

    /// A list of numbers of TensorFlow's usual index type, that belongs to a node.
    pub(crate) fn ints(&mut self, owner: &str, role: &str, values: impl IntoIterator<Item = i64>) -> Result<String> {
        let values = values.into_iter().map(index_number).collect::<Result<Vec<i32>>>()?;
        self.constant(owner, role, &Array::from_vec([values.len()], values)?)
    }
}

/// A number as an i32, TensorFlow's usual type for axes and sizes.
fn index_number(value: i64) -> Result<i32> {
    i32::try_from(value)
        .map_err(|_| Error::unsupported(format!("a size of {value} in a GraphDef: sizes there have 32 bits")))
}

/// An attribute that is a list of dtypes.
pub(crate) fn type_list(dtypes: &[DType]) -> AttrValue {
    dtypes.iter().map(|&dtype| DataType::from(dtype)).collect::<Vec<_>>().into()
}

/// Sets an attribute that is a dtype.
pub(crate) fn typed(def: NodeDef, key: &str, dtype: DType) -> NodeDef {
    def.attr(key, AttrValue::from(DataType::from(dtype)))
}
