//! Ctrl-C and SIGTERM as a flag that the training loop reads between steps.
//!
//! The first signal requests the loop to save and end. A Ctrl-C during that time ends the process
//! at once. The previous handlers are restored when the last [`Guard`] is dropped.
//!
//! ```
//! use estimand::signal::Guard;
//!
//! let guard = Guard::install()?;
//! for step in 0..10 {
//!     if let Some(signal) = guard.requested() {
//!         println!("{signal} at step {step}: saving");
//!         break;
//!     }
//! }
//! # Ok::<(), estimand::prelude::Error>(())
//! ```

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
#[cfg_attr(not(any(unix, windows)), path = "none.rs")]
mod system;

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use estimand_tensor::{Error, Result};

/// The requested signal: 0, or one of `Signal`'s codes. The handler writes it and needs nothing
/// else.
static REQUESTED: AtomicU8 = AtomicU8::new(0);

/// The number of guards, and the handlers to restore when the last one is dropped.
static GUARDS: Mutex<(usize, Option<system::Previous>)> = Mutex::new((0, None));

/// The reason why a process was requested to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, which schedulers send; on Windows, the closing of the console.
    Terminate,
}

impl Signal {
    const fn code(self) -> u8 {
        match self {
            Signal::Interrupt => 1,
            Signal::Terminate => 2,
        }
    }

    /// Returns the exit code of a process that a signal ended, by the convention of shells: 130 or
    /// 143.
    pub fn exit_code(self) -> i32 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Signal::Interrupt => "Ctrl-C",
            Signal::Terminate => "SIGTERM",
        })
    }
}

/// Turns signals into requests while it is alive. Guards may be nested and live in several threads;
/// all see a request.
#[derive(Debug)]
pub struct Guard(());

impl Guard {
    /// Installs the handlers. A signal that the process was started to ignore, as in the background
    /// of a script, stays ignored.
    pub fn install() -> Result<Guard> {
        let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
        if guards.0 == 0 {
            REQUESTED.store(0, Ordering::SeqCst);
            let previous = system::install().map_err(|e| {
                Error::unsupported(format!("the handlers for Ctrl-C and SIGTERM cannot be installed: {e}"))
            })?;
            guards.1 = Some(previous);
        }
        guards.0 += 1;
        Ok(Guard(()))
    }

    /// Returns the signal received since the first guard was installed. Costs one load from memory.
    pub fn requested(&self) -> Option<Signal> {
        let code = REQUESTED.load(Ordering::Relaxed);
        [Signal::Interrupt, Signal::Terminate].into_iter().find(|signal| signal.code() == code)
    }
}

/// Returns the signal received while a guard is alive, for code that has no guard of its own.
pub(crate) fn requested() -> Option<Signal> {
    let guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
    // Without a guard, the flag may be that of an earlier one.
    if guards.0 == 0 { None } else { Guard::requested(&NO_GUARD) }
}

/// Reads the flag. It is never dropped, so it counts as no guard.
static NO_GUARD: Guard = Guard(());

impl Drop for Guard {
    fn drop(&mut self) {
        let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
        guards.0 -= 1;
        if guards.0 == 0
            && let Some(previous) = guards.1.take()
        {
            system::restore(&previous);
        }
    }
}

/// Records a request. Returns whether the process must end at once, because Ctrl-C came after an
/// earlier request. It only touches an atomic, as a handler must. A second SIGTERM changes nothing:
/// some supervisors send it to the process and again to its group.
fn request(signal: Signal) -> bool {
    let first = REQUESTED.compare_exchange(0, signal.code(), Ordering::SeqCst, Ordering::SeqCst).is_ok();
    !first && signal == Signal::Interrupt
}

#[cfg(all(test, unix))]
mod tests {
    //! Signals affect the whole process, so each scenario runs in a child: this test binary again,
    //! running the ignored test below.

    use std::env;
    use std::io::{self, BufRead, BufReader, Write};
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    const SCENARIO: &str = "ESTIMAND_SIGNAL_SCENARIO";

