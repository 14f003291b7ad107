//! The times of profiled steps, summed for each step of the program and compared with the machine's
//! rates.

use std::fmt;
use std::time::Duration;

use estimand_graph::{Cost, Phase, Rates};
use indexmap::IndexMap;

use crate::console::Table;
use crate::{Span, Timeline};

/// The times of the profiled steps of a run. Displayed as a table, the longest first.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    n_steps: u64,
    rows: IndexMap<(Phase, usize), ProfileRow>,
    input: Duration,
    run: Duration,
    hooks: Duration,
    rates: Option<Rates>,
}

/// One step of the program, summed over all profiled runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileRow {
    /// The operation: `MatMul+bias+relu`.
    pub op: String,
    /// Its place in the model: the node, or the variable that it writes or computes the gradient
    /// of.
    pub name: String,
    /// The number of calls.
    pub calls: u64,
    /// The total time of all calls.
    pub time: Duration,
    /// The bytes moved and operations computed, in all calls.
    pub cost: Cost,
}

impl ProfileRow {
    /// Bytes read and written per second.
    pub fn byte_rate(&self) -> f64 {
        self.cost.bytes() as f64 / self.seconds()
    }

    /// Floating-point operations per second.
    pub fn flop_rate(&self) -> f64 {
        self.cost.flops as f64 / self.seconds()
    }

    fn seconds(&self) -> f64 {
        self.time.as_secs_f64().max(1e-9)
    }
}

impl Profile {
    /// The number of profiled steps of the run.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// The steps of the program, in the order they ran.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &ProfileRow> {
        self.rows.values()
    }

    /// The time spent waiting for batches, or preparing them if no thread had done so.
    pub fn input_time(&self) -> Duration {
        self.input
    }

    /// The time spent running the program, including gaps between its steps.
    pub fn run_time(&self) -> Duration {
        self.run
    }

    /// The time spent in hooks, checkpoints and the progress bar.
    pub fn hook_time(&self) -> Duration {
        self.hooks
    }

    /// The peak rates of the machine; `None` before the first profiled step has ended, and if they
    /// cannot be measured.
    pub fn rates(&self) -> Option<Rates> {
        self.rates
    }

    pub(super) fn set_rates(&mut self, rates: Option<Rates>) {
        self.rates = rates;
    }

    pub(super) fn add(&mut self, timeline: &Timeline, hooks: Span) {
        self.n_steps += 1;
        self.input += timeline.input().time();
        self.run += timeline.run().time();
        self.hooks += hooks.time();
        for timed in timeline.trace().steps() {
            let row = self.rows.entry((timed.part, timed.index)).or_insert_with(|| {
                let (op, name) = timeline.program().describe(timed);
                ProfileRow { op, name, calls: 0, time: Duration::ZERO, cost: Cost::default() }
            });
            row.calls += 1;
            row.time += Duration::from_nanos(timed.duration);
            row.cost += timed.cost;
        }
    }

    /// Returns a table with one line per step of the program, with the time of one call: the
    /// longest first, then the total.
    ///
    /// `bound us` is the shortest time that the machine's rates allow, for operations or for
    /// memory, whichever is longer. `x bound` is the ratio of the measured time to that bound.
    /// Values in a cache can be moved faster than memory allows; then the ratio is below 1.
    pub fn table(&self) -> Table {
        let all = self.rows.values().map(|row| row.time.as_secs_f64()).sum::<f64>().max(1e-9);
        let mut rows: Vec<&ProfileRow> = self.rows.values().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.time));
        let header = ["calls", "us", "%", "GB/s", "GFLOP/s", "bound us", "x bound"];
        let mut table = Table::with_header(["op", "name"], header);
        for row in &rows {
            let bound = self.rates.map(|rates| rates.bound(&row.cost)).filter(|bound| *bound > 0.0);
            let calls = row.calls.max(1) as f64;
            let numbers = [
                Some(row.seconds() / calls * 1e6),
                Some(row.seconds() / all * 100.0),
                Some(row.byte_rate() / 1e9).filter(|_| row.cost.bytes() > 0),
                Some(row.flop_rate() / 1e9).filter(|_| row.cost.flops > 0),
                bound.map(|bound| bound / calls * 1e6),
                bound.map(|bound| row.seconds() / bound),
            ];
            let calls = std::iter::once(Some(calls));
            table = table.row([shortened(&row.op), row.name.clone()], calls.chain(numbers.map(|n| n.map(rounded))));
        }
        table
    }
}

/// Rounds to three significant digits and at most two decimals.
fn rounded(value: f64) -> f64 {
    let n_decimals = if value > 0.0 { 2 - value.log10().floor() as i32 } else { 2 };
    let scale = 10f64.powi(n_decimals.min(2));
    (value * scale).round() / scale
}

/// Shortens long chains of element-wise nodes to their beginning.
fn shortened(op: &str) -> String {
    const SHOWN: usize = 4;
    let parts: Vec<&str> = op.split('+').collect();
    match parts.len() {
        n if n > SHOWN + 1 => format!("{}+{} more", parts[..SHOWN].join("+"), n - SHOWN),
        _ => op.to_string(),
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |time: Duration| rounded(time.as_secs_f64() / self.n_steps.max(1) as f64 * 1e3);
        let (run, input, hooks) = (each(self.run), each(self.input), each(self.hooks));
        write!(f, "{} steps were timed; each took {run} ms, after {input} ms of waiting for input, ", self.n_steps)?;
        write!(f, "and hooks {hooks} ms.")?;
        if let Some(rates) = &self.rates {
            let (flops, bytes) = (rounded(rates.flops / 1e9), rounded(rates.bytes / 1e9));
            write!(f, " At best: {flops} GFLOP/s, {bytes} GB/s.")?;
        }
        write!(f, "\n{}", self.table())
    }
}
