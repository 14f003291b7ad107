//! The progress of a run: a bar with loss, steps per second and time left, or a plain line now and
//! then.
//!
//! A step costs one decrement. If steps are fast, the clock is read only every 16th step. The bar
//! is drawn at most ten times a second.

use std::fmt::Write;
use std::time::{Duration, Instant};

use tracing::info;

use super::table::number;
use super::{Level, level, screen};

/// The minimum time between two redraws of the bar.
const REDRAW: Duration = Duration::from_millis(100);
/// The time between two plain lines.
const NEXT_LINE: Duration = Duration::from_secs(60);
/// The maximum number of steps between two readings of the clock. If steps suddenly become slow,
/// the bar stands still for this number of steps.
const MOST_UNSEEN: u32 = 16;
/// The clock need not be read more often than this.
const LOOK: Duration = Duration::from_millis(10);
/// The width of the bar itself, in characters.
const BAR_LEN: usize = 20;

/// Shows the progress of a run on stderr, from [`verbosity`](super::verbosity) `Info` on.
///
/// On a terminal it is a bar, which disappears when this is dropped. Elsewhere a line is logged
/// every minute.
///
/// ```
/// use estimand::console::Progress;
///
/// let mut progress = Progress::start("train", 0, Some(1000));
/// for step in 1..=1000 {
///     progress.step(step, || Some(0.5));
/// }
/// ```
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    last: Option<u64>,
    note: String,
    /// The time between two redraws; `None` if nothing is shown.
    period: Option<Duration>,
    is_bar: bool,
    /// Steps until the next reading of the clock; `stride` is the number between readings.
    unseen: u32,
    stride: u32,
    looked: Instant,
    drawn: Instant,
    drawn_step: u64,
    steps_per_sec: Option<f64>,
}

impl Progress {
    /// Begins at a global step; `last` is the step to reach, if it is known.
    pub fn start(what: &'static str, first: u64, last: Option<u64>) -> Progress {
        let is_bar = level() >= Level::Info && screen::can_show_bar();
        let period = match (is_bar, level()) {
            (true, _) => Some(REDRAW),
            (false, Level::Info | Level::Debug) => Some(NEXT_LINE),
            _ => None,
        };
        Progress::new(what, first, last, period, is_bar)
    }

    fn new(what: &'static str, first: u64, last: Option<u64>, period: Option<Duration>, is_bar: bool) -> Progress {
        let now = Instant::now();
        Progress {
            what,
            last,
            note: String::new(),
            period,
            is_bar,
            unseen: 1,
            stride: 1,
            looked: now,
            drawn: now,
            drawn_step: first,
            steps_per_sec: None,
        }
    }

    /// Records that this global step is reached. `loss` is called only when it is shown.
    #[inline]
    pub fn step(&mut self, step: u64, loss: impl FnOnce() -> Option<f32>) {
        self.unseen -= 1;
        if self.unseen == 0 {
            self.look(step, Instant::now(), loss);
        }
    }

    /// Adds a text to the bar, such as the last evaluation; it stays until it is replaced.
    pub fn note(&mut self, text: impl Into<String>) {
        self.note = text.into();
    }

    fn look(&mut self, step: u64, now: Instant, loss: impl FnOnce() -> Option<f32>) {
        let Some(period) = self.period else {
            self.unseen = u32::MAX;
            return;
        };
        let unlooked = now.saturating_duration_since(self.looked);
        self.stride = if unlooked < LOOK { (self.stride * 2).min(MOST_UNSEEN) } else { (self.stride / 2).max(1) };
        self.unseen = self.stride;
        self.looked = now;
        if now.saturating_duration_since(self.drawn) < period {
            return;
        }
        let text = self.picture(step, now, loss());
        if self.is_bar {
            screen::bar(&cut(&text, screen::width().saturating_sub(1)));
        } else {
            info!("{text}");
        }
    }

    /// Returns the text to show at a step. Speed is then measured from this step.
    fn picture(&mut self, step: u64, now: Instant, loss: Option<f32>) -> String {
        let secs = now.saturating_duration_since(self.drawn).as_secs_f64();
        let speed = step.saturating_sub(self.drawn_step) as f64 / secs;
        // Averages with the previous speed: steady enough to read, and close to a new speed within
        // a second.
        let speed = self.steps_per_sec.map_or(speed, |before| 0.5 * before + 0.5 * speed);
        (self.steps_per_sec, self.drawn, self.drawn_step) = (Some(speed), now, step);
        self.text(step, loss, speed)
    }

