//! `Program`: what one kind of run computes, as an ordered list of steps.
//!
//! A program is made from a graph for a set of fetches, by the passes in `pass/`, each a small rewrite of the list:
//! prune, read past nodes that hand a value on, merge equal nodes, cut the host's part off. Then every node is
//! a step of its own; an executor puts nodes together as it likes, and the bits stay the same.
//!
//! What the host computes before ([`Program::host_steps`]) and after the steps ([`Program::after_steps`]) is the same for every
//! executor, and is run by [`HostProgram`](crate::HostProgram); executors see what is between.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use estimand_tensor::{DType, Error, Result, TensorSpec};
use smallvec::SmallVec;

use crate::graph::{Body, NodeId, Value};
use crate::op::Op;
use crate::pass;

/// An ordered list of steps, with what is fed and what is fetched. Executors rewrite the steps (`pass`).
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

/// A kernel of an executor. Programs are made of single nodes; the other kernels are those of `cpu`.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// One node.
    Node(NodeId),
    /// Element-wise nodes in one pass over memory, in order; the last one's shape is iterated over.
    Elementwise(Vec<Member>),
    /// A product whose result gets a bias (the step's last input) and possibly a relu while it is hot.
    Product {
        /// The MatMul or Conv2D.
        node: NodeId,
        /// Whether the last input is a bias.
        bias: bool,
        /// Whether negative results become 0.
        relu: bool,
        /// The MaxPool that a convolution's result goes through image by image, as a [`Kernel::Which`].
        pool: Option<NodeId>,
    },
    /// A max pooling that also says which element was the largest, as its second output, or the gradient that reads this
    /// instead of what was pooled.
    Which(NodeId),
    /// The gradients of a convolution's filter and bias, without the gradient that the max pooling behind it hands back ever
    /// being in memory. Reads the images, then as the gradient of [`Kernel::Which`] does.
    PooledGradient {
        /// The Conv2DBackpropFilter.
        node: NodeId,
        /// The MaxPoolGrad.
        pool: NodeId,
    },
}

impl Step {
    /// Whether it is an element-wise node of numbers, which can be computed with others in one pass over memory.
    pub fn is_elementwise(&self, body: &Body) -> bool {
        let Kernel::Node(id) = &self.kernel else { return false };
        let plain = |v: &Value| body.spec(*v).dtype != DType::Str;
        matches!(body.node(*id).op, Op::Unary(_) | Op::Binary(_) | Op::Select(_) | Op::Cast(_) | Op::BroadcastTo(_))
            && self.inputs.iter().all(plain)
    }
}

/// One node of an element-wise group.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// What it reads: results of earlier members, inputs of the step, or single-number constants.
    pub reads: SmallVec<[Value; 4]>,
}

impl Kernel {
    /// The node whose place in the graph stands for this kernel.
    pub fn node(&self) -> NodeId {
        match self {
            Kernel::Node(node) | Kernel::Which(node) => *node,
            Kernel::Product { node, .. } | Kernel::PooledGradient { node, .. } => *node,
            Kernel::Elementwise(members) => members[members.len() - 1].node,
        }
    }
}

impl Kernel {
    /// All nodes that it computes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let (members, own) = match self {
            Kernel::Elementwise(members) => (&members[..], [None, None]),
            Kernel::Node(node) | Kernel::Which(node) => (&[][..], [Some(*node), None]),
            Kernel::Product { node, pool, .. } => (&[][..], [Some(*node), *pool]),
            Kernel::PooledGradient { node, pool } => (&[][..], [Some(*node), Some(*pool)]),
        };
        members.iter().map(|member| member.node).chain(own.into_iter().flatten())
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

    /// What the steps are fed, in the order it is passed to an executor: placeholders and what the host makes of them. Where
    /// there is no host part, these are the placeholders.
    pub fn feeds(&self) -> &[Value] {
        &self.feeds
    }

    /// The values that the steps return, in the order an executor does.
    pub fn fetches(&self) -> &[Value] {
        &self.fetches
    }

    /// What the host computes from what the steps return: strings and the like that depend on variables.
    pub fn after_steps(&self) -> &[Step] {
        &self.after
    }

    /// The values that a caller gets. Where the host has nothing to do after the steps, these are the fetches.
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
        let op = |id: NodeId| self.body.node(id).op.name();
        match &step.kernel {
            Kernel::Node(id) => match &self.body.node(*id).op {
                Op::Apply(a) => {
                    let constraint = self.body.variables().spec(a.variable).constraint.as_ref();
                    let constraint = constraint.map_or(String::new(), |c| format!("+{}", c.name()));
                    format!("Apply{}{constraint}", self.body.optimizers()[a.optimizer.0 as usize].rule.name())
                }
                other => other.name().to_string(),
            },
            Kernel::Elementwise(members) => members.iter().map(|m| op(m.node)).collect::<Vec<_>>().join("+"),
            Kernel::Product { node, bias, relu, pool } => {
                let pool = pool.map_or(String::new(), |pool| format!("+{}+which", op(pool)));
                format!("{}{}{}{pool}", op(*node), if *bias { "+bias" } else { "" }, if *relu { "+relu" } else { "" })
            }
            Kernel::Which(node) => format!("{}+which", op(*node)),
            Kernel::PooledGradient { node, pool } => format!("{}+{}+bias", op(*pool), op(*node)),
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

/// What a step reads, numbers that are part of an element-wise program included.
fn shown_inputs(body: &Body, step: &Step) -> SmallVec<[Value; 4]> {
    let Kernel::Elementwise(members) = &step.kernel else { return step.inputs.clone() };
    if let [single] = &members[..] {
        return single.reads.clone();
    }
    let mut inputs = step.inputs.clone();
    let mut seen: HashSet<Value> = inputs.iter().copied().collect();
    for value in members.iter().flat_map(|m| &m.reads) {
        if body.scalar_constant(*value).is_some() && seen.insert(*value) {
            inputs.push(*value);
        }
    }
    inputs
}

/// The stable text form: values are numbered in the order they appear, so that renaming nodes changes nothing.
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
            let inputs: Vec<String> = shown_inputs(&self.body, step).iter().map(|v| show(v, &numbers)).collect();
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
