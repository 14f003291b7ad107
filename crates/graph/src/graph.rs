//! The graph under construction: nodes, names, scopes, and the first error.
//!
//! Building is single-threaded and returns no `Result`. An op infers its shape at once. The graph
//! keeps the first error with its source line, and [`Graph::check`] returns it. Sessions and
//! programs call `check`. The result of building is a [`Body`]: plain data.

use std::cell::{Ref, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use estimand_tensor::{Array, DType, Dim, Error, Result, Shape, TensorSpec};
use estimand_update::Constraint;
use smallvec::SmallVec;

use crate::Initializer;
use crate::body::{Body, Node};
use crate::build_state::BuildState;
use crate::custom::CustomOp;
use crate::line::OpenLine;
use crate::looks::look;
use crate::meaning::Meanings;
use crate::op::shape::{Inference, Specs, check_shape};
use crate::op::{Constant, Group, Op, Placeholder, Variable};
use crate::optimizer::OptimizerConfig;
use crate::symbols::{SymbolDef, Symbols};
use crate::tensor::{Tensor, scalar};
use crate::value::{NodeId, Value};
use crate::variables::{Role, VarId, VarSpec};

/// A graph under construction. Clones are handles to the same graph.
#[derive(Clone, Default)]
pub struct Graph {
    cell: Rc<Cell>,
}

/// The largest number of operands that an error lists.
const SHOWN: usize = 8;

/// An op with its inputs.
type Work = (Op, SmallVec<[Value; 4]>);

#[derive(Default)]
struct Cell {
    body: RefCell<Body>,
    error: RefCell<Option<Error>>,
    scopes: RefCell<Vec<String>>,
    /// How often each name was requested, to make the next one unique.
    names: RefCell<HashMap<String, u32>>,
    /// An index of nodes by name. It is extended when a lookup needs it.
    found: RefCell<HashMap<String, NodeId>>,
    /// The node that reads each variable.
    reads: RefCell<HashMap<VarId, NodeId>>,
    /// The nodes of host ops, by op and inputs.
    made: RefCell<HashMap<Work, Value>>,
    build_state: BuildState,
    /// The columns that facts belong to, the innermost last.
    subjects: RefCell<Vec<Arc<(String, String)>>>,
    /// The user's lines that library code works for, the innermost last.
    lines: RefCell<Vec<OpenLine>>,
}

/// An open scope. Names made while it lives start with its path.
#[must_use = "the scope closes when this is dropped: let _scope = graph.scope(..)"]
pub struct Scope {
    graph: Graph,
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.graph.cell.scopes.borrow_mut().pop();
    }
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Graph {
        Graph::default()
    }

    /// Opens a scope for the names of nodes and variables. A scope name that was used before gets
    /// `_1`, `_2`, ... as in TensorFlow.
    pub fn scope(&self, name: &str) -> Scope {
        let path = self.unique(&self.scoped(name));
        self.cell.scopes.borrow_mut().push(path);
        Scope { graph: self.clone() }
    }

    /// Opens a scope of exactly this name inside the open ones, even if the name was used before. A
    /// layer's variables get the same names whatever else the graph contains.
    pub fn reopen(&self, name: &str) -> Scope {
        let path = self.scoped(name);
        self.cell.scopes.borrow_mut().push(path);
        Scope { graph: self.clone() }
    }

    /// Leaves all open scopes while the returned value lives: new names have no scope. Use it for
    /// variables that several parts of a model share.
    pub fn outside(&self) -> Scope {
        self.cell.scopes.borrow_mut().push(String::new());
        Scope { graph: self.clone() }
    }

    pub(crate) fn build_state(&self) -> &BuildState {
        &self.cell.build_state
    }

    pub(crate) fn subjects(&self) -> &RefCell<Vec<Arc<(String, String)>>> {
        &self.cell.subjects
    }

    pub(crate) fn lines(&self) -> &RefCell<Vec<OpenLine>> {
        &self.cell.lines
    }

    pub(crate) fn meanings_mut(&self, change: impl FnOnce(&mut Meanings)) {
        change(&mut self.cell.body.borrow_mut().meanings);
    }

    /// The path of the open scopes, without a trailing slash.
    pub fn scope_path(&self) -> String {
        self.cell.scopes.borrow().last().cloned().unwrap_or_default()
    }

    pub(crate) fn scoped(&self, name: &str) -> String {
        match self.cell.scopes.borrow().last() {
            Some(path) if !path.is_empty() => format!("{path}/{name}"),
            _ => name.to_string(),
        }
    }

    pub(crate) fn unique(&self, name: &str) -> String {
        let mut names = self.cell.names.borrow_mut();
        let Some(&used) = names.get(name) else {
            names.insert(name.to_string(), 1);
            return name.to_string();
        };
        let mut n = used;
        loop {
            look(1);
            let candidate = format!("{name}_{n}");
            n += 1;
            if !names.contains_key(&candidate) {
                names.insert(candidate.clone(), 1);
                names.insert(name.to_string(), n);
                return candidate;
            }
        }
    }

    /// Returns the body built so far.
    pub fn body(&self) -> Ref<'_, Body> {
        self.cell.body.borrow()
    }

    /// Returns the first error of the build, if there was one.
    pub fn check(&self) -> Result<()> {
        match &*self.cell.error.borrow() {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Keeps an error if it is the first, with its source line and scope.
    pub(crate) fn record(&self, error: Error, site: &'static Location<'static>) {
        let mut first = self.cell.error.borrow_mut();
        if first.is_none() {
            let scope = self.scope_path();
            let error = error.at(self.user_line(site));
            *first = Some(if scope.is_empty() { error } else { error.context(format!("in scope `{scope}`")) });
        }
    }

    /// Keeps an error with the caller's line, unless there is an earlier one. Returns a tensor that
    /// stands for the error.
    ///
    /// Code that builds graphs, such as a layer, calls this. Ops on the returned tensor add no
    /// further errors, and a run of the graph returns the kept error.
    #[track_caller]
    pub fn error(&self, error: Error) -> Tensor {
        self.fail(error, Location::caller())
    }

    /// Records an error and returns the tensor that stands for it.
    pub(crate) fn fail(&self, error: Error, site: &'static Location<'static>) -> Tensor {
        self.record(error, site);
        self.poison()
    }

    /// Passes on the error that a tensor stands for. An error of another graph becomes one of this
    /// graph, so that it is not lost.
    pub(crate) fn poisoned_by(&self, tensor: &Tensor) -> Tensor {
        if !tensor.graph().same(self)
            && let Err(error) = tensor.graph().check()
        {
            self.cell.error.borrow_mut().get_or_insert(error);
        }
        self.poison()
    }

    pub(crate) fn poison(&self) -> Tensor {
        Tensor::new(self.clone(), Value::POISON, TensorSpec::new(DType::F32, Shape::scalar()))
    }

    /// Whether both handles point to the same graph.
    pub fn same(&self, other: &Graph) -> bool {
        Rc::ptr_eq(&self.cell, &other.cell)
    }

    /// Adds a value that is fed at every run.
    ///
    /// An axis is a number, [`Dim::BATCH`], or [`Graph::ANY`] for any other size that is known only
    /// at run time.
    #[track_caller]
    pub fn placeholder(&self, name: &str, dtype: DType, shape: impl Into<Shape>) -> Tensor {
        let site = Location::caller();
        let shape: Shape = shape.into();
        let node = NodeId(self.cell.body.borrow().nodes.len() as u32);
        let shape: Shape = {
            let symbols = &mut self.cell.body.borrow_mut().symbols;
            let mint = |(axis, dim): (usize, &Dim)| match *dim {
                Graph::ANY => Dim::Sym(symbols.intern(SymbolDef::Axis(Value { node, output: 0 }, axis))),
                d => d,
            };
            shape.dims().iter().enumerate().map(mint).collect()
        };
        if let Err(error) = check_shape(&shape, self.cell.body.borrow().symbols()) {
            return self.fail(error.context(format!("in placeholder `{name}`")), site);
        }
        self.push(Placeholder.into(), &[], [TensorSpec { dtype, shape }].into_iter().collect(), name, site)
    }

    /// An axis of any size, unrelated to every other axis.
    pub const ANY: Dim = Dim::Sym(estimand_tensor::Symbol(u32::MAX));

    /// A scalar constant of a dtype.
    pub(crate) fn number(&self, dtype: DType, value: f64, site: &'static Location<'static>) -> Tensor {
        match scalar(dtype, value) {
            Ok(array) => self.node(Constant(array), &[], site),
            Err(error) => self.fail(error, site),
        }
    }

    /// Adds a value that never changes.
    #[track_caller]
    pub fn constant(&self, value: impl Into<Array>) -> Tensor {
        let value = value.into();
        self.node(Constant(value), &[], Location::caller())
    }

    /// Adds a trainable f32 variable.
    #[track_caller]
    pub fn variable(&self, name: &str, dims: impl AsRef<[usize]>, initializer: Initializer) -> Tensor {
        self.variable_with(name, DType::F32, dims, initializer, Role::Model { trainable: true })
    }

    /// Adds a variable of any dtype and role.
    #[track_caller]
    pub fn variable_with(
        &self,
        name: &str,
        dtype: DType,
        dims: impl AsRef<[usize]>,
        initializer: Initializer,
        role: Role,
    ) -> Tensor {
        let site = Location::caller();
        let name = self.scoped(name);
        let spec = VarSpec { name, dtype, dims: dims.as_ref().into(), initializer, role, constraint: None, site };
        match self.add_variable(spec) {
            Ok(id) => self.read(id, site),
            Err(error) => self.fail(error, site),
        }
    }

    /// Sets a constraint that an optimizer applies to the variable at the end of every update, also
    /// where only some rows change. Assigned and restored values stay as they are.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use estimand_engine::Session;
    /// use estimand_graph::{Graph, Initializer, Optimizer};
    /// use estimand_update::{NonNeg, Sgd};
    /// let g = Graph::new();
    /// let w = g.variable("w", [2], Initializer::Ones);
    /// g.constrain(&w, Arc::new(NonNeg));
    /// let train = Optimizer::new(Sgd::default(), 1.0).minimize(&(&w * g.constant([0.25f32, 3.0])).sum());
    /// let mut session = Session::new(&g)?;
    /// session.run(&[&train], &[])?;
    /// // 1 - 0.25, and 1 - 3, which is below 0.
    /// assert_eq!(session.value("w")?.as_slice::<f32>()?, [0.75, 0.0]);
    /// # Ok::<(), estimand_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn constrain(&self, variable: &Tensor, constraint: Arc<dyn Constraint>) {
        let site = Location::caller();
        if variable.is_poisoned() {
            return;
        }
        let result = match variable.variable().filter(|_| variable.graph().same(self)) {
            Some(id) => self.cell.body.borrow_mut().variables.constrain(id, constraint),
            None => {
                let text = format!(
                    "the constraint {} was given {}, which is not a variable of this graph",
                    constraint.name(),
                    variable.describe()
                );
                Err(Error::config(text))
            }
        };
        if let Err(error) = result {
            self.record(error, site);
        }
    }

    /// Adds a variable without a node that reads it.
    pub fn add_variable(&self, spec: VarSpec) -> Result<VarId> {
        let site = self.variable_line(spec.site);
        self.cell.body.borrow_mut().variables.add(VarSpec { site, ..spec })
    }

    /// Returns the node that reads a variable. There is only one, so its gradient is the whole
    /// gradient of the variable.
    pub fn read(&self, id: VarId, site: &'static Location<'static>) -> Tensor {
        let known = self.cell.reads.borrow().get(&id).copied();
        if let Some(node) = known {
            return self.tensor(Value { node, output: 0 });
        }
        let read = self.node(Variable(id), &[], site);
        if !read.is_poisoned() {
            self.cell.reads.borrow_mut().insert(id, read.value().node);
        }
        read
    }

    /// Returns the variable with a full name, to be read or trained.
    #[track_caller]
    pub fn get_variable(&self, name: &str) -> Tensor {
        let site = Location::caller();
        let found = self.body().variables.find(name);
        match found {
            Ok(id) => self.read(id, site),
            Err(error) => self.fail(error, site),
        }
    }

    /// Returns the first output of the node with a full name, as [`Tensor::name`] returns it.
    pub fn find(&self, name: &str) -> Result<Tensor> {
        let body = self.body();
        let mut found = self.cell.found.borrow_mut();
        // Names are unique and never change, so the index only grows.
        for (i, node) in body.nodes.iter().enumerate().skip(found.len()) {
            look(1);
            found.insert(node.name.clone(), NodeId(i as u32));
        }
        if let Some(&node) = found.get(name) {
            return Ok(self.tensor(Value { node, output: 0 }));
        }
        Err(Error::unknown("tensor", name, body.nodes.iter().map(|node| node.name.as_str())))
    }

    /// Returns an op that runs all of these when it is fetched.
    #[track_caller]
    pub fn group(&self, members: &[&Tensor]) -> Tensor {
        self.node(Group, members, Location::caller())
    }

    pub(crate) fn add_optimizer(&self, config: OptimizerConfig) -> crate::OptimizerId {
        let optimizers = &mut self.cell.body.borrow_mut().optimizers;
        optimizers.push(config);
        crate::OptimizerId(optimizers.len() as u32 - 1)
    }

    /// Changes the sizes that are known only at run time.
    pub fn symbols_mut<T>(&self, f: impl FnOnce(&mut Symbols) -> T) -> T {
        f(&mut self.cell.body.borrow_mut().symbols)
    }

    /// Adds a node and returns its first output.
    pub fn node(&self, op: impl Into<Op>, inputs: &[&Tensor], site: &'static Location<'static>) -> Tensor {
        self.add_node(op.into(), inputs, site)
    }

    fn add_node(&self, op: Op, inputs: &[&Tensor], site: &'static Location<'static>) -> Tensor {
        if let Some(poisoned) = inputs.iter().find(|t| t.is_poisoned()) {
            return self.poisoned_by(poisoned);
        }
        if let Some(stranger) = inputs.iter().find(|t| !t.graph().same(self)) {
            let error = Error::config(format!(
                "{} was given tensors of two graphs: {} belongs to another graph",
                op.name(),
                stranger.describe()
            ));
            return self.fail(error.help("build both in one graph, or pass the value through a placeholder"), site);
        }
        if !matches!(op, Op::Group(_))
            && let Some(effect) = inputs.iter().find(|t| !t.has_value())
        {
            return self.fail(effect.no_value(op.name()), site);
        }
        // The results of host ops have sizes of their own. The same work, requested twice, must be
        // one node so that both results have the same sizes. The same holds for the ops between a
        // feature and the host ops.
        let key = matches!(op, Op::Host(_) | Op::Reshape(_) | Op::Cast(_))
            .then(|| -> Work { (op.clone(), inputs.iter().map(|t| t.value()).collect()) });
        let is_host = matches!(op, Op::Host(_));
        if let Some(known) = key.as_ref().and_then(|key| self.cell.made.borrow().get(key).copied()) {
            if is_host {
                self.note_host(known);
            }
            return self.tensor(known);
        }
        let outputs = {
            let body = &mut *self.cell.body.borrow_mut();
            let specs: SmallVec<[&TensorSpec; 4]> = inputs.iter().map(|t| t.spec()).collect();
            infer(&op, &specs, body)
        };
        match outputs {
            Ok(outputs) => {
                let name = match &op {
                    // A variable's node has the variable's name in a checkpoint.
                    Op::Variable(variable) => self.body().variables.spec(variable.0).name.clone(),
                    _ => self.scoped(op.name()),
                };
                let made = self.push(op, inputs, outputs, &name, site);
                if let Some(key) = key {
                    self.cell.made.borrow_mut().insert(key, made.value());
                }
                if is_host {
                    self.note_host(made.value());
                }
                made
            }
            Err(error) => {
                let mut operands: Vec<String> = inputs.iter().take(SHOWN).map(|t| t.describe()).collect();
                if inputs.len() > SHOWN {
                    operands.push(format!("{} more", inputs.len() - SHOWN));
                }
                let what = match operands.is_empty() {
                    true => op.name().to_string(),
                    false => format!("{} of {}", op.name(), operands.join(" and ")),
                };
                self.fail(error.context(what), site)
            }
        }
    }

    fn push(
        &self,
        op: Op,
        inputs: &[&Tensor],
        outputs: SmallVec<[TensorSpec; 1]>,
        name: &str,
        site: &'static Location<'static>,
    ) -> Tensor {
        let (name, site) = (self.unique(name), self.user_line(site));
        let body = &mut *self.cell.body.borrow_mut();
        let value = Value { node: NodeId(body.nodes.len() as u32), output: 0 };
        let spec = tensor_spec(&outputs, 0);
        let inputs = inputs.iter().map(|t| t.value()).collect();
        body.nodes.push(Node { op, inputs, outputs, name, site });
        Tensor::new(self.clone(), value, spec)
    }

    /// Replaces the op of a node that was just added with an equivalent one.
    pub(crate) fn amend(&self, tensor: &Tensor, op: Op) {
        self.cell.body.borrow_mut().nodes[tensor.value().node.0 as usize].op = op;
    }

    /// Another output of a tensor's node.
    pub fn output(&self, tensor: &Tensor, output: u16) -> Tensor {
        if tensor.is_poisoned() {
            return self.poison();
        }
        let value = Value { node: tensor.value().node, output };
        let spec = self.body().spec(value).clone();
        Tensor::new(self.clone(), value, spec)
    }

    /// A tensor for a value of this graph.
    pub(crate) fn tensor(&self, value: Value) -> Tensor {
        let spec = tensor_spec(&self.body().node(value.node).outputs, value.output);
        Tensor::new(self.clone(), value, spec)
    }

    /// Adds host code that computes on the values of some tensors. Returns one tensor for each
    /// output it declares.
    #[track_caller]
    pub fn custom(&self, op: CustomOp, inputs: &[&Tensor]) -> Vec<Tensor> {
        let n = op.outputs.len();
        let first = self.node(op, inputs, Location::caller());
        (0..n).map(|i| self.output(&first, i as u16)).collect()
    }
}

