//! A program that is ready to run: the host's parts before and after the step, and the step on an
//! executor.

use std::sync::Arc;

use estimand_graph::{Executable, Executor, Phase, Program, RunArgs, State};
use estimand_tensor::{Array, Result};

use crate::host::HostProgram;

/// A program compiled for an executor. It runs all parts in order, or skips the first part if the
/// host has [prepared] the feeds earlier, in this thread or another.
///
/// [prepared]: Compiled::prepare
///
/// ```
/// use estimand_cpu::Cpu;
/// use estimand_engine::Compiled;
/// use estimand_graph::{Encoding, Executor, Graph, Program, RunArgs};
/// use estimand_tensor::{Array, DType, Dim};
///
/// let g = Graph::new();
/// let word = g.placeholder("word", DType::Str, [Dim::BATCH]);
/// let length = word.string_length(Encoding::Bytes).cast(DType::F32).sum();
/// let program = Program::new(std::sync::Arc::new(g.body().clone()), &[length.value()])?;
/// let compiled = Compiled::new(&Cpu::new(), program)?;
///
/// let words = Array::from_strings([2], ["wide", "deep"])?;
/// let prepared = std::thread::scope(|s| s.spawn(|| compiled.prepare(vec![words])).join().expect("it does not panic"))?;
/// let state = Cpu::new().place(g.body().variables(), 0)?;
/// let mut outputs = Vec::new();
/// compiled.forward_prepared(&*state, RunArgs { feeds: &prepared, ..RunArgs::default() }, &mut outputs)?;
/// assert_eq!(outputs[0].item::<f32>()?, 8.0);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub struct Compiled {
    host: HostProgram,
    step: Arc<dyn Executable>,
    after: Option<HostProgram>,
}

impl Compiled {
    /// Compiles all parts of a program.
    pub fn new(executor: &dyn Executor, program: Program) -> Result<Compiled> {
        let step = executor.compile(program)?;
        let host = HostProgram::new(step.program())?;
        let goes_on = step.program().fetches() != step.program().results();
        let after = goes_on.then(|| HostProgram::after(step.program())).transpose()?;
        Ok(Compiled { host, step, after })
    }

    /// Returns the program as the executor runs it.
    pub fn program(&self) -> &Program {
        self.step.program()
    }

    /// Computes the step's feeds from the values of the placeholders. Threads may call this while
    /// others run the step.
    pub fn prepare(&self, placeholders: Vec<Array>) -> Result<Vec<Array>> {
        match self.host.is_empty() {
            true => Ok(placeholders),
            false => self.host.run(&placeholders),
        }
    }

    /// Computes the fetches without changing any variable. `args.feeds` holds the values of the
    /// placeholders.
    pub fn forward(&self, state: &dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()> {
        self.with_host(args, outputs, |args, outputs| self.step.forward(state, args, outputs))
    }

    /// Computes the fetches and updates variables. `args.feeds` holds the values of the
    /// placeholders.
    pub fn step(&self, state: &mut dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()> {
        self.with_host(args, outputs, |args, outputs| self.step.step(state, args, outputs))
    }

    /// Runs [`forward`](Compiled::forward) with `args.feeds` from [`prepare`](Compiled::prepare).
    pub fn forward_prepared(&self, state: &dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()> {
        self.with_after(args, outputs, |args, outputs| self.step.forward(state, args, outputs))
    }

    /// Runs [`step`](Compiled::step) with `args.feeds` from [`prepare`](Compiled::prepare).
    pub fn step_prepared(&self, state: &mut dyn State, args: RunArgs<'_>, outputs: &mut Vec<Array>) -> Result<()> {
        self.with_after(args, outputs, |args, outputs| self.step.step(state, args, outputs))
    }

    fn with_host(
        &self,
        mut args: RunArgs<'_>,
        outputs: &mut Vec<Array>,
        run: impl FnOnce(RunArgs<'_>, &mut Vec<Array>) -> Result<()>,
    ) -> Result<()> {
        if self.host.is_empty() {
            return self.with_after(args, outputs, run);
        }
        let feeds = self.host.run_traced(args.feeds, Phase::Host, args.trace.as_deref_mut())?;
        self.with_after(args.with_feeds(&feeds), outputs, run)
    }

    fn with_after(
        &self,
        mut args: RunArgs<'_>,
        outputs: &mut Vec<Array>,
        run: impl FnOnce(RunArgs<'_>, &mut Vec<Array>) -> Result<()>,
    ) -> Result<()> {
        let feeds = args.feeds;
        run(args.with_feeds(feeds), outputs)?;
        if let Some(after) = &self.after {
            *outputs = after.run_traced(outputs, Phase::After, args.trace)?;
        }
        Ok(())
    }
}
