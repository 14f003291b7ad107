//! Captures the log lines of a piece of code, for tests.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Metadata, Subscriber};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            write!(self.0, "{value:?}").unwrap();
        }
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &Event<'_>) {
        let mut message = Message(format!("{}: ", event.metadata().level()));
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The result of some code, and the lines that this thread has logged meanwhile.
pub fn logged<T>(code: impl FnOnce() -> T) -> (T, Vec<String>) {
    // While only one subscriber exists, `tracing` asks that of the thread which reaches a log line
    // first, and a thread without one turns the line off for all. So there is always a second one.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(Lines::default()));
    let lines = Lines::default();
    let result = tracing::subscriber::with_default(lines.clone(), code);
    let lines = lines.0.lock().unwrap().clone();
    (result, lines)
}
