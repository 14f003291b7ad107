//! A training step in the steady state does not touch the heap, also when the batch size changes.
//!
//! A binary of its own: it counts the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand::prelude::*;

#[path = "../benches/models.rs"]
#[allow(dead_code, reason = "shared with the benchmarks")]
mod models;

use models::{Model, integers, uniform};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of steps with batches 128, 128, 37, 1, 0, 128, after a first step of 128 has grown everything.
fn allocations(model: &Model, threads: usize, feeds: impl Fn(usize) -> Result<Vec<Array>>) -> Result<usize> {
    let batches = [128, 128, 37, 1, 0, 128];
    let feeds: Vec<_> = batches.iter().map(|&n| feeds(n)).collect::<Result<_>>()?;
    let feeds: Vec<_> = feeds.iter().map(|values| model.feeds(values)).collect();
    let mut session = Session::with(&model.graph, Cpu::with_threads(threads), 1)?;
    let mut outputs = Vec::new();
    let fetches = [&model.train, &model.loss];
    session.run_into(&fetches, &feeds[0], &mut outputs)?;
    let mut fewest = usize::MAX;
    // The least of several rounds: what a step allocates shows in all of them, a thread of the pool that is still starting, or
    // the test runner itself, in one.
    for _ in 0..5 {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for batch in &feeds {
            session.run_into(&fetches, batch, &mut outputs)?;
        }
        fewest = fewest.min(ALLOCATIONS.load(Ordering::Relaxed) - before);
    }
    Ok(fewest)
}

#[test]
fn steps_do_not_allocate() {
    for threads in [1, 2] {
        let numbers = |n: usize| Ok(vec![uniform("x", &[n, 4])?, integers("y", &[n], 3)?]);
        assert_eq!(allocations(&models::iris(), threads, numbers).unwrap(), 0, "iris, {threads} threads");
        let numbers = |n: usize| Ok(vec![uniform("x", &[n, 4])?, uniform("y", &[n, 1])?]);
        assert_eq!(allocations(&models::linear(), threads, numbers).unwrap(), 0, "linear, {threads} threads");
        let images = |n: usize| Ok(vec![uniform("x", &[n, 28, 28, 1])?, integers("y", &[n], 10)?]);
        assert_eq!(allocations(&models::cnn(), threads, images).unwrap(), 0, "cnn, {threads} threads");
        let ids = |n: usize| Ok(vec![integers("ids", &[n, 8], 1_000)?, uniform("y", &[n, 1])?]);
        assert_eq!(allocations(&models::lookup(1_000, 32, 8), threads, ids).unwrap(), 0, "lookup, {threads} threads");
    }
}
