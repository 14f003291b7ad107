//! `Session`: the low-level interface for runs. It takes feeds, returns fetches, and keeps
//! variables between runs.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use estimand_checkpoint::{BundleReader, BundleWriter};
use estimand_cpu::Cpu;
use estimand_graph::looks::look;
use estimand_graph::{Executor, Graph, Node, NodeId, Op, Program, RunArgs, State, Tensor, Value, VarId, VarSpec};
use estimand_tensor::{Array, Error, Result};

use crate::compiled::Compiled;
use crate::values::{replace_values, saved_variables};

/// TensorFlow's name for the number of training steps.
const GLOBAL_STEP: &str = "global_step";

/// Runs a graph. Programs are compiled once for each set of fetches.
///
/// ```
/// use estimand_engine::Session;
/// use estimand_graph::{Graph, Initializer, Optimizer};
/// use estimand_tensor::Array;
/// use estimand_update::Sgd;
///
/// let g = Graph::new();
/// let w = g.variable("w", [], Initializer::Constant(1.0));
/// let loss = (&w - 3.0).square();
/// let train = Optimizer::new(Sgd::default(), 0.25).minimize(&loss);
/// let mut session = Session::new(&g)?;
/// session.run(&[&train], &[])?;
/// // w - 0.25 * 2 * (w - 3) = 1 + 1
/// assert_eq!(session.value("w")?.item::<f32>()?, 2.0);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub struct Session {
    graph: Graph,
    executor: Box<dyn Executor>,
    state: Box<dyn State>,
    /// Programs with their fetches. There are few, so a linear search is enough.
    compiled: Vec<(Vec<Value>, Arc<Compiled>)>,
    /// Arrays in the order of a program's placeholders. They are kept to reuse the memory.
    feeds: Vec<Array>,
    /// The index of each node among the feeds. It is kept to reuse the memory.
    fed: HashMap<NodeId, usize>,
    seed: u64,
    step: u64,
}

impl Session {
    /// Creates a session on all cores, with seed 0. Returns the graph's first error, if it has one.
    pub fn new(graph: &Graph) -> Result<Session> {
        Session::with(graph, Cpu::new(), 0)
    }

    /// Creates a session on an executor, with a seed for initial values and random ops.
    pub fn with(graph: &Graph, executor: impl Executor + 'static, seed: u64) -> Result<Session> {
        graph.check()?;
        let state = executor.place(graph.body().variables(), seed)?;
        Ok(Session {
            graph: graph.clone(),
            executor: Box::new(executor),
            state,
            compiled: Vec::new(),
            feeds: Vec::new(),
            fed: HashMap::new(),
            seed,
            step: 0,
        })
    }

    /// Computes the fetches from the feeds. A train op among the fetches runs one step and returns
    /// no value.
    pub fn run(&mut self, fetches: &[&Tensor], feeds: &[(&Tensor, Array)]) -> Result<Vec<Array>> {
        let mut outputs = Vec::new();
        self.run_into(fetches, feeds, &mut outputs)?;
        Ok(outputs)
    }

    /// Like `run`, into arrays whose memory is reused.
    pub fn run_into(
        &mut self,
        fetches: &[&Tensor],
        feeds: &[(&Tensor, Array)],
        outputs: &mut Vec<Array>,
    ) -> Result<()> {
        let compiled = self.compiled(fetches)?;
        self.bind(compiled.program(), feeds)?;
        self.execute(&compiled, outputs)
    }

    fn execute(&mut self, compiled: &Compiled, outputs: &mut Vec<Array>) -> Result<()> {
        let feeds = std::mem::take(&mut self.feeds);
        let args =
            RunArgs { feeds: &feeds, step: self.step, seed: self.seed, row_offset: 0, on_gradient: None, trace: None };
        let result = match compiled.program().trains() {
            true => compiled.step(&mut *self.state, args, outputs).map(|()| self.step += 1),
            false => compiled.forward(&*self.state, args, outputs),
        };
        self.feeds = feeds;
        self.feeds.clear();
        result
    }

    /// Returns the compiled program for some fetches.
    fn compiled(&mut self, fetches: &[&Tensor]) -> Result<Arc<Compiled>> {
        self.graph.check()?;
        if let Some(stranger) = fetches.iter().find(|f| !f.graph().same(&self.graph)) {
            // A tensor that stands for an error of its graph.
            stranger.graph().check()?;
            return Err(Error::config(format!("fetch {} belongs to another graph", stranger.describe()))
                .help("fetch tensors of the graph that the session was made from"));
        }
        let wanted = || fetches.iter().map(|f| f.value());
        if let Some((_, compiled)) = self.compiled.iter().find(|(key, _)| key.iter().copied().eq(wanted())) {
            return Ok(compiled.clone());
        }
        let key: Vec<Value> = wanted().collect();
        let body = Arc::new(self.graph.body().clone());
        self.state.extend(body.variables(), self.seed)?;
        let compiled = Arc::new(Compiled::new(&*self.executor, Program::new(body, &key)?)?);
        self.compiled.push((key, compiled.clone()));
        Ok(compiled)
    }

