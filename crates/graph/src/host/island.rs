//! Numeric nodes among those of the host: a small program of its own for the kernels of `cpu`, on the calling thread.

use std::sync::{Arc, Mutex, PoisonError};

use estimand_tensor::{Array, Result};

use crate::cpu::Cpu;
use crate::executor::{Entry, Executable, Executor, RunArgs, State};
use crate::graph::{Body, Value};
use crate::pass::{STEP, reads};
use crate::program::{Program, Step};
use crate::trace::Trace;
use crate::variables::Variables;

/// Some numeric nodes, compiled.
pub(super) struct Island {
    executable: Arc<dyn Executable>,
    /// States without variables, which a run asks for; one for each thread that is in a run.
    states: Mutex<Vec<Box<dyn State>>>,
}

impl Island {
    /// Compiles some steps, for those of their results that are needed. `teller` is asked for the size of the batch if nothing
    /// else tells it.
    pub(super) fn new(body: Arc<Body>, steps: &[Step], makes: Vec<Value>, teller: Option<Value>) -> Result<Island> {
        let feeds = reads(&body, steps, &makes, teller);
        let mut program = Program {
            body,
            host: Vec::new(),
            steps: steps.to_vec(),
            placeholders: Vec::new(),
            feeds,
            fetches: makes.clone(),
            after: Vec::new(),
            results: makes.clone(),
            roots: makes,
            n_compute: steps.len(),
        };
        for pass in STEP {
            program = (pass.run)(program);
        }
        // The results do not depend on the number of threads, and the host's caller is one of many.
        let executable = Cpu::with_threads(1).compile(program)?;
        Ok(Island { executable, states: Mutex::default() })
    }

    /// What it reads, in the order of `run`'s arguments.
    pub(super) fn reads(&self) -> &[Value] {
        self.executable.program().feeds()
    }

    /// What it makes, in the order of `run`'s results.
    pub(super) fn makes(&self) -> &[Value] {
        self.executable.program().fetches()
    }

    pub(super) fn run(&self, feeds: &[Array], trace: Option<&mut Trace>) -> Result<Vec<Array>> {
        let idle = || self.states.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let mut state = match taken {
            Some(state) => state,
            None => Cpu::with_threads(1).place(&Variables::default(), 0)?,
        };
        let mut outputs = Vec::new();
        let args = RunArgs { entry: Entry::Forward, feeds, trace, ..RunArgs::default() };
        let result = self.executable.run(&mut *state, args, &mut outputs);
        idle().push(state);
        result.map(|()| outputs)
    }
}
