//! Log lines on stderr: `[time level] message`.

use std::fmt::{Debug, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Writes events of this server and of the models' readers.
struct Lines {
    next_span: AtomicU64,
}

/// Begins to log.
pub(crate) fn start() {
    // Only a second call could fail.
    let _ = tracing::subscriber::set_global_default(Lines { next_span: AtomicU64::new(1) });
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.0, "{value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= LevelFilter::INFO && metadata.target().starts_with("estimand")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.next_span.fetch_add(1, Ordering::Relaxed))
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let line =
            format!("[{}.{:03} {}] {}\n", now.as_secs(), now.subsec_millis(), event.metadata().level(), message.0);
        // There is nobody to tell that stderr is closed.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
