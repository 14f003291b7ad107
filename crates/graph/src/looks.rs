//! A counter of the items that passes visit. Tests use it to tell work that grows linearly with a
//! graph from work that grows quadratically.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Counts `n` visited items: nodes, steps, symbols, entries of a list. Called where a graph is
/// built, rewritten, planned or bound to new sizes, never inside a kernel.
pub fn look(n: usize) {
    LOOKS.set(LOOKS.get() + n as u64);
}

/// Returns how many items this thread has visited.
pub fn looks() -> u64 {
    LOOKS.get()
}