    /// Puts the fed arrays into the program's order and checks them against the placeholders.
    fn bind(&mut self, program: &Program, feeds: &[(&Tensor, Array)]) -> Result<()> {
        self.feeds.clear();
        self.fed.clear();
        for (i, (tensor, _)) in feeds.iter().enumerate() {
            look(1);
            self.fed.entry(tensor.value().node).or_insert(i);
            if !tensor.graph().same(&self.graph) {
                return Err(Error::config(format!("feed {} belongs to another graph", tensor.describe()))
                    .help("feed placeholders of the graph that the session was made from"));
            }
            if !matches!(
                program.body().nodes().get(tensor.value().node.0 as usize),
                Some(Node { op: Op::Placeholder(_), .. })
            ) {
                return Err(Error::config(format!("{} is fed, but it is not a placeholder", tensor.describe()))
                    .help("make a placeholder for it with graph.placeholder(..)"));
            }
        }
        for &id in program.placeholders() {
            let Some((_, array)) = self.fed.get(&id).map(|&i| &feeds[i]) else {
                let node = program.body().node(id);
                return Err(Error::config(format!("placeholder `{}` {} was not fed", node.name, node.outputs[0]))
                    .at(node.site)
                    .help("pass a value for it in the feeds of run"));
            };
            self.feeds.push(array.clone());
        }
        Ok(())
    }

    /// Returns the value of a variable.
    pub fn value(&self, name: &str) -> Result<Array> {
        let id = self.graph.body().variables().find(name)?;
        self.current(id)
    }

    /// Returns the value of a variable. One that was added after the last run has its initial
    /// value.
    fn current(&self, id: VarId) -> Result<Array> {
        let body = self.graph.body();
        let name = &body.variables().spec(id).name;
        match self.state.holds(name) {
            true => self.state.read(name),
            false => body.variables().initial(id, self.seed),
        }
    }

    /// Sets a variable.
    pub fn set_value(&mut self, name: &str, value: &Array) -> Result<()> {
        let body = self.graph.body();
        body.variables().find(name)?;
        self.state.extend(body.variables(), self.seed)?;
        self.state.write(name, value)
    }

    /// Writes all variables to a checkpoint that TensorFlow can read: `prefix.index` and
    /// `prefix.data-00000-of-00001`.
    ///
    /// The number of completed steps is saved as `global_step`, unless the graph has a variable of
    /// that name.
    pub fn save(&self, prefix: impl AsRef<Path>) -> Result<()> {
        let mut writer = BundleWriter::create(prefix)?;
        let body = self.graph.body();
        for (id, spec) in saved_variables(body.variables()) {
            writer.add(&spec.name, &self.current(id)?)?;
        }
        if body.variables().get(GLOBAL_STEP).is_none() {
            writer.add(GLOBAL_STEP, &Array::scalar(self.step as i64))?;
        }
        writer.finish()
    }

    /// Reads all variables from a checkpoint of ours or of TensorFlow. If any of them cannot be
    /// read, nothing changes.
    ///
    /// Training continues as if it had never stopped, bit for bit: random ops continue at the saved
    /// step.
    pub fn restore(&mut self, prefix: impl AsRef<Path>) -> Result<()> {
        let reader = BundleReader::open(prefix)?;
        let body = self.graph.body();
        let variables = body.variables();
        let read = |(id, spec): (VarId, &VarSpec)| Ok((id, reader.read(&spec.name)?));
        let values = saved_variables(variables).map(read).collect::<Result<Vec<_>>>()?;
        let step = match reader.contains(GLOBAL_STEP) {
            true => u64::try_from(reader.read(GLOBAL_STEP)?.item::<i64>()?).unwrap_or(0),
            false => self.step,
        };
        replace_values(&mut *self.state, variables, self.seed, values)?;
        self.step = step;
        Ok(())
    }

    /// The number of completed training steps.
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns the program for some fetches, for inspection.
    pub fn program(&mut self, fetches: &[&Tensor]) -> Result<Program> {
        Ok(self.compiled(fetches)?.program().clone())
    }

    /// The graph of the session.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

/// Computes the value of a single tensor without an explicit session.
pub trait Eval {
    /// Computes a tensor that depends on no placeholder. Variables have their initial values.
    fn eval(&self) -> Result<Array>;
}

impl Eval for Tensor {
    fn eval(&self) -> Result<Array> {
        let mut outputs = Session::new(self.graph())?.run(&[self], &[])?;
        outputs.pop().ok_or_else(|| Error::config(format!("{} has no value", self.describe())))
    }
}
