//! Names of nodes in a GraphDef: our names, as far as TensorFlow allows them.

use std::collections::HashMap;

use estimand_graph::looks::look;
use estimand_graph::{Body, NodeId, Op, Value};

/// The TensorFlow names of a graph's nodes. They are the same for every set of fetches.
///
/// A character that TensorFlow does not allow becomes `_`; a name that is taken gets `_1`, `_2`,
/// ...
#[derive(Clone, Debug)]
pub struct Names {
    nodes: Vec<String>,
    /// The used names, each with the first suffix that may be free.
    taken: HashMap<String, usize>,
}

impl Names {
    /// The names of all nodes of a graph.
    pub fn new(body: &Body) -> Names {
        Names::after(body, HashMap::new())
    }

    /// The names of a graph that is written after others, whose names are taken.
    pub(super) fn after(body: &Body, taken: HashMap<String, usize>) -> Names {
        let mut names = Names { nodes: Vec::new(), taken };
        for node in body.nodes() {
            let name = match node.op {
                // TF: the handle has the variable's own name.
                Op::Variable(_) => names.unused(&format!("{}/Read/ReadVariableOp", node.name)),
                _ => names.unused(&node.name),
            };
            names.nodes.push(name);
        }
        names
    }

    /// The names of a graph that is written in place of one of this graph's nodes. Placeholders get
    /// the names of the inputs; all other names begin with the owner's name.
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

    /// The names of a graph that is written as a function, whose values have names of their own.
    /// Placeholders get the names of the inputs.
    pub(super) fn of_function(body: &Body, inputs: &[String]) -> Names {
        let taken = inputs.iter().map(|input| (input.clone(), 1)).collect();
        let mut names = Names { nodes: Vec::new(), taken };
        let mut inputs = inputs.iter();
        for node in body.nodes() {
            let input = if node.op.is_placeholder() { inputs.next() } else { None };
            let name = input.cloned().unwrap_or_else(|| names.unused(&node.name));
            names.nodes.push(name);
        }
        names
    }

    /// Moves the used names out, for the next graph.
    pub(super) fn taken(&mut self) -> HashMap<String, usize> {
        std::mem::take(&mut self.taken)
    }

    /// Takes back the used names that [`Names::inside`] has moved out.
    pub(super) fn take_all(&mut self, inside: Names) {
        self.taken = inside.taken;
    }

    /// The name of a node.
    pub fn node(&self, id: NodeId) -> &str {
        &self.nodes[id.0 as usize]
    }

    /// The name of a value as an input or a fetch: `node`, or `node:1` for a second output.
    pub fn tensor(&self, value: Value) -> String {
        match value.output {
            0 => self.node(value.node).to_string(),
            n => format!("{}:{n}", self.node(value.node)),
        }
    }

    /// Reserves an unused name similar to `wanted`.
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

/// Converts a name to one that matches TensorFlow's `[A-Za-z0-9.][A-Za-z0-9_.\-/>]*`.
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
