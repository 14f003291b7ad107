//! Runs programs: compiled programs, their host parts, and sessions.
//!
//! [`Compiled`] is a program whose parts are ready to run: the host's parts before and after the
//! step ([`HostProgram`]), and the step, which an executor has compiled. A [`Session`] holds the
//! state of a graph's variables between runs.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod compiled;
mod host;
mod session;
mod values;

pub use compiled::Compiled;
pub use host::HostProgram;
pub use session::{Eval, Session};
pub use values::{replace_values, saved_variables};
