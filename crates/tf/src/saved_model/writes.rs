//! Refuses outputs that read a variable or a table that the same run changes.
//!
//! TensorFlow 2 keeps a write behind control edges alone, which are not read, so the output would
//! silently be that of the value in the checkpoint. A write of something that no output reads
//! changes no answer and is ignored: a batch normalization in training writes its averages, and
//! reads them only for the next ones.
//!
//! All nodes of a called function run, and of a graph those before the outputs, through data or
//! control edges. Each function is searched once, for what becomes of its arguments.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

use estimand_graph::looks::look;
use estimand_tensor::{Error, Result};
use estimand_wire::graph_def::Attr;
use estimand_wire::{FunctionDef, GraphDef, NodeDef};

use super::inline::node_of;
use super::library::Library;

/// How deep functions may be nested. Real models need about ten.
const DEEPEST: usize = 200;

/// The most nodes in a row that pass a resource on.
const LONGEST: usize = 64;

/// Refuses a graph whose outputs read what is written before or beside them. Names of tensors are
/// those of the graph: `node` or `node:1`.
pub(super) fn check<'a>(graph: &'a GraphDef, library: &Library<'a>, outputs: &[&str], fed: &[&str]) -> Result<()> {
    let mut scope = Scope::new(&graph.node, None);
    scope.fed = fed.iter().map(|name| (node_of(name), number_of(name))).collect();
    let executed = scope.executed(outputs);
    let mut search = Search { library, functions: HashMap::new(), writes: BTreeMap::new(), reads: BTreeMap::new() };
    search.effects(&scope, &executed, outputs, 0)?;
    for (resource, write) in &search.writes {
        if let Some(read) = search.reads.get(resource) {
            return Err(Error::unsupported(format!(
                "{write} changes {resource}, which {read} reads for an output; a prediction changes no variables and \
                 no tables"
            ))
            .help(
                "export a signature that does not change what it returns values of (Keras: layers without \
                 stateful=True, called with training=False)",
            ));
        }
    }
    Ok(())
}

/// Whether an op changes the variable or the table that is its first input.
fn is_write(op: &str) -> bool {
    const EXACT: [&str; 21] = [
        "AssignVariableOp",
        "AssignAddVariableOp",
        "AssignSubVariableOp",
        "ResourceStridedSliceAssign",
        "ResourceCountUpTo",
        "LookupTableInsert",
        "LookupTableInsertV2",
        "LookupTableImport",
        "LookupTableImportV2",
        "LookupTableRemoveV2",
        "Assign",
        "AssignAdd",
        "AssignSub",
        "StridedSliceAssign",
        "CountUpTo",
        "ScatterNdAdd",
        "ScatterNdSub",
        "ScatterNdUpdate",
        "ScatterNdMax",
        "ScatterNdMin",
        "ScatterUpdate",
    ];
    // The updates of optimizers have an op for each.
    const BEGINNINGS: [&str; 5] = ["ResourceScatter", "ResourceApply", "ResourceSparseApply", "Apply", "SparseApply"];
    const SCATTERS: [&str; 6] = ["ScatterAdd", "ScatterSub", "ScatterMul", "ScatterDiv", "ScatterMin", "ScatterMax"];
    EXACT.contains(&op) || SCATTERS.contains(&op) || BEGINNINGS.iter().any(|beginning| op.starts_with(beginning))
}

/// Whether an op takes a resource without using its value.
fn ignores_value(op: &str) -> bool {
    passes_on(op) || matches!(op, "VariableShape" | "VarIsInitializedOp")
}

/// Whether an op returns its inputs, or its first, as they are.
fn passes_on(op: &str) -> bool {
    matches!(op, "IdentityN" | "While" | "StatelessWhile") || passes_first_on(op)
}

fn passes_first_on(op: &str) -> bool {
    matches!(
        op,
        "Identity"
            | "RefIdentity"
            | "Switch"
            | "RefSwitch"
            | "Enter"
            | "RefEnter"
            | "Exit"
            | "RefExit"
            | "NextIteration"
    )
}

