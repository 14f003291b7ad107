//! The test kit: random well-typed programs, for comparing executors with each other and with
//! TensorFlow.
//!
//! [`generate`] builds a graph from a seed, with values for all its placeholders. A program is
//! built so that it has one right answer on every executor: magnitudes stay small, and arguments
//! stay away from poles. Discontinuous ops (rounding, comparing, taking the largest) are applied
//! only to values that every executor computes exactly, or that lie clearly apart (`facts`). A
//! difference of more than rounding is therefore a bug in an op, a shape rule or a gradient.
//!
//! `generator` holds the pool of values built so far. Each family (`leaves`, `pointwise`, `layout`,
//! `reducing`, `linear`, `losses`, `lookup`, `sequence`) adds a value computed from the pool.
//! [`generate_preprocessing`] does the same for host ops.

mod compare;
mod dice;
mod executor;
mod facts;
mod generator;
mod layout;
mod leaves;
mod linear;
mod lookup;
mod losses;
mod pointwise;
mod preprocessing;
mod reducing;
mod sequence;

use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_engine::Compiled;
use estimand_graph::{Executor, Graph, Program, RunArgs, Tensor, Value, gradients};
use estimand_tensor::{Array, Error, Result};

pub use compare::difference;
pub use estimand_graph::looks::looks;
pub use executor::check_executor;
pub use preprocessing::generate_preprocessing;

/// A graph with all data needed to run and to differentiate it.
#[derive(Debug)]
pub struct RandomProgram {
    /// The graph, without gradients.
    pub graph: Graph,
    /// A value for every placeholder. Variables have initial values.
    pub feeds: Vec<(Tensor, Array)>,
    /// The tensors to compute, of all dtypes.
    pub fetches: Vec<Tensor>,
    /// A number (f32) that depends on every float among the fetches.
    pub loss: Tensor,
    /// The float placeholders and variables.
    pub wrt: Vec<Tensor>,
}

impl RandomProgram {
    /// Adds the backward nodes: a dense gradient of the loss for each of `wrt` that it depends on.
    pub fn differentiate(&self) -> Result<Vec<Option<Tensor>>> {
        let found = gradients(&self.loss, &self.wrt.iter().collect::<Vec<_>>());
        let dense = found.iter().zip(&self.wrt).map(|(gradient, x)| gradient.to_dense(x.shape())).collect();
        self.graph.check()?;
        Ok(dense)
    }

    /// Computes some tensors of the graph from a new state.
    pub fn run(&self, executor: &dyn Executor, tensors: &[Tensor], passes: bool) -> Result<Vec<Array>> {
        let fetches: Vec<Value> = tensors.iter().map(Tensor::value).collect();
        let body = Arc::new(self.graph.body().clone());
        let state = executor.place(body.variables(), 0)?;
        let program = if passes { Program::new(body, &fetches)? } else { Program::plain(body, &fetches)? };
        let fed = |&id| {
            let value = self.feeds.iter().find(|(t, _)| t.value().node == id).map(|(_, value)| value.clone());
            value.ok_or_else(|| Error::internal("a placeholder of a random program has no value"))
        };
        let feeds = program.placeholders().iter().map(fed).collect::<Result<Vec<Array>>>()?;
        let mut outputs = Vec::new();
        let args = RunArgs { feeds: &feeds, ..Default::default() };
        Compiled::new(executor, program)?.forward(&*state, args, &mut outputs)?;
        Ok(outputs)
    }
}

/// Returns `cpu` without passes, so that each node is a step.
pub fn cpu_without_passes(cpu: Cpu) -> Cpu {
    cpu.without(&Cpu::pass_names().collect::<Vec<_>>())
}

/// Generates the program of a seed. The same seed always gives the same program.
pub fn generate(seed: u64) -> Result<RandomProgram> {
    generator::Generator::new(seed).run()
}
