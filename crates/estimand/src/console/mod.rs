//! What people see on their terminal: log lines, a progress bar, tables of metrics. All of it goes
//! to stderr.
//!
//! The library logs through `tracing` and is silent until the program says who listens.
//! [`verbosity`] is the short way: lines as TensorFlow logs them, and a bar while stderr is a
//! terminal. A program with a `tracing` subscriber of its own gets the same lines.
//!
//! ```
//! use estimand::console::{self, Level};
//!
//! console::verbosity(Level::Info);
//! ```

mod lines;
mod progress;
mod screen;
mod sliced;
mod table;

use std::sync::atomic::{AtomicU8, Ordering};

use tracing::callsite::rebuild_interest_cache;
use tracing::level_filters::LevelFilter;

pub use progress::Progress;
pub(crate) use sliced::{slice_of, sliced};
pub use table::Table;
pub(crate) use table::number;

/// How much is said; each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing.
    Off,
    /// What went wrong.
    Error,
    /// And what may be wrong.
    Warn,
    /// And how training goes, with a bar on a terminal.
    Info,
    /// And details for whoever looks for a bug.
    Debug,
}

impl Level {
    const ALL: [Level; 5] = [Level::Off, Level::Error, Level::Warn, Level::Info, Level::Debug];

    fn filter(self) -> LevelFilter {
        match self {
            Level::Off => LevelFilter::OFF,
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
        }
    }
}

/// The level in force, as its place in `Level::ALL`.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Sets how much is said on stderr, from now on and in all threads. By default, nothing.
///
/// If the program has installed a `tracing` subscriber, lines go there and it decides which; the
/// level then only says whether there is a bar.
pub fn verbosity(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
    // Refused if there is a subscriber already: ours from an earlier call, or the program's own.
    let _ = tracing::subscriber::set_global_default(lines::Lines::to_screen());
    // Whether a line is wanted is remembered where it is written; that must be asked again.
    rebuild_interest_cache();
}

/// The level in force.
fn level() -> Level {
    let place = usize::from(LEVEL.load(Ordering::Relaxed));
    Level::ALL.get(place).copied().unwrap_or(Level::Off)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_found_by_their_place() {
        for (place, level) in Level::ALL.into_iter().enumerate() {
            assert_eq!(place, level as usize);
        }
        assert!(Level::ALL.is_sorted() && Level::ALL.map(Level::filter).is_sorted());
    }
}
