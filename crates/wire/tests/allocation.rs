//! Parsing allocates for the columns as they grow, not for the rows.
//!
//! A binary of its own: it counts the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand_tensor::{Array, DType, FeatureSpec};
use estimand_wire::example::{ExampleBuilder, ExampleParser};

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

#[test]
fn rows_do_not_allocate() {
    let parser = ExampleParser::new([
        ("age", FeatureSpec::dense(DType::I64, [])),
        ("hours", FeatureSpec::dense_or(Array::from(40.0f32))),
        ("job", FeatureSpec::dense(DType::Str, [])),
        ("tags", FeatureSpec::ragged(DType::Str)),
    ])
    .unwrap();
    let rows: Vec<Vec<u8>> = (0..4096)
        .map(|i| ExampleBuilder::new().ints("age", &[i]).strings("job", ["clerk"]).strings("tags", ["a", "b"]).build())
        .collect();
    let allocations = |n: usize| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        parser.parse(&rows[..n]).unwrap();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    // Sixteen times the rows: what is not reserved in advance (the bytes of two features, the
    // offsets of one) doubles four times, once more where the borders fall badly.
    let (few, many) = (allocations(256), allocations(4096));
    assert!(many <= few + 3 * 5, "{few} allocations for 256 rows, {many} for 4,096");
}
