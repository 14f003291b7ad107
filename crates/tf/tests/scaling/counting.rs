//! Counts the heap of the calling thread, and what the passes look at.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Instant;

use estimand_testing::looks;

struct Counting;

thread_local! {
    // Constants without a destructor: the allocator may use them at any time.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    BYTES.set(BYTES.get() + bytes as u64);
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        // SAFETY: passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a piece of work cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Nodes, steps, symbols and list entries that were looked at.
    pub looks: u64,
    pub allocations: u64,
    pub bytes: u64,
    pub seconds: f64,
}

/// Does something and counts what it cost in this thread.
pub fn counted<T>(f: impl FnOnce() -> T) -> (T, Work) {
    let now = || (looks(), ALLOCATIONS.get(), BYTES.get());
    let (before, clock) = (now(), Instant::now());
    let result = f();
    let after = now();
    let work = Work {
        looks: after.0 - before.0,
        allocations: after.1 - before.1,
        bytes: after.2 - before.2,
        seconds: clock.elapsed().as_secs_f64(),
    };
    (result, work)
}