/// A variable of an older graph: the node is its value.
fn is_ref_variable(op: &str) -> bool {
    matches!(op, "VariableV2" | "Variable")
}

/// A variable or a table, by the name that nodes share it under.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Resource<'a> {
    kind: &'static str,
    name: &'a str,
}

impl<'a> Resource<'a> {
    fn of(def: &'a NodeDef) -> Option<Resource<'a>> {
        let kind = match def.op.as_str() {
            "VarHandleOp" | "VariableV2" | "Variable" => "variable",
            op if op.contains("HashTable") => "table",
            _ => return None,
        };
        let shared = match def.attr.get("shared_name").and_then(|attr| attr.value.as_ref()) {
            Some(Attr::S(bytes)) => std::str::from_utf8(bytes).ok().filter(|name| !name.is_empty()),
            _ => None,
        };
        Some(Resource { kind, name: shared.unwrap_or(&def.name) })
    }
}

impl fmt::Display for Resource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind, self.name)
    }
}

/// What an input stands for after all nodes that pass it on.
#[derive(Clone, Copy)]
enum Target<'a> {
    /// An argument of the function.
    Argument(usize),
    Resource(Resource<'a>),
}

/// A node that reads or writes, for errors.
#[derive(Clone, Copy)]
struct Site<'a> {
    def: &'a NodeDef,
    function: Option<&'a str>,
}

impl fmt::Display for Site<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node `{}` ({})", self.def.name, self.def.op)?;
        self.function.map_or(Ok(()), |function| write!(f, " of function `{function}`"))
    }
}

/// What a function does to its arguments.
#[derive(Default)]
struct Effects<'a> {
    n_arguments: usize,
    writes: HashMap<usize, Site<'a>>,
    reads: HashMap<usize, Site<'a>>,
    /// The resource that each result is.
    results: Vec<Option<Target<'a>>>,
}

/// The nodes of a graph or a function, by name.
struct Scope<'a, 's> {
    nodes: HashMap<&'a str, &'a NodeDef>,
    arguments: HashMap<&'a str, usize>,
    function: Option<&'a str>,
    /// The outputs of nodes that are given.
    fed: HashSet<(&'s str, usize)>,
}

impl<'a> Scope<'a, '_> {
    fn new(nodes: &'a [NodeDef], function: Option<&'a FunctionDef>) -> Self {
        look(nodes.len());
        let signature = function.and_then(|function| function.signature.as_ref());
        let arguments = signature.iter().flat_map(|signature| &signature.input_arg);
        Scope {
            nodes: nodes.iter().map(|def| (def.name.as_str(), def)).collect(),
            arguments: arguments.enumerate().map(|(i, argument)| (argument.name.as_str(), i)).collect(),
            function: signature.map(|signature| signature.name.as_str()),
            fed: HashSet::new(),
        }
    }

    fn is_fed(&self, input: &str) -> bool {
        !self.fed.is_empty() && !input.starts_with('^') && self.fed.contains(&(node_of(input), number_of(input)))
    }

    /// The nodes of a graph that run for some outputs.
    fn executed(&self, outputs: &[&str]) -> Vec<&'a NodeDef> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut stack: Vec<&str> = outputs.to_vec();
        let mut waits: Vec<&'a str> = Vec::new();
        while let Some(input) = stack.pop().or_else(|| waits.pop()) {
            look(1);
            let Some(&def) = self.nodes.get(node_of(input)).filter(|_| !self.is_fed(input)) else { continue };
            if seen.insert(def.name.as_str()) {
                waits.extend(def.input.iter().map(String::as_str));
                found.push(def);
            }
        }
        found
    }
}

/// The data inputs of a node.
fn data(def: &NodeDef) -> impl Iterator<Item = &str> {
    def.input.iter().map(String::as_str).filter(|input| !input.starts_with('^'))
}

