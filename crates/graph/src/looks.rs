//! Counts what passes look at, so that tests can tell work that grows with a graph from work that
//! grows with its square.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Notes that something was looked at this many times: nodes, steps, symbols, entries of a list.
/// Called where a graph is built, rewritten, planned or bound to new sizes, never inside a kernel.
pub fn look(n: usize) {
    LOOKS.set(LOOKS.get() + n as u64);
}

/// How often this thread has looked at something.
pub fn looks() -> u64 {
    LOOKS.get()
}
