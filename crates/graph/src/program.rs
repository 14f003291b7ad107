//! `Program`: the computation of one kind of run, as an ordered list of steps.
//!
//! The passes in `pass/` make a program from a graph for a set of fetches. Each is a small rewrite
//! of the list: prune, skip nodes that only pass a value on, merge equal nodes, split off the
//! host's part. Afterwards every node is its own step. An executor may fuse nodes; the result stays
//! the same bit for bit.
//!
//! The host computes a part before the steps ([`Program::host_steps`]) and a part after them
//! ([`Program::after_steps`]). Both parts are the same for every executor, and the crate
//! `estimand-engine` runs them. Executors see only the steps in between.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use estimand_tensor::{DType, Error, Result, TensorSpec};
use smallvec::{SmallVec, smallvec};

use crate::body::Body;
use crate::cost::{Cost, Operands};
use crate::op::Op;
use crate::pass;
use crate::value::{NodeId, Value};

/// An ordered list of steps with its feeds and fetches. Executors rewrite the steps (`pass`).
#[derive(Clone, Debug)]
pub struct Program {
    /// The graph of the program.
    pub body: Arc<Body>,
    /// The steps that the host runs first.
    pub host: Vec<Step>,
    /// The steps that the executor runs, in order.
    pub steps: Vec<Step>,
    /// The placeholders that a caller feeds.
    pub placeholders: Vec<NodeId>,
    /// The values that the steps read: placeholders and results of the host.
    pub feeds: Vec<Value>,
    /// The values that the steps return.
    pub fetches: Vec<Value>,
    /// The steps that the host runs on the values that the steps return.
    pub after: Vec<Step>,
    /// The values that a caller gets: the fetches, unless the host has steps after them.
    pub results: Vec<Value>,
    /// The index of the first step that writes variables. All later steps write variables too.
    pub n_compute: usize,
}

/// One call of a kernel.
#[derive(Clone, Debug)]
pub struct Step {
    /// The kernel.
    pub kernel: Kernel,
    /// The values it reads.
    pub inputs: SmallVec<[Value; 4]>,
    /// The values it writes.
    pub outputs: SmallVec<[Value; 1]>,
}

/// The kernel of a step. A new program has one node per step; an executor may replace nodes with
/// its own kernels.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// One node.
    Node(NodeId),
    /// A kernel of an executor.
    Fused(Arc<dyn FusedKernel>),
}

/// A kernel of an executor that computes several nodes at once, or one node in a special way.
pub trait FusedKernel: fmt::Debug + Any + Send + Sync {
    /// The node that represents the kernel in the graph.
    fn node(&self) -> NodeId;

    /// All nodes that the kernel computes.
    fn nodes(&self) -> SmallVec<[NodeId; 4]>;

    /// The name in program texts and profiles: `MatMul+bias+relu`.
    fn name(&self, body: &Body) -> String;

    /// The bytes it moves and the operations it computes.
    fn cost(&self, operands: &Operands<'_>) -> Cost;

    /// The inputs to show in the text of a program. By default, the inputs of the step.
    fn shown_inputs(&self, body: &Body, inputs: &[Value]) -> SmallVec<[Value; 4]> {
        let _ = body;
        inputs.into()
    }
}

impl Step {
    /// Whether this is an element-wise node on numbers. Such nodes can be fused into one pass over
    /// memory.
    pub fn is_elementwise(&self, body: &Body) -> bool {
        let Kernel::Node(id) = &self.kernel else { return false };
        let plain = |v: &Value| body.spec(*v).dtype != DType::Str;
        matches!(body.node(*id).op, Op::Unary(_) | Op::Binary(_) | Op::Select(_) | Op::Cast(_) | Op::BroadcastTo(_))
            && self.inputs.iter().all(plain)
    }
}

impl<K: FusedKernel> From<K> for Kernel {
    fn from(kernel: K) -> Kernel {
        Kernel::Fused(Arc::new(kernel))
    }
}

impl Kernel {
    /// The node that represents this kernel in the graph.
    pub fn node(&self) -> NodeId {
        match self {
            Kernel::Node(node) => *node,
            Kernel::Fused(fused) => fused.node(),
        }
    }

    /// All nodes that the kernel computes.
    pub fn nodes(&self) -> SmallVec<[NodeId; 4]> {
        match self {
            Kernel::Node(node) => smallvec![*node],
            Kernel::Fused(fused) => fused.nodes(),
        }
    }

    /// Returns the kernel if it has the type `K`.
    pub fn fused<K: FusedKernel>(&self) -> Option<&K> {
        match self {
            Kernel::Node(_) => None,
            Kernel::Fused(fused) => {
                let fused: &dyn Any = &**fused;
                fused.downcast_ref()
            }
        }
    }
}

impl Program {
    /// Builds the program that computes these values, with all passes.
    pub fn new(body: Arc<Body>, fetches: &[Value]) -> Result<Program> {
        Program::with_passes(body, fetches, |_| true)
    }

    /// Builds the program that computes these values, with only the passes whose name `is_wanted`
    /// accepts.
    pub fn with_passes(body: Arc<Body>, fetches: &[Value], is_wanted: impl Fn(&str) -> bool) -> Result<Program> {
        check(&body, fetches)?;
        pass::cut(pass::run(&pass::WHOLE, pass::prune(body, fetches), is_wanted))
    }

    /// Builds the program that computes these values, with one step for each node.
    pub fn plain(body: Arc<Body>, fetches: &[Value]) -> Result<Program> {
        check(&body, fetches)?;
        pass::cut(pass::prune(body, fetches))
    }

