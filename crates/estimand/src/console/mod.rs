//! Terminal output on stderr: log lines, a progress bar, tables of metrics.
//!
//! The library logs through `tracing`. Until the program installs a subscriber, warnings go to
//! stderr, and other lines go nowhere. [`verbosity`] is the short way to get more, or nothing:
//! TensorFlow's log lines, and a progress bar if stderr is a terminal. A program with its own
//! `tracing` subscriber gets the same lines.
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

/// The log level; each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No output.
    Off,
    /// Errors.
    Error,
    /// Also warnings.
    Warn,
    /// Also the progress of training, with a bar on a terminal.
    Info,
    /// Also details for debugging.
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

/// The current level, as an index into `Level::ALL`.
static LEVEL: AtomicU8 = AtomicU8::new(Level::Warn as u8);

/// Sets the log level on stderr, from now on and in all threads. By default, [`Level::Warn`].
///
/// If the program has installed a `tracing` subscriber, lines go there and it filters them. The
/// level then only decides whether there is a progress bar.
pub fn verbosity(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
    // Fails if there is a subscriber already: ours from an earlier call, or the program's own.
    let _ = tracing::subscriber::set_global_default(lines::Lines::to_screen());
    // `tracing` caches at each call site whether a line is enabled; reset these caches.
    rebuild_interest_cache();
}

/// Returns the current level.
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
