//! The writer of one graph: the nodes written so far, the names of values, and the weights and
//! constants that all graphs of a file share.

use std::collections::{HashMap, HashSet};

use estimand_graph::{Body, Node, NodeId, Value};
use estimand_tensor::{Array, Error, Result, Symbol};
use indexmap::IndexMap;

use crate::message::{AttributeProto, NodeProto, TensorProto};
use crate::node::NodeWriter;
use crate::ops;
use crate::refuse::in_node;
use crate::tensor::tensor_proto;

/// The domain of operators for classical models, such as vocabularies.
pub(crate) const ML: &str = "ai.onnx.ml";

/// Constants of at most this many bytes are written once, however often they are used.
const SHARED_BYTES: usize = 64;

/// Reads the value of a variable by its name.
pub(crate) type ReadVariable<'r> = dyn FnMut(&str) -> Result<Array> + 'r;

/// What the graphs of a file share.
pub(crate) struct Shared<'r> {
    /// Names of values and nodes. Inner graphs may use the values of outer ones, so all differ.
    taken: HashSet<String>,
    pub(crate) initializers: IndexMap<String, TensorProto>,
    /// Small constants, by type, sizes and bytes.
    constants: HashMap<Vec<u8>, String>,
    /// Variables that are written, by their names.
    variables: HashMap<String, String>,
    read_variable: &'r mut ReadVariable<'r>,
    /// Whether a node of [`ML`] is written.
    pub(crate) has_ml: bool,
}

impl<'r> Shared<'r> {
    pub(crate) fn new(read_variable: &'r mut ReadVariable<'r>) -> Shared<'r> {
        Shared {
            taken: HashSet::new(),
            initializers: IndexMap::new(),
            constants: HashMap::new(),
            variables: HashMap::new(),
            read_variable,
            has_ml: false,
        }
    }

    /// Takes a name, or the first of `name_1`, `name_2`, .. that nothing has.
    pub(crate) fn unused(&mut self, name: &str) -> String {
        let mut found = name.to_string();
        let mut n = 0;
        while !self.taken.insert(found.clone()) {
            n += 1;
            found = format!("{name}_{n}");
        }
        found
    }

    /// Adds a constant. Returns its name.
    pub(crate) fn constant(&mut self, owner: &str, array: &Array) -> Result<String> {
        let key = (array.dtype().is_number() && array.bytes().len() <= SHARED_BYTES).then(|| {
            let kind = format!("{} {:?} ", array.dtype(), array.dims());
            [kind.as_bytes(), array.bytes()].concat()
        });
        if let Some(known) = key.as_ref().and_then(|key| self.constants.get(key)) {
            return Ok(known.clone());
        }
        let name = self.unused(&format!("{owner}/constant"));
        self.initializers.insert(name.clone(), tensor_proto(&name, array)?);
        if let Some(key) = key {
            self.constants.insert(key, name.clone());
        }
        Ok(name)
    }

    /// The name of a variable's value.
    fn variable(&mut self, variable: &str) -> Result<String> {
        if let Some(known) = self.variables.get(variable) {
            return Ok(known.clone());
        }
        let value = (self.read_variable)(variable)?;
        let name = self.unused(variable);
        self.initializers.insert(name.clone(), tensor_proto(&name, &value)?);
        self.variables.insert(variable.to_string(), name.clone());
        Ok(name)
    }
}

/// Writes the nodes of one graph.
pub(crate) struct Writer<'a, 's, 'r> {
    pub(crate) body: &'a Body,
    pub(crate) shared: &'s mut Shared<'r>,
    /// The names of values that are written or fed.
    names: HashMap<Value, String>,
    /// The names of sizes, i64 lists of one element each.
    pub(crate) sizes: HashMap<Symbol, String>,
    pub(crate) nodes: Vec<NodeProto>,
}

impl<'a, 's, 'r> Writer<'a, 's, 'r> {
    pub(crate) fn new(body: &'a Body, shared: &'s mut Shared<'r>) -> Writer<'a, 's, 'r> {
        Writer { body, shared, names: HashMap::new(), sizes: HashMap::new(), nodes: Vec::new() }
    }

    /// Says under which name a value is fed.
    pub(crate) fn feed(&mut self, value: Value, name: &str) {
        self.names.insert(value, name.to_string());
    }

    /// The name of a value that is written or fed.
    pub(crate) fn name(&self, value: Value) -> Result<String> {
        self.names.get(&value).cloned().ok_or_else(|| {
            let node = self.body.node(value.node);
            match node.op.is_placeholder() {
                true => Error::config(format!("placeholder `{}` is not an input of the signature", node.name))
                    .help("add it to the inputs of the export, or leave out the outputs that need it"),
                false => Error::internal(format!("the value of node `{}` was not written", node.name)),
            }
        })
    }

    /// Writes the nodes that these values depend on, in build order.
    pub(crate) fn write(&mut self, fetches: &[Value]) -> Result<()> {
        let body = self.body;
        let needed = estimand_graph::pass::needed(body, fetches);
        for id in (0..needed.len()).filter(|&i| needed[i]).map(|i| NodeId(i as u32)) {
            let node = body.node(id);
            // A value in the middle of the graph may be fed in place of what computes it.
            if node.op.is_placeholder() || self.names.contains_key(&Value { node: id, output: 0 }) {
                continue;
            }
            let outputs = ops::write(&mut NodeWriter::new(self, node));
            let outputs = outputs.map_err(|e| in_node(e, body, id))?;
            for (output, name) in outputs.into_iter().enumerate() {
                self.names.insert(Value { node: id, output: output as u16 }, name);
            }
        }
        Ok(())
    }

    /// Adds a node of an operator. Returns the names of its outputs.
    pub(crate) fn add(
        &mut self,
        owner: &str,
        (domain, op): (&str, &str),
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
        n_outputs: usize,
    ) -> Vec<String> {
        let name = self.shared.unused(&format!("{owner}/{op}"));
        let output: Vec<String> = match n_outputs {
            1 => vec![name.clone()],
            n => (0..n).map(|i| self.shared.unused(&format!("{name}:{i}"))).collect(),
        };
        self.shared.has_ml |= domain == ML;
        self.nodes.push(NodeProto {
            input: inputs.iter().map(|input| input.to_string()).collect(),
            output: output.clone(),
            name,
            op_type: op.to_string(),
            attribute: attributes,
            domain: domain.to_string(),
        });
        output
    }

    /// Gives a value the name of an output.
    pub(crate) fn output(&mut self, name: &str, value: Value) -> Result<()> {
        let source = self.name(value)?;
        self.rename(&source, name);
        Ok(())
    }

    /// Gives a value another name, which must be taken.
    pub(crate) fn rename(&mut self, source: &str, name: &str) {
        let (input, output) = (vec![source.to_string()], vec![name.to_string()]);
        let (name, op_type) = (self.shared.unused(&format!("{name}/Identity")), "Identity".to_string());
        self.nodes.push(NodeProto { input, output, name, op_type, ..NodeProto::default() });
    }

    /// The placeholders that are fed.
    pub(crate) fn fed(&self) -> Vec<Value> {
        self.names.keys().copied().filter(|value| self.source(*value).op.is_placeholder()).collect()
    }

    /// The name of the value that a node's variable has.
    pub(crate) fn variable(&mut self, variable: &str) -> Result<String> {
        self.shared.variable(variable)
    }

    /// The node that computes a value.
    pub(crate) fn source(&self, value: Value) -> &'a Node {
        self.body.node(value.node)
    }
}