/// The number at the end of `node:1` or `node:output:1`, or 0.
fn number_of(input: &str) -> usize {
    input.rsplit_once(':').and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

struct Search<'c, 'a> {
    library: &'c Library<'a>,
    /// The functions that were searched; `None` while one is.
    functions: HashMap<&'a str, Option<Rc<Effects<'a>>>>,
    writes: BTreeMap<Resource<'a>, Site<'a>>,
    reads: BTreeMap<Resource<'a>, Site<'a>>,
}

impl<'a> Search<'_, 'a> {
    /// The functions that a node runs.
    fn called(&mut self, def: &'a NodeDef, depth: usize) -> Result<Vec<Rc<Effects<'a>>>> {
        let mut names: Vec<&str> = Vec::new();
        for attr in def.attr.values() {
            match &attr.value {
                Some(Attr::Func(function)) => names.push(&function.name),
                Some(Attr::List(list)) => names.extend(list.func.iter().map(|function| function.name.as_str())),
                _ => {}
            }
        }
        // Older graphs use the function's name as the op.
        names.push(&def.op);
        let mut found = Vec::new();
        for name in names {
            if let Some(function) = self.library.function(name) {
                found.extend(self.function(function, depth)?);
            }
        }
        Ok(found)
    }

    /// What a function does. `None` if it calls itself, which is refused when it is read.
    fn function(&mut self, function: &'a FunctionDef, depth: usize) -> Result<Option<Rc<Effects<'a>>>> {
        let Some(signature) = &function.signature else { return Ok(None) };
        let name = signature.name.as_str();
        if let Some(known) = self.functions.get(name) {
            return Ok(known.clone());
        }
        if depth >= DEEPEST {
            return Err(Error::unsupported(format!("function `{name}` is nested {DEEPEST} functions deep; the limit"))
                .help("the file may be damaged: export the model again"));
        }
        self.functions.insert(name, None);
        let scope = Scope::new(&function.node_def, Some(function));
        let executed: Vec<&NodeDef> = function.node_def.iter().collect();
        let result = |name: &String| function.ret.get(name).map_or("", String::as_str);
        let results: Vec<&str> = signature.output_arg.iter().map(|output| result(&output.name)).collect();
        let mut effects = self.effects(&scope, &executed, &results, depth + 1)?;
        for result in results {
            let target = self.target(&scope, result, depth + 1)?;
            effects.results.push(target);
        }
        let effects = Rc::new(effects);
        self.functions.insert(name, Some(effects.clone()));
        Ok(Some(effects))
    }

    /// What some nodes, which run, do to resources, and what some outputs read of them.
    fn effects(
        &mut self,
        scope: &Scope<'a, '_>,
        executed: &[&'a NodeDef],
        outputs: &[&str],
        depth: usize,
    ) -> Result<Effects<'a>> {
        let mut effects = Effects { n_arguments: scope.arguments.len(), ..Effects::default() };
        for &def in executed {
            look(1);
            if let Some(input) = data(def).next().filter(|_| is_write(&def.op)) {
                let (target, site) = (self.target(scope, input, depth)?, Site { def, function: scope.function });
                add(target, site, &mut effects.writes, &mut self.writes);
            }
            for called in self.called(def, depth)? {
                for (input, argument) in arguments(def, &called) {
                    if let Some(&site) = called.writes.get(&argument) {
                        let target = self.target(scope, input, depth)?;
                        add(target, site, &mut effects.writes, &mut self.writes);
                    }
                }
            }
        }
        let mut seen = HashSet::new();
        let mut outputs = outputs.to_vec();
        let mut stack: Vec<&'a str> = Vec::new();
        while let Some(input) = outputs.pop().or_else(|| stack.pop()) {
            look(1);
            let Some(&def) = scope.nodes.get(node_of(input)).filter(|_| !scope.is_fed(input)) else { continue };
            let is_average = self.is_average(def, input);
            if !seen.insert((def.name.as_str(), is_average)) {
                continue;
            }
            let here = Site { def, function: scope.function };
            if is_ref_variable(&def.op) {
                add(Resource::of(def).map(Target::Resource), here, &mut effects.reads, &mut self.reads);
            }
            let n_inputs = if is_training(def) && !is_average { 3 } else { usize::MAX };
            let called = self.called(def, depth)?;
            if called.is_empty() && !ignores_value(&def.op) {
                for input in data(def).take(n_inputs) {
                    let target = self.target(scope, input, depth)?;
                    add(target, here, &mut effects.reads, &mut self.reads);
                }
            }
            for called in called {
                for (input, argument) in arguments(def, &called) {
                    if let Some(&site) = called.reads.get(&argument) {
                        let target = self.target(scope, input, depth)?;
                        add(target, site, &mut effects.reads, &mut self.reads);
                    }
                }
            }
            stack.extend(data(def).take(n_inputs));
        }
        Ok(effects)
    }

    /// Whether an input is a moving average that a batch normalization computes. Its first output
    /// does not depend on the averages that it gets, in training.
    fn is_average(&self, def: &NodeDef, input: &str) -> bool {
        is_training(def) && matches!(self.number(def, input), 1 | 2)
    }

    /// The number of an output among all of its node.
    fn number(&self, def: &NodeDef, input: &str) -> usize {
        let mut parts = input.split(':').skip(1);
        match (parts.next(), parts.next().and_then(|index| index.parse().ok())) {
            (Some(output), Some(index)) => self.library.output(def, output, index).unwrap_or(index),
            _ => number_of(input),
        }
    }

    /// What an input stands for. `None` if it is computed.
    fn target(&mut self, scope: &Scope<'a, '_>, input: &str, depth: usize) -> Result<Option<Target<'a>>> {
        let Some(&first) = scope.nodes.get(node_of(input)) else {
            return Ok(scope.arguments.get(input).map(|&i| Target::Argument(i)));
        };
        let (mut def, mut number) = (first, self.number(first, input));
        for _ in 0..LONGEST {
            look(1);
            if let Some(resource) = Resource::of(def) {
                return Ok(Some(Target::Resource(resource)));
            }
            let place = match def.op.as_str() {
                op if passes_first_on(op) => 0,
                op if passes_on(op) => number,
                _ => {
                    match self.called(def, depth)?.first().map(|called| (called.clone(), called.results.get(number))) {
                        Some((called, Some(Some(Target::Argument(argument))))) => {
                            data(def).count().saturating_sub(called.n_arguments).saturating_add(*argument)
                        }
                        Some((_, Some(Some(resource)))) => return Ok(Some(*resource)),
                        _ => return Ok(None),
                    }
                }
            };
            let Some(next) = data(def).nth(place) else { return Ok(None) };
            match scope.nodes.get(node_of(next)) {
                Some(&node) => (def, number) = (node, self.number(node, next)),
                None => return Ok(scope.arguments.get(next).map(|&i| Target::Argument(i))),
            }
        }
        Ok(None)
    }
}

/// The inputs of a node that a function gets, each with the number of the argument. Inputs before
/// them are for the node itself, such as the condition of an `If`.
fn arguments<'n>(def: &'n NodeDef, called: &Effects<'_>) -> impl Iterator<Item = (&'n str, usize)> + use<'n> {
    let before = data(def).count().saturating_sub(called.n_arguments);
    data(def).skip(before).enumerate().map(|(argument, input)| (input, argument))
}

/// Whether a node is a batch normalization by the averages of its own input.
fn is_training(def: &NodeDef) -> bool {
    let flag = || def.attr.get("is_training").and_then(|attr| attr.value.as_ref());
    def.op.starts_with("FusedBatchNorm") && !matches!(flag(), Some(Attr::B(false)))
}

fn add<'a>(
    target: Option<Target<'a>>,
    site: Site<'a>,
    arguments: &mut HashMap<usize, Site<'a>>,
    resources: &mut BTreeMap<Resource<'a>, Site<'a>>,
) {
    match target {
        Some(Target::Argument(i)) => drop(arguments.entry(i).or_insert(site)),
        Some(Target::Resource(resource)) => drop(resources.entry(resource).or_insert(site)),
        None => {}
    }
}
