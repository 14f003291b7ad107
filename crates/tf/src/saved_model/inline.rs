//! Replaces calls by the nodes of the functions that they call, before any node is read.
//!
//! The nodes of a call `f` get names that begin with `f/`. The call itself stays, as an `IdentityN`
//! of the function's results, so that nodes after it find them under the same names. Only calls
//! that a signature needs are replaced: those before its outputs, those that fill its tables, and
//! the one that restores its variables.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use estimand_graph::looks::look;
use estimand_tensor::{Error, Result};
use estimand_wire::graph_def::Attr;
use estimand_wire::{FunctionDef, GraphDef, NodeDef};

use super::library::{Attributes, Library};

/// How deep calls may be nested. Real models need about ten.
const DEEPEST: usize = 100;

/// The nodes of a graph without calls.
pub(super) struct Inlined<'a> {
    pub nodes: Cow<'a, [NodeDef]>,
    /// The function that each node comes from. Empty if no call was replaced.
    functions: Vec<Option<&'a str>>,
}

impl<'a> Inlined<'a> {
    /// A graph as it is.
    pub(super) fn unchanged(graph: &'a GraphDef) -> Inlined<'a> {
        Inlined { nodes: Cow::Borrowed(&graph.node), functions: Vec::new() }
    }

    /// A graph in which the needed calls are replaced. `roots` are tensors or nodes. The effects of
    /// those that begin with `^` are needed, too: they fill tables or restore variables.
    pub(super) fn graph(graph: &'a GraphDef, library: &Library<'a>, roots: &[String]) -> Result<Inlined<'a>> {
        if graph.node.iter().all(|def| matches!(library.called(def), Ok(None))) {
            return Ok(Inlined::unchanged(graph));
        }
        let needed = needed(&graph.node, roots);
        let mut copy =
            Copy { library, nodes: Vec::with_capacity(graph.node.len()), functions: Vec::new(), path: vec![] };
        for def in &graph.node {
            let place = |e: Error| e.context(format!("in node `{}` ({})", def.name, def.op));
            let called = match needed.contains(def.name.as_str()) {
                true => library.called(def).map_err(place)?,
                false => None,
            };
            match called {
                Some(called) => copy.call(def.clone(), called).map_err(place)?,
                None => copy.push(def.clone(), None),
            }
        }
        Ok(Inlined { nodes: Cow::Owned(copy.nodes), functions: copy.functions })
    }

    /// The body of a function with a placeholder for each argument. Returns it with the names of
    /// the arguments and of the results.
    pub(super) fn body(
        function: &'a FunctionDef,
        library: &Library<'a>,
        name: &str,
    ) -> Result<(Inlined<'a>, Vec<String>, Vec<String>)> {
        let mut copy = Copy { library, nodes: Vec::new(), functions: Vec::new(), path: Vec::new() };
        let signature = function.signature.as_ref().ok_or_else(|| Error::config("a function has no signature"))?;
        let arguments: Vec<String> = signature.input_arg.iter().map(|arg| format!("{name}/{}", arg.name)).collect();
        for argument in &arguments {
            let def = NodeDef::new(argument, "Placeholder");
            library.add(&def, 0)?;
            copy.push(def, Some(&signature.name));
        }
        let results = copy.function(function, name, &arguments, &function.attr)?;
        Ok((Inlined { nodes: Cow::Owned(copy.nodes), functions: copy.functions }, arguments, results))
    }

    /// The name of the function that a node comes from.
    pub(super) fn function(&self, node: usize) -> Option<&'a str> {
        self.functions.get(node).copied().flatten()
    }
}

/// The names of the nodes that some roots need.
fn needed<'n>(nodes: &'n [NodeDef], roots: &'n [String]) -> HashSet<&'n str> {
    let by_name: HashMap<&str, &NodeDef> = nodes.iter().map(|def| (def.name.as_str(), def)).collect();
    let mut needed = HashSet::new();
    // Nodes after a `^` follow control inputs as well. They are searched first, so that a node that
    // is needed in both ways is searched in the wider one.
    for effects in [true, false] {
        let mut stack: Vec<&str> =
            roots.iter().filter(|root| root.starts_with('^') == effects).map(|name| node_of(name)).collect();
        while let Some(name) = stack.pop() {
            look(1);
            let Some(def) = by_name.get(name).filter(|_| needed.insert(name)) else { continue };
            stack.extend(def.input.iter().filter(|input| effects || !input.starts_with('^')).map(|name| node_of(name)));
        }
    }
    needed
}

/// The node of an input: of `^node`, `node` or `node:1`.
pub(super) fn node_of(input: &str) -> &str {
    let input = input.strip_prefix('^').unwrap_or(input);
    input.split_once(':').map_or(input, |(node, _)| node)
}

/// A list of nodes that grows by the nodes of functions.
struct Copy<'c, 'a> {
    library: &'c Library<'a>,
    nodes: Vec<NodeDef>,
    functions: Vec<Option<&'a str>>,
    /// The functions that are being copied, each called by the one before.
    path: Vec<&'a str>,
}

