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

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use estimand_graph::op::composed;
use estimand_graph::op::function::Function;
use estimand_graph::op::spelling::{Spelling, type_list, typed};
use estimand_graph::{Body, Graph, LookupTable, NodeId, Role, Tensor, Value, VarId};
use estimand_tensor::{DType, Dim, Dims, Error, Result, Symbol};
use estimand_wire::{FunctionDef, FunctionDefLibrary, GraphDef, Message, NodeDef, TensorShapeProto, VersionDef};
use indexmap::{IndexMap, IndexSet};

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
    /// The variables that the nodes use, in the order of their handles.
    pub variables: Vec<Handle>,
}

/// A variable of a written graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The name of the variable, as in a checkpoint.
    pub variable: String,
    /// The node that holds its handle.
    pub node: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: Dims,
    /// Whether an optimizer changes it.
    pub is_trainable: bool,
    /// Whether it holds the sums of a metric, which no checkpoint has.
    pub is_local: bool,
}

/// A graph to write, and what of it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The graph.
    pub body: &'a Body,
    /// The values to write, with all nodes that they need.
    pub fetches: &'a [Value],
    /// Variables to write even if no node uses them.
    pub variables: &'a [VarId],
}

/// The text of a constant that names a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssetText {
    /// The path of the file, so that the graph runs as it is.
    Path,
    /// Nothing: whoever loads the graph feeds the constant. The graph is then the same wherever the
    /// file is.
    Fed,
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
    Ok(export_all(&[Part { body, fetches, variables: &[] }], AssetText::Path)?.0)
}

