//! Finds the nodes of a GraphDef by name, and orders the ones to read.

use std::collections::{BTreeMap, HashMap, HashSet};

use estimand_graph::looks::look;
use estimand_tensor::{Error, Result};
use estimand_wire::{DataType, NodeDef};

use super::checks::Check;
use super::inline::Inlined;
use super::library::Library;
use super::rules;

/// An output of a node: `node:output`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Reference {
    pub node: usize,
    pub output: usize,
}

/// The most `Identity` nodes in a row that are followed.
const LONGEST: usize = 64;

/// A GraphDef with an index of its nodes.
pub(super) struct Nodes<'a> {
    defs: &'a [NodeDef],
    by_name: HashMap<&'a str, usize>,
    /// The nodes that fill tables, by the table's node.
    initializers: HashMap<usize, usize>,
    /// The values that are assigned to variables of strings, by the variable's node. TensorFlow 2
    /// keeps the paths of assets in such variables.
    assigned: HashMap<usize, Reference>,
    inlined: &'a Inlined<'a>,
    library: &'a Library<'a>,
}

impl<'a> Nodes<'a> {
    pub(super) fn new(inlined: &'a Inlined<'a>, library: &'a Library<'a>) -> Result<Nodes<'a>> {
        let defs = &*inlined.nodes;
        let mut by_name = HashMap::with_capacity(defs.len());
        for (i, def) in defs.iter().enumerate() {
            if by_name.insert(def.name.as_str(), i).is_some() {
                return Err(Error::config(format!("the graph has two nodes named `{}`", def.name)));
            }
        }
        let mut nodes =
            Nodes { defs, by_name, initializers: HashMap::new(), assigned: HashMap::new(), inlined, library };
        for (i, def) in defs.iter().enumerate() {
            if rules::fills_table(&def.op)
                && let Some(table) = def.input.first()
            {
                nodes.initializers.insert(nodes.find(table)?.node, i);
            }
            let is_text = || def.attr.get("dtype").and_then(|attr| attr.data_type()) == Some(DataType::String);
            if def.op == "AssignVariableOp"
                && is_text()
                && let [variable, value, ..] = &def.input[..]
            {
                let (variable, value) = (nodes.find(variable)?, nodes.find(value)?);
                nodes.assigned.insert(variable.node, value);
            }
        }
        Ok(nodes)
    }

    pub(super) fn def(&self, node: usize) -> &'a NodeDef {
        &self.defs[node]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &'a NodeDef)> {
        self.defs.iter().enumerate()
    }

    /// The functions that nodes may name.
    pub(super) fn library(&self) -> &'a Library<'a> {
        self.library
    }

    /// Names a node, its op and its function, for errors.
    pub(super) fn describe(&self, node: usize) -> String {
        let NodeDef { name, op, .. } = self.def(node);
        match self.inlined.function(node) {
            Some(function) => format!("node `{name}` ({op}) of function `{function}`"),
            None => format!("node `{name}` ({op})"),
        }
    }

    /// The node that fills a table.
    pub(super) fn initializer(&self, table: usize) -> Option<&'a NodeDef> {
        self.initializers.get(&table).map(|&i| &self.defs[i])
    }

    /// Returns the output named `node` or `node:1`, if it exists.
    pub(super) fn get(&self, name: &str) -> Option<Reference> {
        let (node, output) = name.rsplit_once(':').unwrap_or((name, "0"));
        Some(Reference { node: *self.by_name.get(node)?, output: output.parse().ok()? })
    }

    /// Returns the output named `node` or `node:1`.
    pub(super) fn find(&self, name: &str) -> Result<Reference> {
        self.get(name).ok_or_else(|| {
            let node = name.rsplit_once(':').map_or(name, |(node, _)| node);
            if self.by_name.contains_key(node) {
                return Error::config(format!("`{name}` is not the name of a node's output"));
            }
            Error::unknown("node", node, self.by_name.keys().copied())
        })
    }

    /// The output that an output is passed on from, through any number of `Identity`.
    pub(super) fn origin(&self, mut reference: Reference) -> Reference {
        // A cycle is refused when the nodes are read.
        for _ in 0..LONGEST {
            let def = self.def(reference.node);
            let source = match def.op.as_str() {
                "Identity" | "IdentityN" => def.input.get(reference.output).and_then(|input| self.get(input)),
                _ => None,
            };
            match source {
                Some(source) => reference = source,
                None => break,
            }
        }
        reference
    }

    /// The node that holds the name of a file: a constant, or what the initializer of a variable
    /// assigns.
    pub(super) fn file(&self, reference: Reference) -> Reference {
        let read = self.origin(reference);
        let handle = || self.get(self.def(read.node).input.first()?).map(|handle| self.origin(handle));
        let variable = if self.def(read.node).op == "ReadVariableOp" { handle() } else { None };
        variable.and_then(|variable| self.assigned.get(&variable.node).copied()).unwrap_or(read)
    }

    /// The data inputs of a node. Control inputs are ignored: they order updates, which
    /// change nothing that is read (`writes.rs`), and assertions, of which only our own are read.
    pub(super) fn inputs(&self, node: usize) -> Result<Vec<Reference>> {
        self.inputs_of(self.def(node))
    }

    pub(super) fn inputs_of(&self, def: &NodeDef) -> Result<Vec<Reference>> {
        let data = def.input.iter().filter(|input| !input.starts_with('^'));
        data.map(|input| self.find(input).map_err(|e| e.context(format!("in an input of node `{}`", def.name))))
            .collect()
    }

    /// The nodes that some outputs are computed from, each after its inputs. The search stops at
    /// outputs in `given`.
    pub(super) fn needed(&self, outputs: &[Reference], given: &HashSet<Reference>) -> Result<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.defs.len()];
        let mut order = Vec::new();
        // The nodes on the current path, each with the inputs it still waits for.
        let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
        let children = |node: usize| -> Result<Vec<usize>> {
            let mut inputs = self.inputs(node)?;
            look(inputs.len());
            // The file that is restored is always that of the model, and is not fed.
            if self.def(node).op == "RestoreV2" && !inputs.is_empty() {
                inputs.remove(0);
            }
            if let Some(filler) = self.initializer(node) {
                let of_file = filler.op.starts_with("InitializeTableFromTextFile");
                let needed = |input: &Reference| {
                    // The path of an asset is a placeholder, which nobody feeds.
                    input.node != node && !(of_file && self.def(self.file(*input).node).op == "Placeholder")
                };
                inputs.extend(self.inputs_of(filler)?.into_iter().filter(needed));
            }
            inputs.extend(Check::of(self, self.def(node)).iter().flat_map(Check::inputs));
            Ok(inputs.into_iter().filter(|input| !given.contains(input)).map(|input| input.node).collect())
        };
        for output in outputs.iter().filter(|output| !given.contains(output)) {
            let mut next = Some(output.node);
            loop {
                match next.take() {
                    Some(node) if marks[node] == Mark::New => {
                        marks[node] = Mark::Open;
                        path.push((node, children(node)?));
                    }
                    Some(node) if marks[node] == Mark::Open => {
                        let first = path.iter().position(|(open, _)| *open == node).unwrap_or(0);
                        let names: Vec<_> =
                            path[first..].iter().take(8).map(|(n, _)| self.def(*n).name.as_str()).collect();
                        return Err(Error::config(format!("the graph has a cycle: {}", names.join(" <- "))));
                    }
                    _ => {}
                }
                match path.last_mut() {
                    None => break,
                    Some((node, waits)) => match waits.pop() {
                        Some(child) => next = Some(child),
                        None => {
                            marks[*node] = Mark::Done;
                            order.push(*node);
                            path.pop();
                        }
                    },
                }
            }
        }
        Ok(order)
    }

    /// An error that names every op among these nodes that cannot be read.
    pub(super) fn check_supported(&self, order: &[usize]) -> Result<()> {
        let mut unknown: BTreeMap<&str, (String, usize)> = BTreeMap::new();
        for &node in order {
            let def = self.def(node);
            if !rules::is_known(&def.op) {
                let place = || match self.inlined.function(node) {
                    Some(function) => format!("`{}` of function `{function}`", def.name),
                    None => format!("`{}`", def.name),
                };
                unknown.entry(&def.op).or_insert_with(|| (place(), 0)).1 += 1;
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let text = |(op, (place, n)): (&&str, &(String, usize))| match n {
            1 => format!("{op} (node {place})"),
            n => format!("{op} ({n} nodes, such as {place})"),
        };
        let list: Vec<String> = unknown.iter().map(text).collect();
        Err(Error::unsupported(format!("the graph uses ops that cannot be read: {}", list.join(", ")))
            .help("export a signature without them, or compute that part outside the model"))
    }
}
