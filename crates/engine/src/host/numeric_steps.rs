//! The numeric nodes of a host part: a small program for the kernels of `cpu`, on the calling
//! thread.

use std::sync::Arc;

use estimand_cpu::Cpu;
use estimand_graph::pass::reads;
use estimand_graph::{Body, Executable, Executor, Program, RunArgs, State, Step, Trace, Value, Variables};
use estimand_tensor::{Array, Result};
use smallvec::SmallVec;

/// A compiled group of numeric nodes.
pub(super) struct NumericSteps {
    executable: Arc<dyn Executable>,
    /// A state without variables, because a run needs a state.
    state: Box<dyn State>,
}

impl NumericSteps {
    /// Compiles some steps for the results that are needed. `batch_value` determines the batch size
    /// if nothing else does.
    pub(super) fn new(
        body: Arc<Body>,
        steps: &[Step],
        makes: Vec<Value>,
        batch_value: Option<Value>,
    ) -> Result<NumericSteps> {
        let feeds = reads(&body, steps, &makes, batch_value);
        let program = Program {
            body,
            host: Vec::new(),
            steps: steps.to_vec(),
            placeholders: Vec::new(),
            feeds,
            fetches: makes.clone(),
            after: Vec::new(),
            results: makes,
            n_compute: steps.len(),
        };
        // The results do not depend on the number of threads, and many threads may already call the
        // host.
        let cpu = Cpu::with_threads(1);
        Ok(NumericSteps { executable: cpu.compile(program)?, state: cpu.place(&Variables::default(), 0)? })
    }

    /// The values it reads, in the order of `run`'s arguments.
    pub(super) fn reads(&self) -> &[Value] {
        self.executable.program().feeds()
    }

    /// The values it computes, in the order of `run`'s results.
    pub(super) fn makes(&self) -> &[Value] {
        self.executable.program().fetches()
    }

    pub(super) fn run(&self, feeds: &[&Array], trace: Option<&mut Trace>) -> Result<Vec<Array>> {
        let feeds: SmallVec<[Array; 4]> = feeds.iter().copied().cloned().collect();
        let feeds = &feeds;
        let mut outputs = Vec::with_capacity(self.makes().len());
        self.executable.forward(&*self.state, RunArgs { feeds, trace, ..RunArgs::default() }, &mut outputs)?;
        Ok(outputs)
    }
}