    fn text(&self, step: u64, loss: Option<f32>, speed: f64) -> String {
        let mut text = self.what.to_string();
        // Writing to a string cannot fail.
        let _ = match self.last.filter(|&last| last > 0) {
            None => write!(text, " step {step}"),
            Some(last) => {
                let part = (step as f64 / last as f64).min(1.0);
                let bar = if self.is_bar { format!(" [{}]", bar(part)) } else { String::new() };
                write!(text, " {:3.0}%{bar} {step}/{last}", (part * 100.0).floor())
            }
        };
        if let Some(loss) = loss {
            let _ = write!(text, ", loss {loss:.4}");
        }
        let rounded = if speed >= 100.0 { speed.round() } else { (speed * 10.0).round() / 10.0 };
        let _ = write!(text, ", {} steps/s", number(rounded));
        if let Some(last) = self.last
            && speed > 0.0
        {
            let _ = write!(text, ", {} left", clock(last.saturating_sub(step) as f64 / speed));
        }
        if !self.note.is_empty() {
            let _ = write!(text, ", {}", self.note);
        }
        text
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_bar {
            screen::bar("");
        }
    }
}

/// Draws `=====>    ` for the share that is done.
fn bar(part: f64) -> String {
    let n_done = (part * BAR_LEN as f64) as usize;
    let tip = if n_done < BAR_LEN { ">" } else { "" };
    format!("{}{tip}{:rest$}", "=".repeat(n_done), "", rest = (BAR_LEN - n_done).saturating_sub(1))
}

/// Formats a time as `1:02:03` or `2:03`; days are shown as hours.
fn clock(secs: f64) -> String {
    // The cast saturates if the number is too large.
    let secs = secs.ceil() as u64;
    let (hours, minutes, secs) = (secs / 3600, secs / 60 % 60, secs % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{secs:02}") } else { format!("{minutes}:{secs:02}") }
}

/// Returns the beginning of a text that fits into a line. A longer text would leave its first half
/// on the screen forever.
fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn progress(last: Option<u64>, is_bar: bool) -> Progress {
        Progress::new("train", 0, last, None, is_bar)
    }

    #[test]
    fn pictures() {
        let mut bar = progress(Some(5000), true);
        assert_eq!(
            bar.text(2250, Some(0.123_45), 310.4),
            // 9 of 20 parts done; (5000 - 2250) / 310.4 = 8.86 s.
            "train  45% [=========>          ] 2250/5000, loss 0.1235, 310 steps/s, 0:09 left"
        );
        bar.note("accuracy 0.98");
        assert!(
            bar.text(5000, None, 12.34)
                .ends_with("[====================] 5000/5000, 12.3 steps/s, 0:00 left, accuracy 0.98")
        );
        // More steps than requested, and no steps yet.
        assert!(bar.text(6000, None, 1.0).starts_with("train 100% ["));
        assert!(bar.text(0, None, 0.0).starts_with("train   0% [>                   ] 0/5000, 0 steps/s"));
        // Without a bar, and without an end.
        assert_eq!(progress(Some(5000), false).text(50, None, 1.0), "train   1% 50/5000, 1 steps/s, 1:22:30 left");
        assert_eq!(progress(None, true).text(50, Some(f32::NAN), 2.0), "train step 50, loss NaN, 2 steps/s");
        assert!(progress(Some(0), true).text(0, None, 1.0).starts_with("train step 0"));
    }

    #[test]
    fn speed_follows_the_last_pictures() {
        let mut progress = progress(None, false);
        let start = progress.drawn;
        let mut at = |ms: u64, step: u64| {
            progress.picture(step, start + Duration::from_millis(ms), None);
            progress.steps_per_sec.unwrap()
        };
        assert_eq!(at(1000, 100), 100.0);
        // 300 steps in a second: half of 100 and half of 300.
        assert_eq!(at(2000, 400), 200.0);
        assert_eq!(at(4000, 400), 100.0);
    }

    #[test]
    fn quick_steps_do_not_look_at_the_clock() {
        let mut progress = Progress::new("train", 0, None, Some(Duration::from_secs(3600)), false);
        let asked = Cell::new(0);
        let (start, mut n_looks) = (progress.looked, 0);
        for step in 1..=16_000u32 {
            progress.unseen -= 1;
            if progress.unseen == 0 {
                n_looks += 1;
                // Five microseconds a step.
                let now = start + Duration::from_micros(5) * step;
                progress.look(u64::from(step), now, || {
                    asked.set(asked.get() + 1);
                    None
                });
            }
        }
        // 1 + 2 + 4 + 8 steps to get to every 16th.
        assert!((1000..1010).contains(&n_looks), "{n_looks}");
        assert_eq!(asked.get(), 0, "the loss is not asked for");

        // Slow steps are seen one by one again.
        for step in 1..=10 {
            progress.look(step, progress.looked + Duration::from_secs(1), || None);
        }
        assert_eq!(progress.stride, 1);
    }

    #[test]
    fn times_left() {
        assert_eq!([0.0, 59.2, 61.0, 3600.0, 100_000.0].map(clock), ["0:00", "1:00", "1:01", "1:00:00", "27:46:40"]);
        assert!(!clock(f64::INFINITY).is_empty());
        assert_eq!(cut("žluťoučký", 3), "žlu");
    }
}
