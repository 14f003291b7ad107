//! Ops that we have written as several nodes become one op again.
//!
//! An attribute of the last node names the op. The op is written again, and its nodes must be those
//! of the file. So nodes that somebody has changed are read one by one, as they are.

use std::collections::HashSet;

use estimand_graph::op::composed::{ATTRIBUTE, described};
use estimand_graph::op::function::Function;
use estimand_graph::op::reading::Reading;
use estimand_graph::op::spelling::Spelling;
use estimand_graph::{Body, Graph, LookupTable, Tensor, Value, VarId};
use estimand_tensor::{Dim, Error, Result};
use estimand_wire::NodeDef;

use super::node_output::NodeOutput;
use super::node_reader::NodeReader;
use super::numbers::Number;
use super::reader::Reader;

/// Reads the op that the last of its nodes names. `None` if the node names none, or if the nodes
/// are not those of the op.
pub(super) fn read(call: &mut NodeReader<'_, '_>) -> Result<Option<Vec<NodeOutput>>> {
    if !call.def.attr.contains_key(ATTRIBUTE) {
        return Ok(None);
    }
    let text = call.text_or(ATTRIBUTE, "")?;
    let (name, inputs) = text.split_once(' ').unwrap_or((&text, ""));
    let names: Vec<&str> = inputs.split(' ').collect();
    let Some((op, _)) = described(name).filter(|(_, n_inputs)| n_inputs.contains(&names.len())) else {
        return Ok(None);
    };
    let mut tensors = Vec::with_capacity(names.len());
    for name in &names {
        // The nodes before this one need the inputs, so these have been read.
        let tensor = call.reader.nodes.get(name).and_then(|reference| call.reader.tensor(reference).ok());
        let Some(tensor) = tensor else { return Ok(None) };
        tensors.push(tensor);
    }
    let outputs = call.add_op(op, &tensors.iter().collect::<Vec<_>>())?;
    let node =
        outputs.first().map(|first| first.value().node).ok_or_else(|| Error::internal("an op without results"))?;
    let graph = call.graph().clone();
    let body = graph.body();
    let values: Vec<Value> = tensors.iter().map(Tensor::value).collect();
    let mut writer = Rewriter { body: &body, values: &values, names: &names, ..Rewriter::new(&body) };
    let mut def = NodeDef::new(&call.def.name, body.node(node).op.name());
    def.input = names.iter().map(ToString::to_string).collect();
    let Ok(last) = body.node(node).op.rules().spell(def, body.node(node), &mut writer) else { return Ok(None) };
    let last = last.attr(ATTRIBUTE, text.as_str());
    let Rewriter { written, sizes, .. } = writer;
    let is_written = |expected: &NodeDef| {
        let found = call.reader.nodes.get(&expected.name).map(|found| call.reader.nodes.def(found.node));
        found.is_some_and(|found| same(call.reader, expected, found, &sizes))
    };
    let all = written.iter().all(is_written) && same(call.reader, &last, call.def, &sizes);
    Ok(all.then(|| outputs.into_iter().map(NodeOutput::from).collect()))
}

/// Whether a node of the file is the one that we would write.
fn same(reader: &Reader<'_>, expected: &NodeDef, found: &NodeDef, sizes: &[Dim]) -> bool {
    let same_input = |(expected, found): (&String, &String)| match size_number(expected) {
        Some(number) => reader.known_size(found).is_some_and(|size| sizes.get(number) == Some(&size)),
        None => expected == found,
    };
    expected.name == found.name
        && expected.op == found.op
        && expected.device == found.device
        && expected.attr == found.attr
        && expected.input.len() == found.input.len()
        && expected.input.iter().zip(&found.input).all(same_input)
}

impl Reader<'_> {
    /// The size that a scalar of the file is.
    fn known_size(&self, name: &str) -> Option<Dim> {
        let NodeOutput::Value(known) = self.item(self.nodes.get(name)?).ok()? else { return None };
        match &known.numbers?.elements[..] {
            [Number::Element(tensor, place)] => self.element_size(tensor, *place),
            [number] => number.dim(),
            _ => None,
        }
    }
}

/// Marks a size that the file computes with nodes of any names. No name of a node begins with it.
const SIZE: char = '\0';

fn size_number(input: &str) -> Option<usize> {
    input.strip_prefix(SIZE)?.parse().ok()
}

/// Writes one op with the names of a file.
struct Rewriter<'a> {
    body: &'a Body,
    values: &'a [Value],
    names: &'a [&'a str],
    written: Vec<NodeDef>,
    taken: HashSet<String>,
    readers: Vec<String>,
    /// The sizes that are known only at run time.
    sizes: Vec<Dim>,
}

impl<'a> Rewriter<'a> {
    fn new(body: &'a Body) -> Rewriter<'a> {
        Rewriter {
            body,
            values: &[],
            names: &[],
            written: Vec::new(),
            taken: HashSet::new(),
            readers: Vec::new(),
            sizes: Vec::new(),
        }
    }
}

fn not_here<T>() -> Result<T> {
    Err(Error::internal("an op that is read again has only plain nodes"))
}

impl Spelling for Rewriter<'_> {
    fn body(&self) -> &Body {
        self.body
    }

    fn name_of(&self, value: Value) -> String {
        let place = self.values.iter().position(|known| *known == value);
        place.map_or_else(String::new, |place| self.names[place].to_string())
    }

    fn part(&mut self, owner: &str, role: &str, op: &str) -> NodeDef {
        let wanted = format!("{owner}/{role}");
        let mut name = wanted.clone();
        for n in 1.. {
            if self.taken.insert(name.clone()) {
                break;
            }
            name = format!("{wanted}_{n}");
        }
        NodeDef::new(name, op)
    }

    fn add(&mut self, def: NodeDef) -> String {
        let name = def.name.clone();
        self.written.push(def);
        name
    }

    fn size(&mut self, dim: Dim, owner: &str, role: &str) -> Result<String> {
        if let Dim::Known(n) = dim {
            return self.int(owner, role, n);
        }
        self.sizes.push(dim);
        Ok(format!("{SIZE}{}", self.sizes.len() - 1))
    }

    fn handle(&mut self, _id: VarId) -> String {
        String::new()
    }

    fn readers(&mut self, _id: VarId) -> &mut Vec<String> {
        &mut self.readers
    }

    fn table(&mut self, _table: &LookupTable, _reverse: bool) -> Result<String> {
        not_here()
    }

    fn in_place(&mut self, _def: NodeDef, _graph: &Graph, _results: &[&Tensor]) -> Result<NodeDef> {
        not_here()
    }

    fn function(&mut self, _name: &str, _function: Function) -> Result<String> {
        not_here()
    }

    fn nodes_of(
        &self,
        _graph: &Graph,
        _inputs: &[String],
        _results: &[&Tensor],
    ) -> Result<(Vec<NodeDef>, Vec<String>)> {
        not_here()
    }
}
