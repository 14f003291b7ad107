//! A dropped estimator releases its memory: on the heap, and as the system counts it.
//!
//! It is a separate binary because it counts the bytes of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand::prelude::*;

struct Counting;

/// Bytes on the heap.
static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        LIVE.fetch_add(new_size, Ordering::Relaxed);
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const WIDTH: usize = 256;

/// Bytes of memory that the system counts as this process's; 0 where it does not say.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

/// Builds an estimator of about 1.6 MB of weights, moments included, trains and evaluates with it,
/// and drops it.
fn use_one(number: usize) -> Result<()> {
    let model = |cx: &ModelFnContext<'_>| {
        let hidden = Dense::new(2 * WIDTH).relu().apply(&cx.feature("x"));
        let logits = Dense::new(3).apply(&hidden);
        let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
        Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Adam::default(), 0.01)))
    };
    let folder = std::env::temp_dir().join(format!("estimand-dropped-{}-{number}", std::process::id()));
    let config = RunConfig::new().tf_random_seed(1).threads(2);
    let estimator = Estimator::new(model).config(config).model_dir(&folder).build()?;
    let rows = [("x", Array::from_vec([64, WIDTH], vec![0.5_f32; 64 * WIDTH])?), ("y", Array::from(vec![1_i64; 64]))];
    let data = Dataset::from_arrays(rows).label("y").batch(32).drop_remainder();
    estimator.train(TrainSpec::new(data.clone().repeat_forever()).steps(2))?;
    estimator.evaluate(EvalSpec::new(data))?;
    drop(estimator);
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}

#[test]
fn memory_of_dropped_estimators_is_returned() {
    // The first ones fill what stays: the threads of the process's pool, their stacks, tables made
    // once.
    (0..5).for_each(|number| use_one(number).unwrap());
    let (live, memory) = (LIVE.load(Ordering::Relaxed), resident());
    let n = 45;
    (5..5 + n).for_each(|number| use_one(number).unwrap());
    let grown = LIVE.load(Ordering::Relaxed).saturating_sub(live);
    let resident_grown = resident().saturating_sub(memory);
    println!("{n} estimators: {grown} bytes more on the heap, {resident_grown} bytes more of memory");
    // Each has some megabytes while it lives. What they leave behind all together is less than one
    // of them.
    assert!(grown < 256 << 10, "{n} dropped estimators leave {grown} bytes on the heap");
    assert!(resident_grown < 64 << 20, "{n} dropped estimators leave {resident_grown} bytes of memory");
}