impl<'a> Copy<'_, 'a> {
    fn push(&mut self, def: NodeDef, function: Option<&'a str>) {
        self.nodes.push(def);
        self.functions.push(function);
    }

    /// Adds the nodes of a call, then the call as the list of its results.
    fn call(&mut self, def: NodeDef, (name, attributes): (&str, Attributes<'_>)) -> Result<()> {
        let function = self.library.find(name)?;
        let owner = self.path.last().copied();
        let (arguments, mut controls): (Vec<String>, Vec<String>) =
            def.input.iter().cloned().partition(|input| !input.starts_with('^'));
        let mut input = self.function(function, &def.name, &arguments, attributes)?;
        input.append(&mut controls);
        self.push(NodeDef { input, ..NodeDef::new(def.name, "IdentityN") }, owner);
        Ok(())
    }

    /// Adds the nodes of a function, which gets these arguments. Returns its results.
    fn function(
        &mut self,
        function: &'a FunctionDef,
        prefix: &str,
        arguments: &[String],
        attributes: Attributes<'_>,
    ) -> Result<Vec<String>> {
        let signature = function.signature.as_ref().ok_or_else(|| Error::config("a function has no signature"))?;
        let name = signature.name.as_str();
        let place = |e: Error| e.context(format!("in function `{name}`"));
        if self.path.contains(&name) {
            return Err(Error::config(format!("function `{name}` calls itself: {}", self.path.join(" -> "))));
        }
        if self.path.len() >= DEEPEST {
            return Err(Error::unsupported(format!("function `{name}` is called {DEEPEST} calls deep; the limit")));
        }
        if signature.input_arg.len() != arguments.len() {
            return Err(place(Error::config(format!(
                "the function is called with {} inputs; expected {}",
                arguments.len(),
                signature.input_arg.len()
            ))));
        }
        let names = Names {
            library: self.library,
            prefix,
            arguments: signature.input_arg.iter().map(|arg| arg.name.as_str()).zip(arguments).collect(),
            nodes: function.node_def.iter().map(|def| (def.name.as_str(), def)).collect(),
        };
        self.path.push(name);
        for def in &function.node_def {
            look(1);
            let place = |e: Error| e.context(format!("in node `{}` ({}) of function `{name}`", def.name, def.op));
            self.library.add(def, prefix.len()).map_err(place)?;
            let mut copy = def.clone();
            copy.name = format!("{prefix}/{}", def.name);
            copy.input = def
                .input
                .iter()
                .filter_map(|input| names.input(input).transpose())
                .collect::<Result<_>>()
                .map_err(place)?;
            for value in copy.attr.values_mut() {
                if let Some(Attr::Placeholder(key)) = &value.value {
                    let given = attributes.get(key).or_else(|| function.attr.get(key));
                    *value = given
                        .cloned()
                        .ok_or_else(|| place(Error::config(format!("the call does not give the attribute `{key}`"))))?;
                }
            }
            match self.library.called(def).map_err(place)? {
                Some(called) => self.call(copy, called).map_err(place)?,
                None => self.push(copy, Some(name)),
            }
        }
        self.path.pop();
        let result = |output: &estimand_wire::function_def::ArgDef| {
            let value = function.ret.get(&output.name).ok_or_else(|| {
                Error::config(format!("the function does not say what it returns as `{}`", output.name))
            })?;
            names.input(value)?.ok_or_else(|| Error::config(format!("the result `{}` is not a tensor", output.name)))
        };
        signature.output_arg.iter().map(result).collect::<Result<_>>().map_err(place)
    }
}

/// The names inside one function, and what they become.
struct Names<'c, 'a> {
    library: &'c Library<'a>,
    prefix: &'c str,
    arguments: HashMap<&'a str, &'c String>,
    nodes: HashMap<&'a str, &'a NodeDef>,
}

impl Names<'_, '_> {
    /// An input of a node, in the words of the graph. `None` if it waits for an argument.
    fn input(&self, input: &str) -> Result<Option<String>> {
        let prefix = self.prefix;
        if let Some(node) = input.strip_prefix('^') {
            return Ok(self.nodes.contains_key(node).then(|| format!("^{prefix}/{node}")));
        }
        if let Some(&argument) = self.arguments.get(input) {
            return Ok(Some(argument.clone()));
        }
        let wrong = || Error::config(format!("`{input}` is not an input of the form `node:output:0`"));
        let (node, output) = input.split_once(':').ok_or_else(wrong)?;
        let (output, index) = output.split_once(':').ok_or_else(wrong)?;
        let index = index.parse().map_err(|_| wrong())?;
        let def = self.nodes.get(node).ok_or_else(|| Error::unknown("node", node, self.nodes.keys().copied()))?;
        let number = self.library.output(def, output, index)?;
        Ok(Some(if number == 0 { format!("{prefix}/{node}") } else { format!("{prefix}/{node}:{number}") }))
    }
}
