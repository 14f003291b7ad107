//! The bodies of the fuzz targets, fed with damaged copies of real files: no panic, no hang, no
//! huge allocation.
//!
//! A binary of its own: it watches the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "../../../fuzz/src/archive.rs"]
mod archive;
#[path = "../../../fuzz/src/csv.rs"]
mod csv;
#[path = "../../../fuzz/src/files.rs"]
mod files;
#[path = "../../../fuzz/src/idx.rs"]
mod idx;
#[cfg(feature = "image")]
#[path = "../../../fuzz/src/image.rs"]
mod image;
#[path = "../../../fuzz/src/mutate.rs"]
mod mutate;
#[path = "../../../fuzz/src/npy.rs"]
mod npy;
#[path = "../../../fuzz/src/packed.rs"]
mod packed;
#[path = "../../../fuzz/src/position.rs"]
mod position;
#[path = "../../../fuzz/src/schema.rs"]
mod schema;
#[path = "../../../fuzz/src/vocabulary.rs"]
mod vocabulary;

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
fn survive(check: impl Fn(&[u8]), seeds: impl FnOnce() -> Vec<Vec<u8>>, n: usize, limit: usize) {
    let turn = TURN.lock();
    let seeds = seeds();
    LARGEST.store(0, Ordering::Relaxed);
    let mut dice = Dice::new(4);
    for _ in 0..n {
        check(&damaged(&seeds, &mut dice));
    }
    let largest = LARGEST.load(Ordering::Relaxed);
    assert!(largest <= limit, "an allocation of {largest} bytes, the limit is {limit}");
    drop(turn);
}

/// The files of a fixture.
fn files_of(fixture: &str) -> Vec<Vec<u8>> {
    let cases = estimand_fixture::cases(fixture);
    cases.iter().filter(|case| case.has("file")).map(|case| case.bytes("file")).collect()
}

#[test]
fn damaged_npy_and_npz() {
    survive(npy::check, || files_of("array_files"), 200_000, 64 << 10);
}

/// What a header says of sizes is believed as far as the file could hold it: 1,032 times its
/// length.
#[cfg(feature = "image")]
#[test]
fn damaged_png_and_jpeg() {
    survive(image::check, || files_of("images"), 10_000, 16 << 20);
}

#[test]
fn damaged_idx_and_cifar10() {
    let matrix = [&[0, 0, 0x0c, 2, 0, 0, 0, 4, 0, 0, 0, 6][..], &[7; 96]].concat();
    let bytes = [&[0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 3][..], &[1; 30]].concat();
    let doubles = [&[0, 0, 0x0e, 1, 0, 0, 0, 2][..], &[0x40; 16]].concat();
    survive(idx::check, || vec![matrix, bytes, doubles], 200_000, 64 << 10);
    survive(idx::check, || vec![vec![3; 2 * 3073]], 2_000, 64 << 10);
}

#[test]
fn damaged_csv_text_and_tfrecord() {
    let csv = b"a,b\n1,2\n\"x, \"\"y\"\"\",3\r\n4,\n5,six\n".to_vec();
    let mut writer = estimand_wire::record::RecordWriter::new(Vec::new());
    for i in 0..3 {
        let example = estimand_wire::ExampleBuilder::new().strings("a", ["x"]).ints("b", &[i]).build();
        writer.write(&example).unwrap();
    }
    survive(files::check, || vec![csv, writer.into_inner()], 1_000, 2 << 20);
}

/// The stored seeds of a fuzz target, in the order of their names.
fn stored(target: &str) -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/").to_string() + target;
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn damaged_archives() {
    survive(archive::check, || stored("archive"), 50_000, 2 << 20);
}

/// The limits of the target end at 1 MiB, and a vector grows to twice as much.
#[test]
fn damaged_packed_files() {
    assert!(
        [packed::GZIP, packed::ZLIB, packed::ZSTD].iter().all(|mode| stored("packed").iter().any(|s| s[0] == *mode))
    );
    survive(packed::check, || stored("packed"), 1_000, 8 << 20);
}

#[test]
fn damaged_headers_of_csv() {
    survive(csv::check, || stored("csv"), 1_000, 4 << 20);
}

#[test]
fn damaged_schemas() {
    survive(schema::check, || stored("schema"), 5_000, 512 << 20);
}

#[test]
fn damaged_vocabularies() {
    survive(vocabulary::check, || stored("vocabulary"), 1_000, 8 << 20);
}

#[test]
fn damaged_positions() {
    survive(position::check, position::seeds, 40_000, 64 << 10);
}
