//! The lines that `fit` shows: Keras' progress bar, or one line for each epoch.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _, stderr};
use std::time::{Duration, Instant};

use estimand_tensor::{Error, Result};

use super::history::Logs;

/// The width of Keras' bar.
const WIDTH: usize = 30;
/// The shortest time between two pictures of the bar.
const REDRAW: Duration = Duration::from_millis(100);

/// The levels of `verbose`.
pub(super) struct Verbose;

impl Verbose {
    pub fn check(level: u8) -> Result<()> {
        match level {
            0..=2 => Ok(()),
            _ => Err(Error::config(format!("verbose is {level}; expected 0, 1 or 2"))),
        }
    }
}

/// The line of an epoch.
pub(super) struct EpochLine {
    level: u8,
    n_steps: Option<usize>,
    step: usize,
    started: Instant,
    drawn: Instant,
    is_bar: bool,
}

impl EpochLine {
    pub fn begin(level: u8, epoch: usize, epochs: usize, n_steps: Option<usize>) -> EpochLine {
        // TF: a single epoch has no such line.
        if level > 0 && epochs > 1 {
            show(&format!("Epoch {}/{epochs}\n", epoch + 1));
        }
        let now = Instant::now();
        let is_bar = level == 1 && stderr().is_terminal();
        EpochLine { level, n_steps, step: 0, started: now, drawn: now, is_bar }
    }

    /// Shows the bar after a step, at most ten times a second.
    pub fn step(&mut self, step: usize, logs: impl FnOnce() -> Option<Vec<(String, f64)>>) {
        self.step = step;
        if self.is_bar && self.drawn.elapsed() >= REDRAW {
            self.drawn = Instant::now();
            let logs: Logs = logs().unwrap_or_default().into_iter().collect();
            show(&format!("\r{}", self.bar(&logs)));
        }
    }

    /// Shows the line of the whole epoch.
    pub fn end(&self, logs: &Logs) {
        match self.level {
            1 => show(&format!("{}{}\n", if self.is_bar { "\r" } else { "" }, self.bar(logs))),
            2 => show(&format!("{}\n", line(self.step, self.n_steps, seconds(self.started), logs))),
            _ => {}
        }
    }

    fn bar(&self, logs: &Logs) -> String {
        let n = self.n_steps.unwrap_or(self.step);
        let done = (WIDTH * self.step).checked_div(n).unwrap_or(WIDTH).min(WIDTH);
        let arrow = if done < WIDTH && done > 0 { ">" } else { "" };
        let filled = format!("{}{arrow}", "=".repeat(done - arrow.len()));
        let time = seconds(self.started);
        let each = duration(time / self.step.max(1) as f64);
        format!("{}/{n} [{filled:.<WIDTH$}] - {time:.0}s {each}/step{}", self.step, values(logs))
    }
}

/// `2/2 - 0s - loss: 0.1234 - 172ms/epoch - 86ms/step`.
fn line(step: usize, n_steps: Option<usize>, time: f64, logs: &Logs) -> String {
    let n = n_steps.unwrap_or(step);
    let each = duration(time / step.max(1) as f64);
    format!("{step}/{n} - {time:.0}s{} - {}/epoch - {each}/step", values(logs), duration(time))
}

/// ` - loss: 0.1234 - accuracy: 0.9000`: four digits, or an exponent for small numbers.
fn values(logs: &Logs) -> String {
    let mut text = String::new();
    for (name, value) in logs {
        let shown = if value.abs() > 1e-3 || value.is_nan() { format!("{value:.4}") } else { exponent(*value) };
        // Writing to a string cannot fail.
        let _ = write!(text, " - {name}: {shown}");
    }
    text
}

/// `1.2340e-05`, as Python writes it.
fn exponent(value: f64) -> String {
    let text = format!("{value:.4e}");
    match text.split_once('e').and_then(|(digits, power)| Some((digits, power.parse::<i32>().ok()?))) {
        Some((digits, power)) => format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs()),
        None => text,
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.0}s"),
        s if s >= 1e-3 => format!("{:.0}ms", s * 1e3),
        s => format!("{:.0}us", s * 1e6),
    }
}

/// A terminal that is gone is no reason to stop.
fn show(text: &str) {
    let mut stderr = stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// The time since a moment, in seconds.
fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of Keras' own lines (`fit(verbose=2)` of tf.keras 2.15).
    #[test]
    fn lines_are_those_of_keras() {
        let logs: Logs = [("loss".to_string(), 0.0), ("val_loss".to_string(), 2.34567)].into_iter().collect();
        assert_eq!(
            line(2, Some(2), 0.172, &logs),
            "2/2 - 0s - loss: 0.0000e+00 - val_loss: 2.3457 - 172ms/epoch - 86ms/step"
        );
        assert_eq!(exponent(1.234e-5), "1.2340e-05");
    }
}