/// Writes several graphs as one. Variables of the same name and tables of the same terms are
/// written once. Returns the names of the nodes of each graph too.
pub fn export_all(parts: &[Part<'_>], asset_text: AssetText) -> Result<(Export, Vec<Names>)> {
    let mut shared = Shared::new(asset_text);
    let (mut all_names, mut taken) = (Vec::new(), HashMap::new());
    for part in parts {
        let mut writer = Writer::new(part.body, Names::after(part.body, taken), shared);
        for id in needed(part.body, part.fetches)? {
            writer.node(id)?;
        }
        for &id in part.variables {
            writer.handle(id);
        }
        taken = writer.names.taken();
        all_names.push(writer.names);
        shared = writer.shared;
    }
    let Shared { written: node, functions, handles, initializers, assets, .. } = shared;
    let versions = Some(VersionDef { producer: PRODUCER, ..Default::default() });
    let function: Vec<FunctionDef> = functions.into_values().collect();
    let library = (!function.is_empty()).then(|| FunctionDefLibrary { function, ..Default::default() });
    let graph_def = GraphDef { node, versions, library, ..Default::default() };
    let variables = handles.into_values().collect();
    Ok((Export { graph_def, initializers, assets, variables }, all_names))
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

/// The nodes written so far, of all graphs.
struct Shared {
    written: Vec<NodeDef>,
    /// The functions that nodes call, by name.
    functions: BTreeMap<String, FunctionDef>,
    /// The variables, by name.
    handles: IndexMap<String, Handle>,
    /// The handles of tables, by the address of their terms and by direction.
    tables: BTreeMap<(usize, bool), String>,
    initializers: Vec<String>,
    assets: Vec<Asset>,
    asset_text: AssetText,
}

impl Shared {
    fn new(asset_text: AssetText) -> Shared {
        Shared {
            written: Vec::new(),
            functions: BTreeMap::new(),
            handles: IndexMap::new(),
            tables: BTreeMap::new(),
            initializers: Vec::new(),
            assets: Vec::new(),
            asset_text,
        }
    }
}

/// Writes one graph.
struct Writer<'a> {
    body: &'a Body,
    names: Names,
    shared: Shared,
    /// Placeholders that are written, also if only their sizes are needed. Each is written once.
    placeholders: IndexSet<NodeId>,
    /// The nodes that read a variable.
    readers: BTreeMap<VarId, Vec<String>>,
    /// The nodes that compute a size, an i32 scalar each.
    sizes: BTreeMap<Symbol, String>,
    /// Whether a size is being written, which may need others.
    is_inside_size: bool,
}

impl<'a> Writer<'a> {
    fn new(body: &'a Body, names: Names, shared: Shared) -> Writer<'a> {
        Writer {
            body,
            names,
            shared,
            placeholders: IndexSet::new(),
            readers: BTreeMap::new(),
            sizes: BTreeMap::new(),
            is_inside_size: false,
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
        let mut def =
            spelled.map_err(|e| e.context(format!("in node `{}` ({})", node.name, node.op.name())).at(node.site))?;
        if let Some(op) = composed::describe(&node.op) {
            let inputs = node.inputs.iter().map(|&value| self.names.tensor(value));
            let words: Vec<String> = std::iter::once(op.to_string()).chain(inputs).collect();
            def = def.attr(composed::ATTRIBUTE, words.join(" ").as_str());
        }
        self.shared.written.push(def);
        Ok(())
    }

    /// Writes a graph whose placeholders are values of this one. Its variables and tables are its
    /// own. Returns the names of the results.
    fn inner<'b>(&self, body: &'b Body, names: Names, results: &[Value]) -> Result<(Writer<'b>, Vec<String>)> {
        let mut inner = Writer::new(body, names, Shared::new(self.shared.asset_text));
        let is_input = |id: &NodeId| body.node(*id).op.is_placeholder();
        inner.placeholders = (0..body.nodes().len()).map(|i| NodeId(i as u32)).filter(is_input).collect();
        for id in needed(body, results)? {
            inner.node(id)?;
        }
        let results = results.iter().map(|&value| inner.names.tensor(value)).collect();
        Ok((inner, results))
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
        self.shared.written.push(def);
        name
    }

    fn size(&mut self, dim: Dim, owner: &str, role: &str) -> Result<String> {
        self.dim_size(dim, owner, role)
    }

    /// Checkpoints know a variable by its `shared_name`.
    fn handle(&mut self, id: VarId) -> String {
        let spec = self.body.variables().spec(id);
        if let Some(handle) = self.shared.handles.get(&spec.name) {
            return handle.node.clone();
        }
        let def = NodeDef::new(self.names.unused(&spec.name), "VarHandleOp");
        let def = typed(def, "dtype", spec.dtype)
            .attr("shape", TensorShapeProto::of(spec.dims.iter().map(|&n| n as i64)))
            .attr("shared_name", spec.name.as_str());
        let node = self.add(def);
        let handle = Handle {
            variable: spec.name.clone(),
            node: node.clone(),
            dtype: spec.dtype,
            dims: spec.dims.clone(),
            is_trainable: spec.role == Role::Model { trainable: true },
            is_local: spec.role == Role::Local,
        };
        self.shared.handles.insert(spec.name.clone(), handle);
        node
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
        let names = self.names.inside(body, &def.name, &def.input);
        let (Writer { names, shared, .. }, inputs) = self.inner(body, names, &values)?;
        self.names.take_all(names);
        self.shared.written.extend(shared.written);
        self.shared.functions.extend(shared.functions);
        let dtypes: Vec<DType> = results.iter().map(|t| t.dtype()).collect();
        Ok(NodeDef { op: "IdentityN".into(), input: inputs, ..def }.attr("T", type_list(&dtypes)))
    }

    fn function(&mut self, name: &str, function: Function) -> Result<String> {
        let def = function.def(name)?;
        let name = def.signature.as_ref().map_or_else(String::new, |signature| signature.name.clone());
        self.shared.functions.insert(name.clone(), def);
        Ok(name)
    }

    fn nodes_of(&self, graph: &Graph, inputs: &[String], results: &[&Tensor]) -> Result<(Vec<NodeDef>, Vec<String>)> {
        graph.check()?;
        let body: &Body = &graph.body();
        let values: Vec<Value> = results.iter().map(|t| t.value()).collect();
        let (inner, results) = self.inner(body, Names::of_function(body, inputs), &values)?;
        Ok((inner.shared.written, results))
    }
}
