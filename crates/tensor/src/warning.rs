//! Warnings: they go to the program's `tracing` subscriber, or to stderr if there is none.

use std::fmt;
use std::io::Write;

use tracing::dispatcher::get_default;
use tracing::subscriber::NoSubscriber;

/// Logs a warning with the arguments of `format!`. It goes to stderr if the program has no
/// `tracing` subscriber.
#[macro_export]
macro_rules! warn {
    ($($message:tt)*) => {{
        $crate::tracing::warn!($($message)*);
        $crate::warn_without_subscriber(::std::format_args!($($message)*));
    }};
}

/// Writes a warning to stderr if this thread has no `tracing` subscriber.
#[doc(hidden)]
pub fn warn_without_subscriber(message: fmt::Arguments<'_>) {
    if get_default(|subscriber| subscriber.is::<NoSubscriber>()) {
        // A closed stderr is no reason to fail.
        let _ = writeln!(std::io::stderr().lock(), "WARN: {message}");
    }
}