/// Infers the results of an op on inputs of these specs, if it becomes the next node.
fn infer(op: &Op, inputs: &[&TensorSpec], body: &mut Body) -> Result<Specs> {
    let node = NodeId(body.nodes.len() as u32);
    let (symbols, variables) = (&mut body.symbols, &body.variables);
    let outputs = op.rules().infer(inputs, &mut Inference { symbols, variables, node })?;
    for output in &outputs {
        check_shape(&output.shape, &body.symbols)?;
    }
    Ok(outputs)
}

/// The spec of a tensor for a node's output. An op without outputs, such as an assignment, counts
/// as a scalar.
fn tensor_spec(outputs: &[TensorSpec], output: u16) -> TensorSpec {
    let spec = outputs.get(output as usize).cloned();
    spec.unwrap_or_else(|| TensorSpec::new(DType::F32, Shape::scalar()))
}

/// Prints one line per node, in build order: name, op, inputs, result.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body();
        for node in &body.nodes {
            let inputs: Vec<String> = node
                .inputs
                .iter()
                .map(|v| match v.output {
                    0 => body.node(v.node).name.clone(),
                    n => format!("{}:{n}", body.node(v.node).name),
                })
                .collect();
            let outputs: Vec<String> = node.outputs.iter().map(|s| s.to_string()).collect();
            writeln!(f, "{} = {}({}) -> {}", node.name, node.op.name(), inputs.join(", "), outputs.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
