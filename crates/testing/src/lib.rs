//! The test kit: random well-typed programs, for comparing executors with each other and with
//! TensorFlow.
//!
//! [`generate`] builds a graph from a seed, with values for everything it feeds. A program is made
//! so that it has one right answer, whoever computes it: magnitudes stay small, arguments stay away
//! from poles, and what jumps (rounding, comparing, taking the largest) is applied to values that
//! everyone computes exactly, or that lie clearly apart (`facts`). So a difference of more than
//! rounding is a bug in someone's op, shape rule or gradient.
//!
//! `generator` holds the pool of values built so far; each family (`leaves`, `pointwise`, `layout`,
//! `reducing`, `linear`, `losses`, `lookup`, `sequence`) adds one more from what it finds there.
//! [`generate_preprocessing`] does the same for the host's ops.

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

/// A graph with everything that is needed to run and to differentiate it.
#[derive(Debug)]
pub struct RandomProgram {
    /// The graph, without gradients.
    pub graph: Graph,
    /// A value for every placeholder. Variables begin with theirs.
    pub feeds: Vec<(Tensor, Array)>,
    /// What to compute: of all dtypes.
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

    /// The values of some tensors of the graph, from new state.
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

/// `cpu` with a step for each node.
pub fn cpu_without_passes(cpu: Cpu) -> Cpu {
    cpu.without(&Cpu::pass_names().collect::<Vec<_>>())
}

/// The program of a seed: always the same one.
pub fn generate(seed: u64) -> Result<RandomProgram> {
    generator::Generator::new(seed).run()
}
