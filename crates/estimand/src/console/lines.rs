//! Log lines: a `tracing` subscriber that writes `INFO: message`.

use std::fmt::{self, Write};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{level, screen};

/// Writes events up to a level. Spans are ignored.
pub(super) struct Lines {
    level: fn() -> LevelFilter,
    write: fn(&str),
}

impl Lines {
    /// Writes to stderr, up to the current level.
    pub(super) fn to_screen() -> Lines {
        Lines { level: || level().filter(), write: screen::line }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= (self.level)()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some((self.level)())
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(format!("{}: ", event.metadata().level()));
        event.record(&mut line);
        (self.write)(&line.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        // Any number but 0: spans are not distinguished.
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A line being built: the message, then ` name=value` for each other field of the event.
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail. If the formatting of a value fails, it is cut short.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    static WRITTEN: Mutex<Vec<String>> = Mutex::new(Vec::new());

    #[test]
    fn lines_up_to_the_level_are_written() {
        let lines = Lines { level: || LevelFilter::INFO, write: |line| WRITTEN.lock().unwrap().push(line.to_string()) };
        tracing::subscriber::with_default(lines, || {
            let _span = tracing::info_span!("training").entered();
            tracing::info!("Saving checkpoints for {} into {}.", 7, "m/model.ckpt");
            tracing::warn!(n_rows = 3, file = "a.csv", "bad rows");
            tracing::debug!("not wanted");
            tracing::error!("NaN loss");
        });
        let expected = [
            "INFO: Saving checkpoints for 7 into m/model.ckpt.",
            "WARN: bad rows n_rows=3 file=a.csv",
            "ERROR: NaN loss",
        ];
        assert_eq!(*WRITTEN.lock().unwrap(), expected);
    }
}
