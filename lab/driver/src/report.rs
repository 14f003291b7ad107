//! The summary of all experiments.

use std::time::Duration;

use crate::experiment::Tally;
use crate::laws::Law;
use crate::process_1;

/// The results of all laws.
#[derive(Default)]
pub struct Report {
    rows: Vec<(&'static Law, Tally)>,
}

impl Report {
    /// Adds the results of a law and prints its line.
    pub fn add(&mut self, law: &'static Law, tally: Tally, took: Duration) {
        println!(
            "{:12} {:5} experiments, held {} times, broken {}, skipped {} ({:.0} s)",
            law.name,
            tally.n_experiments,
            tally.n_held,
            tally.broken.len(),
            tally.skipped.len(),
            took.as_secs_f64()
        );
        self.rows.push((law, tally));
    }

    /// Returns whether no law was broken, and at least one was tested.
    pub fn holds(&self) -> bool {
        self.rows.iter().all(|(_, tally)| tally.broken.is_empty())
            && self.rows.iter().any(|(_, tally)| tally.n_held > 0)
    }

    /// Prints the laws, the simulated parts, and the sums.
    pub fn print(&self, wants_table: bool) {
        if wants_table {
            println!("\n{}", self.table());
        }
        if let Some(reason) = process_1::possible().1 {
            println!("simulated: {reason}");
        }
        let n_broken: usize = self.rows.iter().map(|(_, tally)| tally.broken.len()).sum();
        let n_skipped: usize = self.rows.iter().map(|(_, tally)| tally.skipped.len()).sum();
        let n_all: u64 = self.rows.iter().map(|(_, tally)| tally.n_experiments).sum();
        let n_passed = n_all - (n_broken + n_skipped) as u64;
        println!("\n{n_passed} passed, {n_broken} failed, {n_skipped} skipped");
    }

    /// Returns the rows of docs/trust.md: promise, experiment, count.
    fn table(&self) -> String {
        let mut table = String::from("| promise | experiment | count |\n|---|---|---|\n");
        for (law, tally) in &self.rows {
            let mut count = format!("{}", tally.n_held);
            if !tally.broken.is_empty() {
                count += &format!(", {} broken", tally.broken.len());
            }
            if !tally.skipped.is_empty() {
                count += &format!(", {} skipped", tally.skipped.len());
            }
            table += &format!("| {} | `{}`: {} | {count} |\n", law.promise, law.name, law.experiment);
        }
        table
    }
}
