//! How often something happens: `Every` is the period, `Timer` keeps count.

use std::fmt;
use std::time::{Duration, Instant};

use estimand_tensor::{Error, Result};

/// How often something happens during training.
///
/// This one value replaces TensorFlow's pair `save_checkpoints_steps` and `save_checkpoints_secs`,
/// so both cannot be set at once and neither can be forgotten. As in TensorFlow, `Steps(0)` and
/// `Secs(0.0)` mean never.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Every {
    /// Once per this number of steps.
    Steps(u64),
    /// Once per this number of seconds.
    Secs(f64),
    /// Never.
    Never,
}

impl Every {
    /// Returns whether it never happens.
    pub fn is_never(self) -> bool {
        matches!(self, Every::Never | Every::Steps(0) | Every::Secs(0.0))
    }

    /// Returns an error that names `what` if the period is invalid.
    pub(crate) fn check(self, what: &str) -> Result<()> {
        match self {
            // A duration must also fit the range of the clock.
            Every::Secs(secs) if Duration::try_from_secs_f64(secs).is_err() => {
                Err(Error::config(format!("{what} has a period of {secs} seconds; expected a number from 0"))
                    .help("use Every::Never to switch it off"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            never if never.is_never() => f.write_str("never"),
            Every::Steps(1) => f.write_str("every step"),
            Every::Steps(n) => write!(f, "every {n} steps"),
            Every::Secs(secs) => write!(f, "every {secs} s"),
            Every::Never => f.write_str("never"),
        }
    }
}

/// Reports when an action is due: TensorFlow's `SecondOrStepTimer`.
///
/// The action is due at the first step that is queried, and then whenever the period has passed
/// since the last trigger. It is never due twice for one step.
///
/// ```
/// use estimand::{Every, Timer};
///
/// let mut timer = Timer::new(Every::Steps(3));
/// let mut times = Vec::new();
/// for step in 0..10 {
///     if timer.is_due(step) {
///         timer.trigger(step);
///         times.push(step);
///     }
/// }
/// assert_eq!(times, [0, 3, 6, 9]);
/// ```
#[derive(Clone, Debug)]
pub struct Timer {
    every: Every,
    /// The step from which periods in steps are counted; `None` means the first step queried.
    first: Option<u64>,
    last: Option<(u64, Instant)>,
}

/// The steps and time between two triggers of a [`Timer`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passed {
    /// The number of steps done.
    pub steps: u64,
    /// The elapsed time.
    pub time: Duration,
}

impl Timer {
    /// Makes a timer that was never triggered.
    pub fn new(every: Every) -> Timer {
        Timer { every, first: None, last: None }
    }

    /// Returns whether it is never due.
    pub(crate) fn is_never(&self) -> bool {
        self.every.is_never()
    }

    /// Makes a timer whose step periods are counted from a fixed step, regardless of the first
    /// query: `first`, `first + n`, `first + 2 n`.
    ///
    /// If a training is killed and resumes in the middle of a period, it acts at the same steps as
    /// an uninterrupted one. TensorFlow counts from the step at which a process begins. Periods in
    /// seconds always begin with the process.
    ///
    /// ```
    /// use estimand::{Every, Timer};
    ///
    /// let timer = Timer::counted_from(0, Every::Steps(10));
    /// assert_eq!((17..40).filter(|&step| timer.is_due(step)).collect::<Vec<_>>(), [20, 30]);
    /// ```
    pub fn counted_from(first: u64, every: Every) -> Timer {
        Timer { every, first: Some(first), last: None }
    }

    /// Returns whether the action is due at this step.
    pub fn is_due(&self, step: u64) -> bool {
        if self.every.is_never() {
            return false;
        }
        if let (Every::Steps(n), Some(first)) = (self.every, self.first) {
            // Compares the complete periods now with those at the last trigger.
            let n_periods = |step: u64| step.checked_sub(first).map(|steps| steps / n);
            return match self.last {
                Some((last_step, _)) => n_periods(step) > n_periods(last_step),
                None => step >= first && (step - first).is_multiple_of(n),
            };
        }
        let Some((last_step, last_time)) = self.last else { return true };
        match self.every {
            _ if step == last_step => false,
            Every::Steps(n) => step >= last_step.saturating_add(n),
            Every::Secs(secs) => last_time.elapsed().as_secs_f64() >= secs,
            Every::Never => false,
        }
    }

    /// Records that the action was done at this step. Returns the steps and time since the previous
    /// trigger, if there was one.
    pub fn trigger(&mut self, step: u64) -> Option<Passed> {
        let now = Instant::now();
        let before = self.last.replace((step, now));
        before.map(|(last_step, last_time)| Passed {
            steps: step.saturating_sub(last_step),
            time: now.saturating_duration_since(last_time),
        })
    }

    /// Clears the last trigger, so that the action is due at once.
    pub fn reset(&mut self) {
        self.last = None;
    }

    /// Returns the step of the last trigger.
    pub fn last_step(&self) -> Option<u64> {
        self.last.map(|(step, _)| step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(every: Every, steps: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut timer = Timer::new(every);
        let mut times = Vec::new();
        for step in steps {
            if timer.is_due(step) {
                timer.trigger(step);
                times.push(step);
            }
        }
        times
    }

    #[test]
    fn case_101_every_three_steps() {
        assert_eq!(times(Every::Steps(3), 0..10), [0, 3, 6, 9]);
    }

    #[test]
    fn the_first_step_asked_about_counts_and_no_step_counts_twice() {
        // Resumed at step 1 with every 2: 1, 3, 5, as TensorFlow saves.
        assert_eq!(times(Every::Steps(2), 1..7), [1, 3, 5]);
        assert_eq!(times(Every::Steps(1), [4, 4, 5, 5].into_iter()), [4, 5]);
        assert_eq!(times(Every::Steps(3), [0, 10, 12, 13].into_iter()), [0, 10, 13]);
        // A period so short that it has always passed.
        assert_eq!(times(Every::Secs(1e-9), [1, 1, 2, 3].into_iter()), [1, 2, 3]);
        assert_eq!(times(Every::Secs(1e6), 0..100), [0]);
        assert_eq!(times(Every::Steps(u64::MAX), 0..100), [0]);
    }

    /// A run that begins at any step acts at the same steps as one that began at 0.
    #[test]
    fn periods_counted_from_a_step_do_not_depend_on_where_a_run_begins() {
        for (first, expected) in [(0, vec![0, 3, 6, 9]), (1, vec![1, 4, 7, 10]), (5, vec![5, 8, 11])] {
            for begin in 0..12 {
                for begins_with_trigger in [false, true] {
                    let mut timer = Timer::counted_from(first, Every::Steps(3));
                    if begins_with_trigger {
                        timer.trigger(begin);
                    }
                    let mut times = Vec::new();
                    for step in begin..12 {
                        if timer.is_due(step) {
                            timer.trigger(step);
                            times.push(step);
                        }
                        assert!(!timer.is_due(step) || !times.contains(&step), "step {step} twice");
                    }
                    let from = begin + u64::from(begins_with_trigger);
                    let expected: Vec<u64> = expected.iter().copied().filter(|&step| step >= from).collect();
                    assert_eq!(times, expected, "first {first}, begun at {begin}");
                }
            }
        }
        let timer = Timer::counted_from(1, Every::Secs(1e6));
        assert!(timer.is_due(17), "seconds begin with the process");
        assert!(!Timer::counted_from(0, Every::Steps(0)).is_due(0));
    }

    #[test]
    fn case_93_zero_means_never() {
        for never in [Every::Never, Every::Steps(0), Every::Secs(0.0)] {
            assert!(never.is_never() && never.to_string() == "never");
            assert!(times(never, 0..10).is_empty());
            never.check("saving").unwrap();
        }
    }

    #[test]
    fn what_has_passed() {
        let mut timer = Timer::new(Every::Steps(2));
        assert_eq!(timer.trigger(10), None);
        assert_eq!(timer.trigger(14).map(|passed| passed.steps), Some(4));
        assert_eq!(timer.last_step(), Some(14));
        timer.reset();
        assert!(timer.is_due(14));
    }

    #[test]
    fn periods_that_are_none() {
        for secs in [-1.0, f64::NAN, f64::INFINITY] {
            let error = Every::Secs(secs).check("save_checkpoints").unwrap_err().to_string();
            assert!(error.starts_with("save_checkpoints has a period of") && error.contains("Every::Never"), "{error}");
        }
    }
}
