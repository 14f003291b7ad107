//! Writes a graph as a TensorFlow [`GraphDef`] that stock TensorFlow runs, differentiates and
//! serves.
//!
//! Ops have TensorFlow's names and semantics, so most of a [`GraphDef`] is a dump of the nodes.
//! Where an op differs, its file writes it (`op/`): attributes that TensorFlow takes as inputs
//! become constants. This module is the writer that all ops use. It computes sizes that are known
//! only at run time in the graph (`sizes`), reads variables through handles, and writes tables
//! (`table`).
//!
//! The results equal ours within rounding, with one exception: random ops draw from the same
//! distribution but not from the same stream, since TensorFlow's generator cannot be addressed by
//! row.
//!
//! ```
//! use estimand_graph::{Graph, Initializer};
//! use estimand_tf::graph_def;
//! use estimand_tensor::{DType, Dim};
//!
//! let graph = Graph::new();
//! let x = graph.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
//! let y = x.matmul(&graph.variable("w", [3, 1], Initializer::Zeros));
//! let written = graph_def::graph_def(&graph.body(), &[y.value()])?;
//! let names: Vec<&str> = written.node.iter().map(|n| n.name.as_str()).collect();
//! assert_eq!(names, ["x", "w", "w/Read/ReadVariableOp", "MatMul"]);
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod names;
mod sizes;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;

use estimand_graph::op::spelling::{Spelling, type_list, typed};
use estimand_graph::{Body, Graph, LookupTable, NodeId, Tensor, Value, VarId};
use estimand_tensor::{DType, Dim, Error, Result, Symbol};
use estimand_wire::{GraphDef, Message, NodeDef, TensorShapeProto, VersionDef};
use indexmap::IndexSet;

pub use names::Names;

/// The version of the GraphDef format that TensorFlow 2.15 writes.
const PRODUCER: i32 = 1645;

/// Writes the nodes that these values need, in TensorFlow's spelling. Equal graphs give equal
/// messages.
///
/// The error for an op that TensorFlow does not have names the op. [`Names`] gives the name of each
/// value in the result.
///
/// Nodes that look up in tables need initialized tables: see [`export`].
pub fn graph_def(body: &Body, fetches: &[Value]) -> Result<GraphDef> {
    Ok(export(body, fetches)?.graph_def)
}

/// A GraphDef with the nodes and files that initialize it.
#[derive(Clone, Debug)]
pub struct Export {
    /// The nodes.
    pub graph_def: GraphDef,
    /// The nodes that fill tables. They must run once.
    pub initializers: Vec<String>,
    /// The files that the initializers read.
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

/// Like [`graph_def`], with the initializers of its tables and the files they read.
pub fn export(body: &Body, fetches: &[Value]) -> Result<Export> {
    let mut writer = Writer::new(body);
    for id in needed(body, fetches)? {
        writer.node(id)?;
    }
    let versions = Some(VersionDef { producer: PRODUCER, ..Default::default() });
    let graph_def = GraphDef { node: writer.written, versions, ..Default::default() };
    Ok(Export { graph_def, initializers: writer.initializers, assets: writer.assets })
}

/// Like [`graph_def`], encoded as the bytes of a file. Equal graphs give equal bytes.
pub fn graph_def_bytes(body: &Body, fetches: &[Value]) -> Result<Vec<u8>> {
    Ok(graph_def(body, fetches)?.encode_to_vec())
}

/// The nodes that the fetches depend on, in build order.
fn needed(body: &Body, fetches: &[Value]) -> Result<Vec<NodeId>> {
    if fetches.iter().any(|fetch| fetch.node.0 as usize >= body.nodes().len()) {
        return Err(Error::config("one of the fetched tensors does not belong to this graph"));
    }
    let needed = estimand_graph::pass::needed(body, fetches);
    Ok((0..needed.len()).filter(|&i| needed[i]).map(|i| NodeId(i as u32)).collect())
}

/// The nodes written so far, with their names.
struct Writer<'a> {
    body: &'a Body,
    names: Names,
    written: Vec<NodeDef>,
    /// Placeholders that are written, also if only their sizes are needed. Each is written once.
    placeholders: IndexSet<NodeId>,
    /// The nodes that hold a variable's handle.
    handles: BTreeMap<VarId, String>,
    /// The nodes that read a variable.
    readers: BTreeMap<VarId, Vec<String>>,
    /// The nodes that compute a size, an i32 scalar each.
    sizes: BTreeMap<Symbol, String>,
    /// Whether a size is being written, which may need others.
    is_inside_size: bool,
    /// The handles of tables, by the address of their terms and by direction.
    tables: BTreeMap<(usize, bool), String>,
    initializers: Vec<String>,
    assets: Vec<Asset>,
}

