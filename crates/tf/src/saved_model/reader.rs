//! Reads the nodes of a GraphDef into one of our graphs, with one rule for each op.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_engine::Compiled;
use estimand_graph::looks::look;
use estimand_graph::op::{Constant, Op, Recurrent};
use estimand_graph::pass::each_dim;
use estimand_graph::{Body, Executor, Graph, Node, NodeId, Program, RunArgs, Tensor, Value, VarId, Variables};
use estimand_tensor::{Array, DType, Dim, Error, Result};
use smallvec::smallvec;

use super::growth::Growth;
use super::limits::ReadLimits;
use super::node_output::{KnownValue, NodeOutput};
use super::node_reader::NodeReader;
use super::nodes::{Nodes, Reference};
use super::numbers::Number;
use super::rules;
use super::rules::loops::LoopFunctions;
use super::step::StepArguments;

/// Access to the folder that a graph was saved in.
pub(super) trait Surroundings {
    /// Dtype and sizes of the variable of a node.
    fn variable(&self, node: &str, shared_name: &str) -> Result<Option<(DType, Vec<usize>)>>;

    /// A tensor of the checkpoint.
    fn saved(&self, name: &str) -> Result<Array>;

    /// The asset file that a string constant of the graph names.
    fn asset(&self, node: &str) -> Option<PathBuf>;
}

