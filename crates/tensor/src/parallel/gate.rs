//! The gate that workers pass through to join a run.
//!
//! [`State`] is the gate as a plain value with its transitions; [`Gate`] applies them to memory
//! that threads share. The test in `model` visits every interleaving of the same transitions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// `run number << 32 | OPEN | workers inside`.
///
/// A worker may enter only while the gate is open. The caller closes it and waits until no worker
/// is inside before the run's data is dropped. A worker that wakes up late finds the gate closed
/// and has missed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct State(u64);

const OPEN: u64 = 1 << 31;
const INSIDE: u64 = OPEN - 1;

impl State {
    /// The number of the run that was opened last; it wraps around after 2^32.
    pub(super) fn run(self) -> u64 {
        self.0 >> 32
    }

    /// Whether a run other than `seen` is open.
    pub(super) fn has_news(self, seen: u64) -> bool {
        self.0 & OPEN != 0 && self.run() != seen
    }

    /// The next run, open and empty. The gate must be closed and empty before.
    pub(super) fn opened(self) -> State {
        debug_assert_eq!(self.0 & (OPEN | INSIDE), 0, "a run opens while another goes on");
        State((self.run().wrapping_add(1) << 32) | OPEN)
    }

    /// The state with one more worker inside, if the worker may enter. `seen` is the last run it
    /// took part in.
    pub(super) fn entered(self, seen: u64) -> Option<State> {
        self.has_news(seen).then(|| State(self.0 + 1))
    }

    /// The state with one worker less inside.
    pub(super) fn left(self) -> State {
        debug_assert_ne!(self.0 & INSIDE, 0, "a worker leaves that never came in");
        State(self.0 - 1)
    }

    /// The state in which no worker may enter any more.
    pub(super) fn closed(self) -> State {
        State(self.0 & !OPEN)
    }

    /// Whether no worker is inside.
    pub(super) fn is_empty(self) -> bool {
        self.0 & INSIDE == 0
    }
}

/// A [`State`] that threads share.
pub(super) struct Gate(AtomicU64);

impl Gate {
    pub(super) fn new() -> Gate {
        Gate(AtomicU64::new(State::default().0))
    }

    fn change(&self, order: Ordering, next: impl Fn(State) -> State) {
        let mut state = self.0.load(Ordering::Relaxed);
        while let Err(found) = self.0.compare_exchange_weak(state, next(State(state)).0, order, Ordering::Relaxed) {
            state = found;
        }
    }

    /// Whether a run other than `seen` is open.
    pub(super) fn has_news(&self, seen: u64) -> bool {
        State(self.0.load(Ordering::SeqCst)).has_news(seen)
    }

    /// Enters the open run, unless it is `seen`. Returns its number.
    pub(super) fn enter(&self, seen: u64) -> Option<u64> {
        let state = State(self.0.load(Ordering::Relaxed));
        let next = state.entered(seen)?;
        // A failed exchange means that the gate changed; the worker's loop tries again. Acquire:
        // the caller's writes before it opened the gate are visible inside.
        let exchanged = self.0.compare_exchange(state.0, next.0, Ordering::Acquire, Ordering::Relaxed);
        exchanged.ok().map(|_| state.run())
    }

    /// Leaves the run. Release: the worker's writes are visible to the caller that finds the gate
    /// empty.
    pub(super) fn leave(&self) {
        self.change(Ordering::Release, State::left);
    }

    /// Opens the next run. Only the caller that holds the pool opens the gate, so it is closed and
    /// empty, and a plain store suffices.
    pub(super) fn open(&self) {
        let state = State(self.0.load(Ordering::Relaxed));
        self.0.store(state.opened().0, Ordering::SeqCst);
    }

    /// Closes the gate, and returns once all workers have left.
    pub(super) fn close(&self) {
        self.change(Ordering::Relaxed, State::closed);
        let mut spins = 0_u32;
        // Workers change the gate only by read-modify-write, so this load sees the writes of all
        // workers that have left.
        while !State(self.0.load(Ordering::Acquire)).is_empty() {
            spins = spins.wrapping_add(1);
            // With more threads than cores, the worker that this waits for may need this core.
            if spins.is_multiple_of(1024) { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}
