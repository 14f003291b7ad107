//! The times of a run's steps. An executor fills a [`Trace`] if [`RunArgs`](crate::RunArgs)
//! contains one; otherwise it never reads the clock.

use std::thread::{self, ThreadId};
use std::time::Instant;

use crate::cost::Cost;
use crate::op::{Op, Variable};
use crate::program::{Program, Step};
use crate::value::{NodeId, Value};

/// A part of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// The steps that the host runs first.
    Host,
    /// The steps of the executor.
    Step,
    /// The steps that the host runs last.
    After,
}

/// The time of one step of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedStep {
    /// The part of the program.
    pub part: Phase,
    /// The index in its part: for [`Phase::Step`], in [`Program::steps`].
    pub index: usize,
    /// The node that represents the step.
    pub node: NodeId,
    /// The start, in nanoseconds since the trace began.
    pub start: u64,
    /// The duration, in nanoseconds.
    pub duration: u64,
    /// The thread that ran the step or distributed it to others: an index into [`Trace::threads`].
    pub thread: usize,
    /// The bytes it moved and the operations it computed.
    pub cost: Cost,
}

/// The times of steps, of one run or several.
///
/// ```
/// use estimand_cpu::Cpu;
/// use estimand_engine::Compiled;
/// use estimand_graph::{Executor, Graph, Program, RunArgs, Trace};
/// use estimand_tensor::{Array, DType, Dim};
///
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 3.into()]);
/// let y = x.matmul(&g.variable("w", [3, 2], estimand_graph::Initializer::Ones));
/// let program = Program::new(std::sync::Arc::new(g.body().clone()), &[y.value()])?;
/// let compiled = Compiled::new(&Cpu::new(), program)?;
/// let state = Cpu::new().place(g.body().variables(), 0)?;
///
/// let mut trace = Trace::new();
/// let feeds = [Array::zeros(DType::F32, [4, 3])?];
/// let args = RunArgs { feeds: &feeds, trace: Some(&mut trace), ..RunArgs::default() };
/// compiled.forward(&*state, args, &mut Vec::new())?;
/// let product = trace.steps()[0];
/// // 4 x 2 results of 3 products and 3 sums; 4 x 3 and 3 x 2 floats are read.
/// assert_eq!((product.cost.flops, product.cost.read), (48, 72));
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Trace {
    began: Instant,
    steps: Vec<TimedStep>,
    threads: Vec<(ThreadId, String)>,
}

impl Default for Trace {
    fn default() -> Trace {
        Trace::new()
    }
}

impl Trace {
    /// Creates an empty trace that begins now.
    pub fn new() -> Trace {
        Trace { began: Instant::now(), steps: Vec::new(), threads: Vec::new() }
    }

    /// The steps, in the order they ended.
    pub fn steps(&self) -> &[TimedStep] {
        &self.steps
    }

    /// The names of the threads that ran the steps.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = &str> {
        self.threads.iter().map(|(_, name)| name.as_str())
    }

    /// Nanoseconds since the trace began.
    pub fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The total cost of all steps.
    pub fn cost(&self) -> Cost {
        let mut all = Cost::default();
        self.steps.iter().for_each(|step| all += step.cost);
        all
    }

    /// Records a step that has just ended in this thread. `cost` is called after the clock is read.
    pub fn add(&mut self, part: Phase, index: usize, node: NodeId, start: u64, cost: impl FnOnce() -> Cost) {
        let duration = self.now().saturating_sub(start);
        let thread = self.thread();
        self.steps.push(TimedStep { part, index, node, start, duration, thread, cost: cost() });
    }

    fn thread(&mut self) -> usize {
        let id = thread::current().id();
        self.threads.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
            let name = thread::current().name().unwrap_or("unnamed").to_string();
            self.threads.push((id, name));
            self.threads.len() - 1
        })
    }
}

/// Returns the start time of a step, if there is a trace.
pub fn start(trace: &Option<&mut Trace>) -> u64 {
    trace.as_ref().map_or(0, |trace| trace.now())
}

impl Program {
    /// Returns the name of a timed step: the kernel, as in the program's text, and its place in the
    /// model.
    pub fn describe(&self, timed: &TimedStep) -> (String, String) {
        let node = self.body().node(timed.node);
        match (timed.part, self.steps().get(timed.index)) {
            (Phase::Step, Some(step)) => (self.kernel_name(step), self.place_name(step).to_string()),
            _ => (node.op.name().to_string(), node.name.to_string()),
        }
    }

    /// Returns the variable that a step writes or computes the gradient of, otherwise its node.
    /// Gradients have no scope, so they get the scope of a variable they read.
    fn place_name(&self, step: &Step) -> &str {
        let name = &self.body().node(step.kernel.node()).name;
        let applied = || {
            let reads = |apply: &&Step| step.outputs.iter().any(|made| apply.inputs.contains(made));
            self.apply_steps().iter().find(reads).and_then(|apply| self.written_by(apply))
        };
        let read = || {
            let scope = |value: &Value| match self.body().node(value.node).op {
                Op::Variable(Variable(id)) => Some(self.body().variables().spec(id).name.rsplit_once('/')?.0),
                _ => None,
            };
            step.inputs.iter().find_map(scope)
        };
        match self.written_by(step) {
            Some(variable) => variable,
            None if name.contains('/') => name,
            None => applied().or_else(read).unwrap_or(name),
        }
    }
}
