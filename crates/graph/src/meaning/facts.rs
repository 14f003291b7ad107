//! Collects the facts of a graph, with the inputs that each was computed from and the variables
//! that depend on it.

use std::collections::{HashMap, HashSet};

use super::{ColumnValue, Fact, Meaning, Stated, Subject};
use crate::body::{Body, Node};
use crate::op::Op;
use crate::value::{NodeId, Value};
use crate::variables::{Role, VarId};

impl Body {
    /// Returns all distinct facts, in the order in which they were stated.
    pub fn facts(&self) -> Vec<Fact> {
        let mut walk = None;
        let mut facts: Vec<Fact> = Vec::new();
        let mut known: HashMap<(NodeId, String), Vec<usize>> = HashMap::new();
        for stated in &self.meanings.stated {
            let said = match (&stated.said, &self.node(stated.node).op) {
                (Some(said), _) => vec![said.clone()],
                (None, Op::Host(op)) => {
                    let said = op.rules().meaning().into_iter();
                    said.map(|(aspect, value)| (aspect.to_string(), value)).collect()
                }
                (None, _) => Vec::new(),
            };
            if said.is_empty() {
                continue;
            }
            let walk = walk.get_or_insert_with(|| Walk::new(self));
            for fact in walk.facts(stated, said) {
                let equals = known.entry((stated.node, fact.aspect.clone())).or_default();
                if !equals.iter().any(|&i| facts[i] == fact) {
                    equals.push(facts.len());
                    facts.push(fact);
                }
            }
        }
        facts
    }
}

impl Body {
    /// Returns the values in which columns state what they made of their inputs: ids of a
    /// vocabulary or a hash, numbers of buckets.
    pub fn column_values(&self) -> Vec<ColumnValue> {
        let mut walk = None;
        let mut values: Vec<ColumnValue> = Vec::new();
        for Stated { node, column, said } in &self.meanings.stated {
            let (Some(column), None, Op::Host(op)) = (column, said, &self.node(*node).op) else { continue };
            let facts: Vec<(String, Meaning)> =
                op.rules().meaning().into_iter().map(|(aspect, value)| (aspect.to_string(), value)).collect();
            if facts.is_empty() {
                continue;
            }
            let walk = walk.get_or_insert_with(|| Walk::new(self));
            let (column, scope) = (**column).clone();
            let made = ColumnValue {
                column,
                scope,
                inputs: walk.inputs_of(*node),
                facts,
                value: Value { node: *node, output: 0 },
            };
            if !values.contains(&made) {
                values.push(made);
            }
        }
        values
    }
}

/// Walks a graph in both directions.
struct Walk<'a> {
    body: &'a Body,
    users: Vec<Vec<NodeId>>,
    /// Whether a node's value depends on variables.
    depends: Vec<bool>,
    /// The variable that a node reads, possibly reshaped.
    direct: Vec<Option<VarId>>,
    inputs: HashMap<NodeId, (&'a str, &'a str)>,
}

impl<'a> Walk<'a> {
    fn new(body: &'a Body) -> Walk<'a> {
        let n = body.nodes.len();
        let (mut users, mut depends, mut direct) = (vec![Vec::new(); n], vec![false; n], vec![None; n]);
        for (i, node) in body.nodes.iter().enumerate() {
            for input in &node.inputs {
                users[input.node.0 as usize].push(NodeId(i as u32));
                depends[i] |= depends[input.node.0 as usize];
            }
            direct[i] = match &node.op {
                Op::Variable(variable) => Some(variable.0),
                Op::Reshape(_) | Op::Cast(_) | Op::Transpose(_) | Op::BroadcastTo(_) | Op::StopGradient(_) => {
                    direct[node.inputs[0].node.0 as usize]
                }
                _ => None,
            };
            depends[i] |= matches!(node.op, Op::Variable(_));
        }
        let inputs = body.meanings.inputs.iter().map(|(node, what, name)| (*node, (what.as_str(), name.as_str())));
        Walk { body, users, depends, direct, inputs: inputs.collect() }
    }

    fn facts(&self, stated: &Stated, said: Vec<(String, Meaning)>) -> Vec<Fact> {
        let Stated { node, column, .. } = stated;
        let is_result = self.depends[node.0 as usize];
        let subject = match column.as_deref() {
            Some((name, scope)) => Subject::Column { name: name.clone(), scope: scope.clone() },
            None if is_result => Subject::Outputs,
            None => Subject::Inputs,
        };
        // Results depend on all inputs, so inputs are not listed for them.
        let inputs = if subject == Subject::Outputs { Vec::new() } else { self.inputs_of(*node) };
        let variables = if subject == Subject::Outputs { self.made_with(*node) } else { self.met_by(*node) };
        let mut facts = Vec::with_capacity(said.len());
        let ordered = (inputs.len() > 1 && stated.said.is_none()).then(|| {
            // Ids of several inputs depend on the order of the inputs.
            let names: Vec<&str> = inputs.iter().map(|(_, name)| name.as_str()).collect();
            ("order of inputs".to_string(), Meaning::Text(names.join(", ")))
        });
        for (aspect, value) in said.into_iter().chain(ordered) {
            let (subject, inputs, variables) = (subject.clone(), inputs.clone(), variables.clone());
            facts.push(Fact { subject, inputs, aspect, value, variables });
        }
        facts
    }

    fn node(&self, id: NodeId) -> &'a Node {
        self.body.node(id)
    }

