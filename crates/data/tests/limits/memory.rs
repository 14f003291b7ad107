//! The most memory that the process held at once, and how often it asked for some.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Watching;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static CALLS: AtomicUsize = AtomicUsize::new(0);

fn grown(bytes: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        grown(new_size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// What a call took beyond what was held before it.
#[derive(Debug)]
pub struct Cost {
    /// The most bytes held at once.
    pub peak: usize,
    /// How often memory was asked for.
    pub allocations: usize,
}

/// A test's turn: while it is held, no other test allocates.
///
/// Every test of this binary takes it first, also one that measures nothing: the input it builds
/// would count in the measurement of another.
pub struct Turn(#[expect(dead_code, reason = "held until the test ends")] MutexGuard<'static, ()>);

impl Turn {
    pub fn take() -> Turn {
        static TURN: Mutex<()> = Mutex::new(());
        Turn(TURN.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Runs a function and measures it.
    pub fn watch<T>(&self, function: impl FnOnce() -> T) -> (T, Cost) {
        let (before, calls) = (HELD.load(Ordering::Relaxed), CALLS.load(Ordering::Relaxed));
        PEAK.store(before, Ordering::Relaxed);
        let result = function();
        let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
        (result, Cost { peak, allocations: CALLS.load(Ordering::Relaxed) - calls })
    }

    /// Runs a function that may hold no more than so many bytes.
    #[track_caller]
    pub fn within<T>(&self, bytes: usize, function: impl FnOnce() -> T) -> T {
        let (result, cost) = self.watch(function);
        assert!(cost.peak <= bytes, "held {} bytes at once, expected at most {bytes}", cost.peak);
        result
    }
}
