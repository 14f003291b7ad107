//! The gate that workers pass to take part in a run.
//!
//! [`State`] is the gate as a plain value with its transitions; [`Gate`] applies them to memory
//! that threads share. The model in `model` visits every interleaving of the same transitions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// `run number << 32 | OPEN | workers inside`.
///
/// Only while the gate is open may a worker step in. The caller closes it and waits until nobody is
/// inside before the run's data dies. A worker that wakes up late finds it closed and has missed
/// nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct State(u64);

const OPEN: u64 = 1 << 31;
const INSIDE: u64 = OPEN - 1;

impl State {
    /// The number of the run that was opened last; it begins anew after 2^32.
    pub(super) fn run(self) -> u64 {
        self.0 >> 32
    }

    /// Whether a run is open that is not the one `seen`.
    pub(super) fn has_news(self, seen: u64) -> bool {
        self.0 & OPEN != 0 && self.run() != seen
    }

    /// The next run, open and with nobody inside. The gate is closed and empty before.
    pub(super) fn opened(self) -> State {
        debug_assert_eq!(self.0 & (OPEN | INSIDE), 0, "a run opens while another goes on");
        State((self.run().wrapping_add(1) << 32) | OPEN)
    }

    /// One worker more inside, if it may come in: it has seen the run `seen` before.
    pub(super) fn entered(self, seen: u64) -> Option<State> {
        self.has_news(seen).then(|| State(self.0 + 1))
    }

    /// One worker less inside.
    pub(super) fn left(self) -> State {
        debug_assert_ne!(self.0 & INSIDE, 0, "a worker leaves that never came in");
        State(self.0 - 1)
    }

    /// Lets nobody in any more.
    pub(super) fn closed(self) -> State {
        State(self.0 & !OPEN)
    }

    /// Whether nobody is inside.
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

    /// Whether run `seen` is over and another is open.
    pub(super) fn has_news(&self, seen: u64) -> bool {
        State(self.0.load(Ordering::SeqCst)).has_news(seen)
    }

    /// Steps into the open run, unless it is the one already `seen`; returns its number.
    pub(super) fn enter(&self, seen: u64) -> Option<u64> {
        let state = State(self.0.load(Ordering::Relaxed));
        let next = state.entered(seen)?;
        // A failed exchange means that the gate moved: the worker's loop comes back. Acquire: what
        // the caller wrote before it opened the gate is seen inside.
        let exchanged = self.0.compare_exchange(state.0, next.0, Ordering::Acquire, Ordering::Relaxed);
        exchanged.ok().map(|_| state.run())
    }

    /// Release: what the worker did inside is seen by the caller that finds the gate empty.
    pub(super) fn leave(&self) {
        self.change(Ordering::Release, State::left);
    }

    /// Only the caller that has the pool opens the gate, so it is closed and empty, and a plain
    /// store does.
    pub(super) fn open(&self) {
        let state = State(self.0.load(Ordering::Relaxed));
        self.0.store(state.opened().0, Ordering::SeqCst);
    }

    /// Lets nobody in any more and returns once everybody is out.
    pub(super) fn close(&self) {
        self.change(Ordering::Relaxed, State::closed);
        let mut spins = 0_u32;
        // Workers change the gate only by read-modify-write, so this load sees what all that have
        // left did before.
        while !State(self.0.load(Ordering::Acquire)).is_empty() {
            spins = spins.wrapping_add(1);
            // With more threads than cores the worker waited for may need this very core.
            if spins.is_multiple_of(1024) { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}
