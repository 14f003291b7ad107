//! What nodes are called in a GraphDef: their own names, as far as TensorFlow allows.

use std::collections::HashMap;

use estimand_graph::looks::look;
use estimand_graph::{Body, NodeId, Op, Value};

/// The names of a graph's nodes in TensorFlow: the same for every set of fetches.
///
/// A character that TensorFlow does not allow becomes `_`; a name that is taken gets `_1`, `_2`,
/// ...
#[derive(Clone, Debug)]
pub struct Names {
    nodes: Vec<String>,
    /// The names that are taken, and the first number that may be free behind each.
    taken: HashMap<String, usize>,
}

impl Names {
    /// The names of all nodes of a graph.
    pub fn new(body: &Body) -> Names {
        let mut names = Names { nodes: Vec::new(), taken: HashMap::new() };
        for node in body.nodes() {
            let name = match node.op {
                // TF: the variable's own name is its handle's.
                Op::Variable(_) => names.unused(&format!("{}/Read/ReadVariableOp", node.name)),
                _ => names.unused(&node.name),
            };
            names.nodes.push(name);
        }
        names
    }

    /// The names of a graph that is written in the place of one of this graph's nodes: placeholders
    /// are called as the inputs, all others begin with the owner's name.
    pub(super) fn inside(&mut self, body: &Body, owner: &str, inputs: &[String]) -> Names {
        let mut inside = Names { nodes: Vec::new(), taken: std::mem::take(&mut self.taken) };
        let mut inputs = inputs.iter();
        for node in body.nodes() {
            let name = match (&node.op, inputs.as_slice()) {
                (Op::Placeholder(_), [input, ..]) => {
                    inputs.next();
                    input.clone()
                }
                _ => inside.unused(&format!("{owner}/{}", node.name)),
            };
            inside.nodes.push(name);
        }
        inside
    }

    /// Takes back the names that [`Names::inside`] has lent.
    pub(super) fn take_all(&mut self, inside: Names) {
        self.taken = inside.taken;
    }

    /// What a node is called.
    pub fn node(&self, id: NodeId) -> &str {
        &self.nodes[id.0 as usize]
    }

    /// What a value is called as an input or a fetch: `node`, or `node:1` for a second output.
    pub fn tensor(&self, value: Value) -> String {
        match value.output {
            0 => self.node(value.node).to_string(),
            n => format!("{}:{n}", self.node(value.node)),
        }
    }

    /// Takes a name that no node has, like the one asked for.
    pub(super) fn unused(&mut self, wanted: &str) -> String {
        let valid = valid(wanted);
        let Some(&first) = self.taken.get(&valid) else {
            self.taken.insert(valid.clone(), 1);
            return valid;
        };
        let mut n = first;
        loop {
            look(1);
            let name = format!("{valid}_{n}");
            n += 1;
            if !self.taken.contains_key(&name) {
                self.taken.insert(name.clone(), 1);
                self.taken.insert(valid, n);
                return name;
            }
        }
    }
}

/// A name that matches TensorFlow's `[A-Za-z0-9.][A-Za-z0-9_.\-/>]*`.
fn valid(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || "_.-/>".contains(c) { c } else { '_' };
    let name: String = name.chars().map(allowed).collect();
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
    if begins_well { name } else { format!("n{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimand_graph::Graph;
    use estimand_tensor::DType;

    #[test]
    fn names_are_made_valid_and_unique() {
        let graph = Graph::new();
        for name in ["sepal length", "sepal_length", "größe", "_hidden", "", "a/b"] {
            graph.placeholder(name, DType::F32, [1]);
        }
        let names = Names::new(&graph.body());
        assert_eq!(names.nodes, ["sepal_length", "sepal_length_1", "gr__e", "n_hidden", "n", "a/b"]);
    }
}
