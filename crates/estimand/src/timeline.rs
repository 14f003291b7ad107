//! One run of a program by the clock: waiting for the batch, the program's steps, and what came
//! after. Filled by `TrainSession` when a hook asks for it.

use std::time::Duration;

use estimand_graph::{Program, Trace};

/// Some time, in nanoseconds since the timeline began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// When it began.
    pub start: u64,
    /// How long it took.
    pub duration: u64,
}

impl Span {
    fn between(start: u64, end: u64) -> Span {
        Span { start, duration: end.saturating_sub(start) }
    }

    /// How long it took.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.duration)
    }
}

/// What one run took. It begins when it was asked for.
#[derive(Clone, Debug)]
pub struct Timeline {
    pub(crate) trace: Trace,
    program: Program,
    input: Span,
    run: Span,
}

impl Timeline {
    /// The times of the program's steps.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The program that was run.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Waiting for the batch, or preparing it where no thread had.
    pub fn input(&self) -> Span {
        self.input
    }

    /// All of the program's steps, and what is between them.
    pub fn run(&self) -> Span {
        self.run
    }

    /// From the run's end until now.
    pub fn since_run(&self) -> Span {
        Span::between(self.run.start + self.run.duration, self.trace.now())
    }
}

/// A timeline in the making.
#[derive(Debug, Default)]
pub(crate) struct Recording {
    pub(crate) trace: Trace,
    input_start: Option<u64>,
    run_start: u64,
}

impl Recording {
    pub(crate) fn begin_input(&mut self) {
        self.input_start = Some(self.trace.now());
    }

    pub(crate) fn begin_run(&mut self) {
        self.run_start = self.trace.now();
    }

    pub(crate) fn end_run(self, program: &Program) -> Timeline {
        let run = Span::between(self.run_start, self.trace.now());
        let input = Span::between(self.input_start.unwrap_or(self.run_start), self.run_start);
        Timeline { trace: self.trace, program: program.clone(), input, run }
    }
}
