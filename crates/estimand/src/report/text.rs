//! The summary of a report for the terminal.

use std::fmt;

use super::next::advice;
use super::{Report, TrainingRun};
use crate::console::sliced;

/// The maximum number of findings to list; others are only counted.
const SHOWN: usize = 10;

impl fmt::Display for TrainingRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (step, n_steps) = (self.last_step, self.n_steps());
        let Some(reason) = &self.reason else {
            return write!(
                f,
                "why training ended is not recorded: it was killed, or still runs; it was at step {step}"
            );
        };
        let plural = if n_steps == 1 { "" } else { "s" };
        write!(f, "training ended at step {step}, after {n_steps} step{plural}")?;
        if self.secs > 0.0 && n_steps > 0 {
            write!(f, " in {} ({:.0} a second)", secs(self.secs), n_steps as f64 / self.secs)?;
        }
        write!(f, ": {reason}")
    }
}

/// Prints why training ended, the evaluations, and suspicious columns.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end() {
            Some(run) => write!(f, "{}: {run}", self.name)?,
            None => write!(f, "{}: no training is recorded", self.name)?,
        }
        for set in &self.evaluations {
            let name = set.name.as_deref().unwrap_or("evaluation");
            let (n, last) = (set.history.len(), set.history.last());
            let times = if n == 1 { "once".to_string() } else { format!("{n} times") };
            write!(f, "\n\n{name}: evaluated {times}")?;
            if let Some(last) = last {
                write!(f, ", the last at step {}", last.global_step())?;
            }
            let shown = match &set.best {
                Some(best) => {
                    write!(f, "; the best ({}) at step {}:", set.by, best.global_step())?;
                    Some(best)
                }
                None => last,
            };
            for table in shown.iter().flat_map(|metrics| sliced(metrics.iter())) {
                write!(f, "\n{table}")?;
            }
        }
        if let Some(examined) = &self.examined {
            let n = examined.findings.len();
            let verdict = if n == 0 { "nothing suspicious".to_string() } else { format!("{n} suspicious") };
            write!(f, "\n\ncolumns: {verdict}, in {}", examined.extent())?;
            for finding in examined.findings.iter().take(SHOWN) {
                write!(f, "\n  {finding}")?;
            }
            if n > SHOWN {
                write!(f, "\n  and {} more", n - SHOWN)?;
            }
        }
        let advice = advice(self);
        if !advice.is_empty() {
            write!(f, "\n\nwhat next:\n  {}", advice.join("\n  "))?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "\nnote: {note}"))
    }
}

/// Formats a time for people.
pub(super) fn secs(secs: f64) -> String {
    let whole = secs.round() as u64;
    match whole {
        0..60 => format!("{secs:.1} s"),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}