/// The state of reading one graph.
pub(super) struct Reader<'a> {
    pub graph: Graph,
    pub nodes: &'a Nodes<'a>,
    pub surroundings: &'a dyn Surroundings,
    pub limits: &'a ReadLimits,
    /// The variables, by the name of the node that holds them.
    pub variables: Vec<(String, VarId)>,
    items: HashMap<Reference, NodeOutput>,
    n_outputs: HashMap<usize, usize>,
    /// Tensor elements that became sizes, so that each is one symbol.
    elements: HashMap<(Value, usize), Dim>,
    /// Tensor elements that are places along an axis, so that each is one symbol.
    places: HashMap<(Value, usize, Dim), Dim>,
    growth: Growth,
    /// The functions that we write for the loops of recurrent cells, by cell, dtype and units.
    pub loops: HashMap<(Recurrent, DType, usize), LoopFunctions>,
    /// Values of nodes that were computed during reading.
    computed: HashMap<Value, Array>,
    pub n_evaluated: usize,
    pub repeated_bytes: usize,
    /// The arguments, if the graph is a step of a loop.
    pub step: Option<StepArguments>,
    /// The number of loops around the graph.
    pub n_loops: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(nodes: &'a Nodes<'a>, surroundings: &'a dyn Surroundings, limits: &'a ReadLimits) -> Reader<'a> {
        Reader {
            graph: Graph::new(),
            nodes,
            surroundings,
            limits,
            variables: Vec::new(),
            items: HashMap::new(),
            n_outputs: HashMap::new(),
            elements: HashMap::new(),
            places: HashMap::new(),
            growth: Growth::default(),
            loops: HashMap::new(),
            computed: HashMap::new(),
            n_evaluated: 0,
            repeated_bytes: 0,
            step: None,
            n_loops: 0,
        }
    }

    /// Sets an output of a node that is fed.
    pub(super) fn give(&mut self, reference: Reference, value: impl Into<NodeOutput>) {
        self.items.insert(reference, value.into());
    }

    /// Reads all nodes that some outputs need.
    pub(super) fn read(&mut self, outputs: &[Reference]) -> Result<()> {
        let given: HashSet<Reference> = self.items.keys().copied().collect();
        let order = self.nodes.needed(outputs, &given)?;
        self.nodes.check_supported(&order)?;
        for node in order {
            self.read_node(node).map_err(|e| e.context(format!("in {}", self.nodes.describe(node))))?;
        }
        Ok(())
    }

    fn read_node(&mut self, node: usize) -> Result<()> {
        let def = self.nodes.def(node);
        let inputs = self.nodes.inputs(node)?;
        // The names of our nodes begin with the name of the TensorFlow node.
        let graph = self.graph.clone();
        let scope = graph.scope(&def.name);
        let outputs = rules::read(&mut NodeReader { reader: self, def, node, inputs });
        drop(scope);
        // A build error is more precise than a rule's error that follows from it.
        graph.check()?;
        let outputs = outputs?;
        self.growth.check(&graph.body(), self.limits)?;
        self.n_outputs.insert(node, outputs.len());
        for (output, item) in outputs.into_iter().enumerate() {
            // Fed outputs are not replaced.
            self.items.entry(Reference { node, output }).or_insert(item);
        }
        Ok(())
    }

    pub(super) fn item(&self, reference: Reference) -> Result<NodeOutput> {
        self.items.get(&reference).cloned().ok_or_else(|| {
            let def = self.nodes.def(reference.node);
            let n = self.n_outputs.get(&reference.node).copied().unwrap_or(0);
            Error::config(format!(
                "there is no output {} of `{}` ({}), which has {n} outputs",
                reference.output, def.name, def.op
            ))
        })
    }

    /// Returns an output as a tensor, created once.
    pub(super) fn tensor(&mut self, reference: Reference) -> Result<Tensor> {
        let mut known = match self.item(reference)? {
            NodeOutput::Value(known) => known,
            other => {
                let name = &self.nodes.def(reference.node).name;
                return Err(Error::config(format!("`{name}` is {}; expected a tensor", other.kind())));
            }
        };
        if let Some(tensor) = known.tensor {
            return Ok(tensor);
        }
        let tensor = match (&known.array, &known.numbers) {
            (Some(array), _) => self.graph.constant(array.clone()),
            (None, Some(numbers)) => numbers.tensor(&self.graph)?,
            (None, None) => return Err(Error::internal("a value without any form")),
        };
        self.graph.check()?;
        known.tensor = Some(tensor.clone());
        self.items.insert(reference, NodeOutput::Value(known));
        Ok(tensor)
    }

    /// Returns a number as a size, with one symbol for each number.
    pub(super) fn size(&mut self, number: &Number) -> Result<Dim> {
        let Number::Element(tensor, place) = number else { return number.size(&self.graph) };
        let key = (tensor.value(), *place);
        if let Some(&dim) = self.elements.get(&key) {
            return Ok(dim);
        }
        let dim = number.size(&self.graph)?;
        self.graph.check()?;
        self.elements.insert(key, dim);
        Ok(dim)
    }

    /// Returns a place along an axis as a size. A number below 0 counts from the end of the axis;
    /// one before its beginning is 0.
    pub(super) fn place(&mut self, number: &Number, whole: Dim) -> Result<Dim> {
        if let Some(back) = number.known().filter(|&k| k < 0) {
            return Ok(self.graph.symbols_mut(|s| s.sub(whole, Dim::Known(back.unsigned_abs() as usize))));
        }
        let Number::Element(tensor, element) = number else { return self.size(number) };
        let key = (tensor.value(), *element, whole);
        if let Some(&dim) = self.places.get(&key) {
            return Ok(dim);
        }
        let (k, n) = (number.tensor(&self.graph, DType::I64)?, Number::of(whole).tensor(&self.graph, DType::I64)?);
        let place = k.less(0i64).select(&(&k + &n), &k).maximum(0i64);
        self.graph.check()?;
        let dim = self.size(&Number::Element(place, 0))?;
        self.places.insert(key, dim);
        Ok(dim)
    }

    /// The symbol of an element that has become a size.
    pub(super) fn element_size(&self, tensor: &Tensor, place: usize) -> Option<Dim> {
        self.elements.get(&(tensor.value(), place)).copied()
    }

    /// Returns the value of an output that does not depend on feeds or variables.
    pub(super) fn constant(&mut self, reference: Reference) -> Result<Array> {
        let mut known: Box<KnownValue> = match self.item(reference)? {
            NodeOutput::Value(known) => known,
            NodeOutput::Saved(name) => return self.surroundings.saved(&name),
            other => return Err(Error::config(format!("the input is {}; expected a constant", other.kind()))),
        };
        if let Some(array) = known.array {
            return Ok(array);
        }
        let array = match known.numbers.as_ref().map(|numbers| numbers.array()).transpose()?.flatten() {
            Some(array) => array,
            None => {
                let tensor = self.tensor(reference)?;
                self.evaluate(&tensor)?
            }
        };
        known.array = Some(array.clone());
        self.items.insert(reference, NodeOutput::Value(known));
        Ok(array)
    }

    /// Computes a tensor that does not depend on anything from outside.
    fn evaluate(&mut self, tensor: &Tensor) -> Result<Array> {
        if let Some(array) = self.computed.get(&tensor.value()) {
            return Ok(array.clone());
        }
        let (body, value) = match constant_part(&self.graph.body(), tensor.value(), &self.computed) {
            Some(part) => part,
            None => (self.graph.body().clone(), tensor.value()),
        };
        self.limits.add_evaluated(&mut self.n_evaluated, body.nodes().len())?;
        let body = Arc::new(body);
        let program = Program::new(body.clone(), &[value])?;
        let reads_variable = |value: &Value| matches!(body.node(value.node).op, Op::Variable(_));
        let steps = program.host_steps().iter().chain(program.steps()).chain(program.after_steps());
        let varies = steps.flat_map(|step| &step.inputs).chain(program.results()).any(reads_variable);
        if varies || !program.placeholders().is_empty() {
            return Err(Error::unsupported(format!(
                "{} must be known when the graph is read, but it depends on inputs or variables",
                tensor.describe()
            )));
        }
        let cpu = Cpu::with_threads(1);
        let state = cpu.place(&Variables::default(), 0)?;
        let mut outputs = Vec::new();
        Compiled::new(&cpu, program)?.forward(&*state, RunArgs::default(), &mut outputs)?;
        let array = outputs.pop().ok_or_else(|| Error::internal("a value was not computed"))?;
        self.computed.insert(tensor.value(), array.clone());
        Ok(array)
    }
}

