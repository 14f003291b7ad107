//! The bodies of the fuzz targets, fed with damaged copies of what TensorFlow wrote: no panic, no
//! hang, no huge allocation.
//!
//! A binary of its own: it watches the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::read;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "../../../fuzz/src/event.rs"]
mod event;
#[path = "../../../fuzz/src/example.rs"]
mod example;
#[path = "../../../fuzz/src/graph_def.rs"]
mod graph_def;
#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/state.rs"]
mod state;

use mutate::{Dice, damaged};

struct Watching;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        LARGEST.fetch_max(new_size, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// Tests take turns, so that each watches its own allocations.
static TURN: Mutex<()> = Mutex::new(());

/// Runs a check over damaged seeds; none of its allocations may be larger than `limit`.
fn survive(check: impl Fn(&[u8]), seeds: impl FnOnce() -> Vec<Vec<u8>>, n: usize, seed: u64, limit: usize) {
    let turn = TURN.lock();
    let seeds = seeds();
    LARGEST.store(0, Ordering::Relaxed);
    let mut dice = Dice::new(seed);
    for _ in 0..n {
        check(&damaged(&seeds, &mut dice));
    }
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= limit, "an allocation of {largest} bytes, the limit is {limit}");
    drop(turn);
}

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures").join(name)
}

/// All rows of the parsers' fixture that are not long.
fn rows() -> Vec<Vec<u8>> {
    let rows = estimand_fixture::cases("example").into_iter().flat_map(|case| case.strings("rows"));
    rows.filter(|row| row.len() < 500).collect()
}

#[test]
fn damaged_examples() {
    // A few hundred bytes of input: a megabyte would be a length that was believed.
    survive(example::check, rows, 30_000, 1, 1 << 20);
}

#[test]
fn examples_cut_at_every_byte() {
    let turn = TURN.lock();
    for row in rows().iter().step_by(3) {
        for end in 0..row.len() {
            example::check(&row[..end]);
        }
    }
    drop(turn);
}

#[test]
fn damaged_events() {
    let seeds = event::seeds(&read(fixture("wire_events.tfevents")).unwrap());
    assert_eq!(seeds.len(), 9);
    survive(event::check, || seeds, 20_000, 3, 1 << 20);
}

#[test]
fn damaged_states() {
    let names = ["wire_checkpoint_state.txt", "wire_checkpoint_state_odd.txt"];
    survive(state::check, || names.map(|name| read(fixture(name)).unwrap()).into(), 50_000, 5, 64 << 10);
}

#[test]
fn damaged_graphs() {
    let seeds: Vec<Vec<u8>> = ["wire_graph.pb", "wire_saved_model_v1.pb", "wire_saved_model_v2.pb"]
        .map(|name| read(fixture(name)).unwrap())
        .into();
    // A constant may repeat its last value up to a limit that is its own.
    survive(graph_def::check, || seeds, 10_000, 2, estimand_wire::REPETITION_LIMIT);
}