    /// The graph the program was built from.
    pub fn body(&self) -> &Arc<Body> {
        &self.body
    }

    /// The steps that the host runs first, on the placeholders alone.
    pub fn host_steps(&self) -> &[Step] {
        &self.host
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The steps that run before any variable changes.
    pub fn compute_steps(&self) -> &[Step] {
        &self.steps[..self.n_compute]
    }

    /// The steps that write variables.
    pub fn apply_steps(&self) -> &[Step] {
        &self.steps[self.n_compute..]
    }

    /// The placeholders, in the order their values are passed to the host.
    pub fn placeholders(&self) -> &[NodeId] {
        &self.placeholders
    }

    /// The values fed to the steps, in the order an executor gets them: placeholders and values the
    /// host computes from them. Without a host part, these are the placeholders.
    pub fn feeds(&self) -> &[Value] {
        &self.feeds
    }

    /// The values that the steps return, in the order an executor returns them.
    pub fn fetches(&self) -> &[Value] {
        &self.fetches
    }

    /// The steps that the host runs on the values that the steps return: strings and other host
    /// values that depend on variables.
    pub fn after_steps(&self) -> &[Step] {
        &self.after
    }

    /// The values that a caller gets. If the host has no steps afterwards, these are the fetches.
    pub fn results(&self) -> &[Value] {
        &self.results
    }

    /// Dtype and shape of a value.
    pub fn spec(&self, value: Value) -> &TensorSpec {
        self.body.spec(value)
    }

    /// Whether a run changes variables.
    pub fn trains(&self) -> bool {
        self.n_compute < self.steps.len()
    }

    /// How often each value is read by steps and fetches.
    pub fn use_counts(&self) -> HashMap<Value, usize> {
        let mut counts = HashMap::new();
        for value in self.steps.iter().flat_map(|s| &s.inputs).chain(&self.fetches) {
            *counts.entry(*value).or_default() += 1;
        }
        counts
    }
}

fn check(body: &Body, fetches: &[Value]) -> Result<()> {
    match fetches.iter().all(|fetch| (fetch.node.0 as usize) < body.nodes().len()) {
        true => Ok(()),
        false => Err(Error::config("one of the fetched tensors does not belong to this graph")),
    }
}

impl Program {
    /// The name of a step: `MatMul+bias+relu`, `Mul+Tanh`.
    pub(crate) fn kernel_name(&self, step: &Step) -> String {
        match &step.kernel {
            Kernel::Node(id) => match &self.body.node(*id).op {
                Op::Apply(a) => {
                    let constraint = self.body.variables().spec(a.variable).constraint.as_ref();
                    let constraint = constraint.map_or(String::new(), |c| format!("+{}", c.name()));
                    format!("Apply{}{constraint}", self.body.optimizers()[a.optimizer.0 as usize].rule.name())
                }
                other => other.name().to_string(),
            },
            Kernel::Fused(fused) => fused.name(&self.body),
        }
    }

    /// The name of the variable that a step writes.
    pub(crate) fn written_by(&self, step: &Step) -> Option<&str> {
        let id = match &self.body.node(step.kernel.node()).op {
            Op::Assign(assign) => assign.0,
            Op::Apply(apply) => apply.variable,
            _ => return None,
        };
        Some(&self.body.variables().spec(id).name)
    }
}

/// Prints the stable text form. Values are numbered in the order they appear, so renaming nodes
/// does not change it.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers: HashMap<Value, usize> = HashMap::new();
        let source = |v: &Value| match &self.body.node(v.node).op {
            Op::Placeholder(_) => Some(format!("feed:{}", self.body.node(v.node).name)),
            Op::Variable(variable) => Some(format!("var:{}", self.body.variables().spec(variable.0).name)),
            Op::Constant(c) if c.0.len() == 1 => Some(c.0.to_string()),
            Op::Constant(_) => Some(format!("const:{}", self.spec(*v))),
            _ => None,
        };
        let show = |v: &Value, numbers: &HashMap<Value, usize>| {
            source(v).unwrap_or_else(|| numbers.get(v).map_or("?".to_string(), |n| format!("%{n}")))
        };
        let parts = self.host.iter().chain(&self.steps).chain(&self.after);
        for (i, step) in parts.enumerate() {
            if i == 0 && !self.host.is_empty() {
                writeln!(f, "host:")?;
            }
            if i == self.host.len() && !self.host.is_empty() && !self.steps.is_empty() {
                writeln!(f, "step:")?;
            }
            if i == self.host.len() + self.n_compute && self.trains() {
                writeln!(f, "apply:")?;
            }
            if i == self.host.len() + self.steps.len() {
                writeln!(f, "after:")?;
            }
            let inputs = match &step.kernel {
                Kernel::Node(_) => step.inputs.clone(),
                Kernel::Fused(fused) => fused.shown_inputs(&self.body, &step.inputs),
            };
            let inputs: Vec<String> = inputs.iter().map(|v| show(v, &numbers)).collect();
            let mut outputs = Vec::new();
            for value in &step.outputs {
                let n = numbers.len();
                numbers.insert(*value, n);
                outputs.push(format!("%{n} {}", self.spec(*value)));
            }
            let result = if outputs.is_empty() { String::new() } else { format!("{} = ", outputs.join(", ")) };
            let written = self.written_by(step).map_or(String::new(), |name| format!("({name})"));
            writeln!(f, "  {result}{}{written}({})", self.kernel_name(step), inputs.join(", "))?;
        }
        let fetches: Vec<String> = self.results.iter().map(|v| show(v, &numbers)).collect();
        writeln!(f, "fetch: {}", fetches.join(", "))
    }
}
