//! Delays of schedules. A signal ends a delay at once.

use std::cell::RefCell;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use estimand_tensor::{Error, ErrorKind, Result};

use crate::signal::Guard;

/// The longest time until a signal is noticed.
const SLICE: Duration = Duration::from_millis(50);
/// A longer delay is a mistake, such as milliseconds given as seconds.
const LONGEST_SECS: f64 = 365.0 * 24.0 * 3600.0;

/// Returns an error unless this is a number of seconds to wait.
pub(super) fn check(what: &str, secs: f64) -> Result<()> {
    if (0.0..=LONGEST_SECS).contains(&secs) {
        return Ok(());
    }
    Err(Error::config(format!("{what} is {secs}; expected a number of seconds from 0 to {LONGEST_SECS}"))
        .help("0 does not wait; one second is 1.0"))
}

/// How an experiment waits.
#[derive(Default)]
pub(super) enum Wait<'a> {
    /// It sleeps.
    #[default]
    Asleep,
    /// It calls a function with the number of seconds, for tests.
    Told(RefCell<Box<dyn FnMut(f64) + 'a>>),
}

impl Wait<'_> {
    /// Waits. A signal during that time is an error.
    pub(super) fn wait(&self, secs: f64) -> Result<()> {
        match self {
            Wait::Asleep => sleep(secs),
            Wait::Told(tell) => {
                (*tell.borrow_mut())(secs);
                Ok(())
            }
        }
    }
}

impl fmt::Debug for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wait::Asleep => "Asleep",
            Wait::Told(_) => "Told",
        })
    }
}

fn sleep(secs: f64) -> Result<()> {
    let signals = Guard::install()?;
    let (start, all) = (Instant::now(), Duration::from_secs_f64(secs));
    loop {
        interrupted(&signals)?;
        match all.checked_sub(start.elapsed()) {
            None | Some(Duration::ZERO) => return Ok(()),
            Some(rest) => thread::sleep(rest.min(SLICE)),
        }
    }
}

/// Returns an error after a signal.
pub(super) fn interrupted(signals: &Guard) -> Result<()> {
    let Some(signal) = signals.requested() else { return Ok(()) };
    let message = format!("the experiment was interrupted by {signal}");
    Err(Error::new(ErrorKind::Interrupted, message).help("run the program again to continue"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_is_a_number_of_seconds() {
        for (secs, is_fine) in [(0.0, true), (0.5, true), (-1.0, false), (f64::NAN, false), (f64::INFINITY, false)] {
            assert_eq!(check("delay", secs).is_ok(), is_fine, "{secs}");
        }
    }

    #[test]
    fn waits_at_least_so_long() {
        let start = Instant::now();
        Wait::Asleep.wait(0.06).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(60));
    }
}