impl<'a> Writer<'a> {
    fn new(body: &'a Body) -> Writer<'a> {
        Writer {
            body,
            names: Names::new(body),
            written: Vec::new(),
            placeholders: IndexSet::new(),
            handles: BTreeMap::new(),
            readers: BTreeMap::new(),
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
        // A placeholder may have been written for its size.
        if node.op.is_placeholder() && !self.placeholders.insert(id) {
            return Ok(());
        }
        let mut def = NodeDef::new(self.names.node(id), node.op.name());
        def.input = node.inputs.iter().map(|&v| self.names.tensor(v)).collect();
        let spelled = node.op.rules().spell(def, node, self);
        let def =
            spelled.map_err(|e| e.context(format!("in node `{}` ({})", node.name, node.op.name())).at(node.site))?;
        self.written.push(def);
        Ok(())
    }
}

impl Spelling for Writer<'_> {
    fn body(&self) -> &Body {
        self.body
    }

    fn name_of(&self, value: Value) -> String {
        self.names.tensor(value)
    }

    fn part(&mut self, owner: &str, role: &str, op: &str) -> NodeDef {
        NodeDef::new(self.names.unused(&format!("{owner}/{role}")), op)
    }

    fn add(&mut self, def: NodeDef) -> String {
        let name = def.name.clone();
        self.written.push(def);
        name
    }

    fn size(&mut self, dim: Dim, owner: &str, role: &str) -> Result<String> {
        self.dim_size(dim, owner, role)
    }

    /// Checkpoints know a variable by its `shared_name`.
    fn handle(&mut self, id: VarId) -> String {
        if let Some(name) = self.handles.get(&id) {
            return name.clone();
        }
        let spec = self.body.variables().spec(id);
        let def = NodeDef::new(self.names.unused(&spec.name), "VarHandleOp");
        let def = typed(def, "dtype", spec.dtype)
            .attr("shape", TensorShapeProto::of(spec.dims.iter().map(|&n| n as i64)))
            .attr("shared_name", spec.name.as_str());
        let name = self.add(def);
        self.handles.insert(id, name.clone());
        name
    }

    fn readers(&mut self, id: VarId) -> &mut Vec<String> {
        self.readers.entry(id).or_default()
    }

    fn table(&mut self, table: &LookupTable, reverse: bool) -> Result<String> {
        self.lookup_table(table, reverse)
    }

    fn in_place(&mut self, def: NodeDef, graph: &Graph, results: &[&Tensor]) -> Result<NodeDef> {
        graph.check()?;
        let body: &Body = &graph.body();
        let values: Vec<Value> = results.iter().map(|t| t.value()).collect();
        let mut inner = Writer::new(body);
        inner.names = self.names.inside(body, &def.name, &def.input);
        let is_input = |id: &NodeId| body.node(*id).op.is_placeholder();
        inner.placeholders = (0..body.nodes().len()).map(|i| NodeId(i as u32)).filter(is_input).collect();
        for id in needed(body, &values)? {
            inner.node(id)?;
        }
        let inputs = values.iter().map(|&value| inner.names.tensor(value)).collect();
        let Writer { names, written, .. } = inner;
        self.names.take_all(names);
        self.written.extend(written);
        let dtypes: Vec<DType> = results.iter().map(|t| t.dtype()).collect();
        Ok(NodeDef { op: "IdentityN".into(), input: inputs, ..def }.attr("T", type_list(&dtypes)))
    }
}
