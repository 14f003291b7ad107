//! The timeline of one run of a program: waiting for the batch, the program's steps, and the time
//! after them. `TrainSession` fills it when a hook requests it.

use std::time::Duration;

use estimand_graph::{Program, Trace};

/// A time span, in nanoseconds since the timeline began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The start.
    pub start: u64,
    /// The duration.
    pub duration: u64,
}

impl Span {
    fn between(start: u64, end: u64) -> Span {
        Span { start, duration: end.saturating_sub(start) }
    }

    /// Returns the duration.
    pub fn time(&self) -> Duration {
        Duration::from_nanos(self.duration)
    }
}

/// The times of one run. They begin when the recording was requested.
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

    /// The program that ran.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The time spent waiting for the batch, or preparing it if no thread had done so.
    pub fn input(&self) -> Span {
        self.input
    }

    /// The time of all of the program's steps, and of the gaps between them.
    pub fn run(&self) -> Span {
        self.run
    }

    /// The time from the end of the run until now.
    pub fn since_run(&self) -> Span {
        Span::between(self.run.start + self.run.duration, self.trace.now())
    }
}

/// A timeline that is being recorded.
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
