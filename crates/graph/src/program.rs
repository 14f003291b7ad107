//! `Program`: what one kind of run computes, as an ordered list of steps.
//!
//! A program is made from a graph for a set of fetches, by the passes in `pass/`, each a small
//! rewrite of the list: prune, read past nodes that hand a value on, merge equal nodes, cut the
//! host's part off. Then every node is a step of its own; an executor puts nodes together as it
//! likes, and the bits stay the same.
//!
//! What the host computes before ([`Program::host_steps`]) and after the steps
//! ([`Program::after_steps`]) is the same for every executor, and is run by the crate
//! `estimand-engine`; executors see what is between.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use estimand_tensor::{DType, Error, Result, TensorSpec};
use smallvec::{SmallVec, smallvec};

use crate::cost::{Cost, Operands};
use crate::graph::{Body, NodeId, Value};
use crate::op::Op;
use crate::pass;

/// An ordered list of steps, with what is fed and what is fetched. Executors rewrite the steps
/// (`pass`).
#[derive(Clone, Debug)]
pub struct Program {
    /// The graph whose nodes are run.
    pub body: Arc<Body>,
    /// What the host computes before the steps.
    pub host: Vec<Step>,
    /// What the executor runs, in order.
    pub steps: Vec<Step>,
    /// What a caller gives.
    pub placeholders: Vec<NodeId>,
    /// What the steps are given: values of placeholders and results of the host.
    pub feeds: Vec<Value>,
    /// What the steps return.
    pub fetches: Vec<Value>,
    /// What the host computes from what the steps return.
    pub after: Vec<Step>,
    /// What a caller gets: the fetches, unless the host goes on after the steps.
    pub results: Vec<Value>,
    /// The steps from here on write variables.
    pub n_compute: usize,
}

/// One call of a kernel.
#[derive(Clone, Debug)]
pub struct Step {
    /// Which kernel.
    pub kernel: Kernel,
    /// What it reads.
    pub inputs: SmallVec<[Value; 4]>,
    /// What it writes.
    pub outputs: SmallVec<[Value; 1]>,
}

/// What computes a step. A program is made of single nodes; an executor may put kernels of its own
/// in their place.
#[derive(Clone, Debug)]
pub enum Kernel {
    /// One node.
    Node(NodeId),
    /// A kernel of an executor.
    Fused(Arc<dyn FusedKernel>),
}

/// A kernel of an executor that computes several nodes at once, or one node in a way of its own.
pub trait FusedKernel: fmt::Debug + Any + Send + Sync {
    /// The node whose place in the graph stands for it.
    fn node(&self) -> NodeId;

    /// All nodes that it computes.
    fn nodes(&self) -> SmallVec<[NodeId; 4]>;

    /// The name in texts and profiles: `MatMul+bias+relu`.
    fn name(&self, body: &Body) -> String;

    /// What it moves and computes.
    fn cost(&self, operands: &Operands<'_>) -> Cost;

    /// What it reads, for the text of a program. By default, the inputs of the step.
    fn shown_inputs(&self, body: &Body, inputs: &[Value]) -> SmallVec<[Value; 4]> {
        let _ = body;
        inputs.into()
    }
}

impl Step {
    /// Whether it is an element-wise node of numbers, which can be computed with others in one pass
    /// over memory.
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
    /// The node whose place in the graph stands for this kernel.
    pub fn node(&self) -> NodeId {
        match self {
            Kernel::Node(node) => *node,
            Kernel::Fused(fused) => fused.node(),
        }
    }

    /// All nodes that it computes.
    pub fn nodes(&self) -> SmallVec<[NodeId; 4]> {
        match self {
            Kernel::Node(node) => smallvec![*node],
            Kernel::Fused(fused) => fused.nodes(),
        }
    }

    /// The kernel, if it is one of this type.
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
    /// The program that computes these values, with all passes.
    pub fn new(body: Arc<Body>, fetches: &[Value]) -> Result<Program> {
        Program::with_passes(body, fetches, |_| true)
    }

    /// The program that computes these values, with some of the passes, by name.
    pub fn with_passes(body: Arc<Body>, fetches: &[Value], is_wanted: impl Fn(&str) -> bool) -> Result<Program> {
        check(&body, fetches)?;
        pass::cut(pass::run(&pass::WHOLE, pass::prune(body, fetches), is_wanted))
    }

    /// The program that computes these values, one step for each node.
    pub fn plain(body: Arc<Body>, fetches: &[Value]) -> Result<Program> {
        check(&body, fetches)?;
        pass::cut(pass::prune(body, fetches))
    }

    /// The graph it came from.
    pub fn body(&self) -> &Arc<Body> {
        &self.body
    }

    /// What the host computes before the steps, from the placeholders alone.
    pub fn host_steps(&self) -> &[Step] {
        &self.host
    }

    /// The steps in order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The steps before any variable changes.
    pub fn compute_steps(&self) -> &[Step] {
        &self.steps[..self.n_compute]
    }

    /// The steps that write variables.
    pub fn apply_steps(&self) -> &[Step] {
        &self.steps[self.n_compute..]
    }

    /// The placeholders, in the order their values are passed to the host's part.
    pub fn placeholders(&self) -> &[NodeId] {
        &self.placeholders
    }

    /// What the steps are fed, in the order it is passed to an executor: placeholders and what the
    /// host makes of them. Where there is no host part, these are the placeholders.
    pub fn feeds(&self) -> &[Value] {
        &self.feeds
    }

    /// The values that the steps return, in the order an executor does.
    pub fn fetches(&self) -> &[Value] {
        &self.fetches
    }

    /// What the host computes from what the steps return: strings and the like that depend on
    /// variables.
    pub fn after_steps(&self) -> &[Step] {
        &self.after
    }

    /// The values that a caller gets. Where the host has nothing to do after the steps, these are
    /// the fetches.
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
        false => Err(Error::config("a fetch does not belong to this graph")),
    }
}

impl Program {
    /// What a step is called: `MatMul+bias+relu`, `Mul+Tanh`.
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

/// The stable text form: values are numbered in the order they appear, so that renaming nodes
/// changes nothing.
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