    struct Process {
        child: Child,
        lines: io::Lines<BufReader<ChildStdout>>,
    }

    impl Process {
        fn start(scenario: &str) -> Process {
            let mut child = Command::new(env::current_exe().unwrap())
                .args(["--exact", "signal::tests::child", "--ignored", "--nocapture"])
                .env(SCENARIO, scenario)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines();
            Process { child, lines }
        }

        fn wait_for(&mut self, text: &str) {
            assert!(self.lines.any(|line| line.unwrap().contains(text)), "the child never said `{text}`");
        }

        fn signal(&self, number: libc::c_int) {
            // SAFETY: sends a signal to our own child, which has not been waited for.
            assert_eq!(unsafe { libc::kill(self.child.id().cast_signed(), number) }, 0);
        }

        fn end(mut self) -> ExitStatus {
            self.child.wait().unwrap()
        }
    }

    fn say(text: &str) {
        // Start a new line: the harness has already written the test's name.
        io::stdout().write_all(format!("\n{text}\n").as_bytes()).unwrap();
    }

    fn until(mut done: impl FnMut() -> bool) {
        let started = Instant::now();
        while !done() {
            assert!(started.elapsed() < Duration::from_secs(20), "nothing happened");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    #[ignore = "other tests start it as a process"]
    fn child() {
        // A shell that runs the tests in the background makes them ignore Ctrl-C.
        // SAFETY: the default needs no handler.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        match env::var(SCENARIO).as_deref() {
            Ok("requests") => {
                let outer = Guard::install().unwrap();
                drop(Guard::install().unwrap());
                say("ready");
                until(|| outer.requested().is_some());
                say(&format!("requested: {}", outer.requested().unwrap()));
                until(|| false);
            }
            Ok("restored") => {
                let guard = Guard::install().unwrap();
                say("ready");
                until(|| guard.requested().is_some());
                drop(guard);
                // A later guard does not see requests of an earlier one.
                assert_eq!(Guard::install().unwrap().requested(), None);
                say("dropped");
                until(|| false);
            }
            Ok("ignored") => {
                // SAFETY: ignoring a signal needs no handler.
                unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
                let guard = Guard::install().unwrap();
                say("ready");
                until(|| guard.requested() == Some(Signal::Terminate));
                say("still here");
            }
            other => panic!("scenario {other:?}"),
        }
    }

    #[test]
    fn the_first_ctrl_c_is_a_request_and_the_second_ends_at_once() {
        let mut process = Process::start("requests");
        process.wait_for("ready");
        process.signal(libc::SIGINT);
        process.wait_for("requested: Ctrl-C");
        process.signal(libc::SIGINT);
        assert_eq!(process.end().code(), Some(130));
    }

    #[test]
    fn sigterm_is_a_request_however_often_it_comes() {
        let mut process = Process::start("requests");
        process.wait_for("ready");
        process.signal(libc::SIGTERM);
        process.wait_for("requested: SIGTERM");
        process.signal(libc::SIGTERM);
        thread::sleep(Duration::from_millis(50));
        assert!(process.child.try_wait().unwrap().is_none(), "a second SIGTERM must not end it");
        process.signal(libc::SIGINT);
        assert_eq!(process.end().code(), Some(130));
    }

    #[test]
    fn what_was_there_before_is_put_back() {
        let mut process = Process::start("restored");
        process.wait_for("ready");
        process.signal(libc::SIGINT);
        process.wait_for("dropped");
        process.signal(libc::SIGINT);
        assert_eq!(process.end().signal(), Some(libc::SIGINT), "the default again: the signal ends it");
    }

    #[test]
    fn an_ignored_signal_stays_ignored() {
        let mut process = Process::start("ignored");
        process.wait_for("ready");
        process.signal(libc::SIGINT);
        process.signal(libc::SIGINT);
        process.signal(libc::SIGTERM);
        process.wait_for("still here");
        assert!(process.end().success());
    }
}