    /// The placeholders that a node is computed from, in the order they are read.
    fn inputs_of(&self, node: NodeId) -> Vec<(String, String)> {
        let (mut found, mut seen, mut open) = (Vec::new(), HashSet::new(), vec![node]);
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            if matches!(self.node(id).op, Op::Placeholder(_)) {
                let (what, name) =
                    self.inputs.get(&id).copied().unwrap_or_else(|| ("placeholder", self.node(id).name.as_str()));
                let input = (what.to_string(), name.to_string());
                if !found.contains(&input) {
                    found.push(input);
                }
            }
            open.extend(self.node(id).inputs.iter().rev().map(|input| input.node));
        }
        found
    }

    /// The first variables that are combined with values computed from a node.
    fn met_by(&self, node: NodeId) -> Vec<String> {
        let (mut found, mut seen, mut open) = (Vec::new(), HashSet::from([node]), vec![node]);
        while let Some(id) = open.pop() {
            for &user in &self.users[id.0 as usize] {
                let others = || self.node(user).inputs.iter().filter(|input| input.node != id);
                // A concatenation with a value that depends on variables does not combine with them
                // yet.
                let joins = matches!(self.node(user).op, Op::Concat(_));
                let meets = |input: &Value| self.depends[input.node.0 as usize] && !seen.contains(&input.node);
                if !joins && others().any(meets) {
                    others().for_each(|input| self.add_direct(input.node, &mut found));
                } else if seen.insert(user) {
                    open.push(user);
                }
            }
        }
        found.sort();
        found
    }

    /// The last variables that a result was computed with. A bias vector is added to the product
    /// with a matrix, so the walk continues to the matrix.
    fn made_with(&self, node: NodeId) -> Vec<String> {
        let (mut found, mut seen, mut open) = (Vec::new(), HashSet::from([node]), vec![node]);
        while let Some(id) = open.pop() {
            let inputs = self.node(id).inputs.iter().map(|input| input.node);
            let rank =
                |node: NodeId| self.direct[node.0 as usize].map_or(0, |id| self.body.variables().spec(id).dims.len());
            let ends = inputs.clone().any(|input| rank(input) > 1);
            for input in inputs {
                self.add_direct(input, &mut found);
                let goes_on = !ends && self.depends[input.0 as usize] && self.direct[input.0 as usize].is_none();
                if goes_on && seen.insert(input) {
                    open.push(input);
                }
            }
        }
        found.sort();
        found
    }

    fn add_direct(&self, node: NodeId, found: &mut Vec<String>) {
        let Some(id) = self.direct[node.0 as usize] else { return };
        let spec = self.body.variables().spec(id);
        if matches!(spec.role, Role::Model { .. }) && !found.contains(&spec.name) {
            found.push(spec.name.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use estimand_tensor::{Array, DType, Dim};

    use super::*;
    use crate::{Combiner, CrossKey, Graph, Initializer, LookupTable, Optimizer, RaggedTensor, Tensor};
    use estimand_update::Sgd;

    fn words(g: &Graph, name: &str) -> Tensor {
        let words = g.placeholder(name, DType::Str, [Dim::BATCH]);
        g.name_input(&words, "feature", name);
        words
    }

    fn shown(facts: &[Fact]) -> Vec<String> {
        let line = |fact: &Fact| {
            let inputs: Vec<&str> = fact.inputs.iter().map(|(_, name)| name.as_str()).collect();
            format!("{}: {} = {} -> {}", inputs.join(" "), fact.aspect, fact.value, fact.variables.join(" "))
        };
        facts.iter().map(line).collect()
    }

    #[test]
    fn facts_name_the_inputs_and_the_variables_they_meet_first() {
        let g = Graph::new();
        let ids = words(&g, "word").hash_bucket(100).floor_mod(10);
        let table = g.variable("table", [10, 2], Initializer::Zeros);
        let kernel = g.variable("kernel", [2, 3], Initializer::Zeros);
        let hidden = table.lookup(&RaggedTensor::from_rows(&ids), Combiner::Mean).matmul(&kernel);
        let logits = &hidden + &g.variable("bias", [3], Initializer::Zeros);
        LookupTable::from_list(["a", "b", "c"]).unwrap().reverse(&logits.argmax(-1), "?");
        let expected = [
            "word: hash buckets = 100 -> table".to_string(),
            ": vocabulary = 3 terms (`a`, `b`, `c`) -> bias kernel".to_string(),
        ];
        assert_eq!(shown(&g.body().facts()), expected);
        // Gradients and updates read ids too, but they do not change the facts.
        Optimizer::new(Sgd::default(), 0.1).minimize(&logits.square().mean());
        assert_eq!(shown(&g.body().facts()), expected);
    }

    #[test]
    fn a_neighbour_with_weights_of_its_own_hides_nothing() {
        let g = Graph::new();
        let ids = RaggedTensor::from_rows(&words(&g, "word").hash_bucket(4));
        let other = RaggedTensor::from_rows(&words(&g, "other").hash_bucket(5));
        let vectors = g.variable("vectors", [5, 2], Initializer::Zeros).lookup(&other, Combiner::Mean);
        let x = Tensor::concat(&[&ids.multi_hot(4, None), &vectors], 1);
        x.matmul(&g.variable("kernel", [6, 1], Initializer::Zeros));
        assert_eq!(
            shown(&g.body().facts()),
            ["word: hash buckets = 4 -> kernel", "other: hash buckets = 5 -> vectors"]
        );
    }

    #[test]
    fn the_order_of_a_cross_counts() {
        let g = Graph::new();
        let (a, b) = (words(&g, "a"), words(&g, "b"));
        let key = |t: &Tensor| CrossKey::Ragged(RaggedTensor::from_rows(t));
        g.cross(&[key(&b), key(&a)], 50, 0);
        let facts = shown(&g.body().facts());
        assert!(facts.contains(&"b a: hash buckets = 50 -> ".to_string()), "{facts:?}");
        assert!(facts.contains(&"b a: order of inputs = `b, a` -> ".to_string()), "{facts:?}");
    }

    #[test]
    fn one_lookup_of_two_columns_is_a_fact_of_both() {
        let g = Graph::new();
        let word = words(&g, "word");
        let table = LookupTable::from_list(["x"]).unwrap();
        for name in ["one", "two"] {
            let _scope = g.reopen(name);
            let _about = g.about(name);
            table.lookup(&word);
            table.lookup(&word);
        }
        let facts = g.body().facts();
        let columns: Vec<_> = facts.iter().filter(|f| f.aspect == "vocabulary").map(|f| f.subject.clone()).collect();
        let column = |name: &str| Subject::Column { name: name.to_string(), scope: name.to_string() };
        assert_eq!(columns, [column("one"), column("two")]);
    }

    #[test]
    fn constants_of_a_function_are_found() {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [Dim::BATCH]);
        let (_, constants) = g.constants_of(|| (&x - 3.0) / 0.5);
        assert_eq!(constants, [0.5, 3.0]);
        let (_, constants) = g.constants_of(|| &x - &g.constant(Array::from([2f32, 1.0])).mean());
        assert_eq!(constants, [1.0, 2.0]);
    }

    #[test]
    fn an_embedding_of_several_looks_meets_each_table_once() {
        let g = Graph::new();
        let ids = RaggedTensor::from_rows(&words(&g, "word").hash_bucket(7));
        for name in ["one", "two"] {
            g.variable(name, [7, 1], Initializer::Zeros).lookup(&ids, Combiner::Sum);
        }
        assert_eq!(shown(&g.body().facts()), ["word: hash buckets = 7 -> one two"]);
    }
}
