//! The body of the fuzz target for checkpoints, fed with damaged copies of what TensorFlow wrote:
//! no panic, no hang, no huge allocation.
//!
//! A binary of its own: it watches the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::read;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "../../../fuzz/src/bundle.rs"]
mod bundle;
#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/saved_model.rs"]
mod saved_model;
#[path = "../../../fuzz/src/snappy.rs"]
mod snappy;

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

/// The indices that TensorFlow wrote, as files, as blocks and as pairs of keys and values.
fn seeds() -> Vec<Vec<u8>> {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures");
    let names = [
        "bundle_tf.index",
        "bundle_tf_names.index",
        "bundle_tf_shards.index",
        "bundle_tf_objects.index",
        "bundle_snappy.index",
    ];
    let mut seeds = Vec::new();
    for name in names {
        let path = fixtures.join(name);
        let file = read(&path).unwrap();
        let pairs = estimand_checkpoint::sstable::read(&path, &file, &Default::default()).unwrap();
        let put = |out: &mut Vec<u8>, bytes: &[u8]| {
            out.push(u8::try_from(bytes.len()).unwrap());
            out.extend(bytes);
        };
        let mut encoded = vec![bundle::PAIRS];
        for (key, value) in &pairs {
            put(&mut encoded, key);
            put(&mut encoded, value);
        }
        seeds.push(encoded);
        // The only data block lies before the metaindex, whose place is the first number of the 48
        // bytes of the footer; five bytes, compression and checksum, are between them.
        let metaindex = estimand_wire::varint::take(&mut &file[file.len() - 48..]).unwrap() as usize;
        seeds.push([&[bundle::BLOCK], &file[..metaindex - 5]].concat());
        seeds.push([&[bundle::FILE], file.as_slice()].concat());
    }
    seeds
}

/// Tests take turns, so that each watches its own allocations.
static TURN: Mutex<()> = Mutex::new(());

/// Runs a check over damaged seeds; none of its allocations may be larger than `limit`.
fn survive(check: impl Fn(&[u8]), seeds: &[Vec<u8>], n: usize, limit: usize) {
    let turn = TURN.lock();
    seeds.iter().for_each(|seed| check(seed));
    LARGEST.store(0, Ordering::Relaxed);
    let mut dice = Dice::new(3);
    for _ in 0..n {
        check(&damaged(seeds, &mut dice));
    }
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= limit, "an allocation of {largest} bytes");
    drop(turn);
}

/// The stored seeds of a fuzz target, in the order of their names.
fn stored(target: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| read(path).unwrap()).collect()
}

#[test]
fn damaged_checkpoints() {
    survive(bundle::check, &seeds(), 20_000, 1 << 20);
}

#[test]
fn damaged_snappy_blocks() {
    survive(snappy::check, &stored("snappy"), 20_000, 1 << 20);
}

#[test]
fn damaged_saved_models() {
    survive(saved_model::check, &stored("saved_model"), 1_000, 64 << 20);
}