/// Extracts the part of a graph that computes one value, down to constants and values computed
/// before. Returns it as a separate graph, with the value there. `None` if the value depends on
/// something from outside, or on sizes that are known only at run time.
fn constant_part(body: &Body, wanted: Value, computed: &HashMap<Value, Array>) -> Option<(Body, Value)> {
    let mut needed: BTreeSet<NodeId> = BTreeSet::new();
    let mut stack = vec![wanted];
    while let Some(value) = stack.pop() {
        look(1);
        let node = body.node(value.node);
        let mut is_known = !matches!(node.op, Op::Placeholder(_) | Op::Variable(_) | Op::Host(_));
        each_dim(node, &mut |dim| is_known &= dim.known().is_some());
        if !is_known {
            return None;
        }
        if needed.insert(value.node) {
            stack.extend(node.inputs.iter().filter(|input| !computed.contains_key(*input)));
        }
    }
    let mut part = Body::default();
    let mut numbers: HashMap<Value, Value> = HashMap::new();
    for id in needed {
        let mut node = body.node(id).clone();
        for input in &mut node.inputs {
            if let (None, Some(array)) = (numbers.get(input), computed.get(input)) {
                let from = body.node(input.node);
                let (op, outputs) = (Op::Constant(Constant(array.clone())), smallvec![body.spec(*input).clone()]);
                let constant = Node { op, inputs: smallvec![], outputs, name: from.name.clone(), site: from.site };
                numbers.insert(*input, Value { node: part.push(constant), output: 0 });
            }
            *input = *numbers.get(input)?;
        }
        let n_outputs = node.outputs.len() as u16;
        let copy = part.push(node);
        for output in 0..n_outputs {
            numbers.insert(Value { node: id, output }, Value { node: copy, output });
        }
    }
    let value = *numbers.get(&wanted)?;
    Some((part, value))
}
