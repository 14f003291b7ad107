//! A training step in the steady state does not allocate, even if the batch size changes. Neither
//! does `Estimator::train` around it, with rows in memory, in the middle of an epoch.
//!
//! It is a separate binary because it counts the allocations of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use estimand::graph::{Combiner, Compiled, Cpu, Executor, Program, RunArgs};
use estimand::hook::{Hook, HookContext};
use estimand::prelude::*;
use estimand::update::MaxNorm;

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

/// Allocations of steps with batches 128, 128, 37, 1, 0, 128, after a first step of 128 has grown
/// everything.
fn allocations(model: &Model, threads: usize, feeds: impl Fn(usize) -> Result<Vec<Array>>) -> Result<usize> {
    let batches = [128, 128, 37, 1, 0, 128];
    let feeds: Vec<_> = batches.iter().map(|&n| feeds(n)).collect::<Result<_>>()?;
    let feeds: Vec<_> = feeds.iter().map(|values| model.feeds(values)).collect();
    let mut session = Session::with(&model.graph, Cpu::with_threads(threads), 1)?;
    let mut outputs = Vec::new();
    let fetches = [&model.train, &model.loss];
    session.run_into(&fetches, &feeds[0], &mut outputs)?;
    let mut fewest = usize::MAX;
    // The least of several rounds: what a step allocates shows in all of them, a thread of the pool
    // that is still starting, or the test runner itself, in one.
    for _ in 0..5 {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for batch in &feeds {
            session.run_into(&fetches, batch, &mut outputs)?;
        }
        fewest = fewest.min(ALLOCATIONS.load(Ordering::Relaxed) - before);
    }
    Ok(fewest)
}

/// Allocations of steps on ragged features that the host has prepared: batches and row lengths of
/// all sizes, after the largest.
fn ragged_allocations(threads: usize) -> Result<usize> {
    let g = Graph::new();
    let ids = g.ragged_placeholder("ids", DType::I64);
    let y = g.placeholder("y", DType::F32, [Dim::BATCH, 1.into()]);
    let table = g.variable("rows", [1_000, 8], Initializer::Ones);
    let rows = table.lookup(&ids, Combiner::Mean);
    let kernel = g.variable("kernel", [8, 1], Initializer::GlorotUniform);
    g.constrain(&table, Arc::new(MaxNorm::new(2.0).axes([1])));
    g.constrain(&kernel, Arc::new(MaxNorm::new(2.0)));
    let loss = rows.matmul(&kernel).sigmoid_cross_entropy(&y).mean();
    let train = Optimizer::new(Adagrad::default(), 0.1).minimize(&loss);
    let program = Program::new(Arc::new(g.body().clone()), &[train.value(), loss.value()])?;
    let cpu = Cpu::with_threads(threads);
    let compiled = Compiled::new(&cpu, program)?;
    let feeds = |n_rows: usize, n_ids: usize| -> Result<Vec<Array>> {
        // Rows as equal as possible, each second one empty.
        let full = n_rows.div_ceil(2).max(1);
        let splits: Vec<i64> = (0..=n_rows).map(|row| (n_ids * row.div_ceil(2) / full) as i64).collect();
        let n_ids = splits.last().map_or(0, |&n| n as usize);
        compiled.prepare(vec![integers("ids", &[n_ids], 1_000)?, Array::from(splits), uniform("y", &[n_rows, 1])?])
    };
    let sizes = [(128, 100_000), (128, 100_000), (37, 5), (1, 1_000), (0, 0), (3, 0), (128, 33_333)];
    let batches = sizes.iter().map(|&(rows, ids)| feeds(rows, ids)).collect::<Result<Vec<_>>>()?;
    let mut state = cpu.place(g.body().variables(), 1)?;
    let mut outputs = Vec::new();
    let mut fewest = usize::MAX;
    for round in 0..5 {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for feeds in &batches {
            compiled.step_prepared(&mut *state, RunArgs { feeds, ..RunArgs::default() }, &mut outputs)?;
        }
        if round > 0 {
            fewest = fewest.min(ALLOCATIONS.load(Ordering::Relaxed) - before);
        }
    }
    Ok(fewest)
}

/// Looks at the counter behind every step.
struct Watch {
    /// By the number of steps done.
    seen: Vec<usize>,
    fewest: Arc<AtomicUsize>,
}

impl Hook for Watch {
    fn name(&self) -> &str {
        "Watch"
    }

    fn after_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.seen.push(ALLOCATIONS.load(Ordering::Relaxed));
        Ok(())
    }

    fn end(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        // Stretches of 10 steps; logging, every 100 steps, allocates its texts.
        let stretches = self.seen.windows(11).map(|seen| seen[10] - seen[0]);
        self.fewest.store(stretches.min().unwrap_or(usize::MAX), Ordering::Relaxed);
        Ok(())
    }
}

/// Allocations of 10 steps of `train`, rows of a width from shuffled memory, with all default
/// hooks.
fn training_allocations(threads: usize, width: usize, batch: usize) -> Result<usize> {
    let model = |cx: &ModelFnContext<'_>| {
        let hidden = Dense::new(10).relu().apply(&cx.feature("x"));
        // Shown at the first step: those that follow have nothing to do with it.
        cx.summary().histogram("hidden", &hidden);
        let logits = Dense::new(3).apply(&hidden);
        let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
        Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Adagrad::default(), 0.05)))
    };
    let folder = std::env::temp_dir().join(format!("estimand-allocation-{}-{threads}-{width}", std::process::id()));
    let config = RunConfig::new().tf_random_seed(1).threads(threads);
    let estimator = Estimator::new(model).config(config).model_dir(&folder).build()?;
    let n = 100 * batch;
    let rows = [("x", uniform("x", &[n, width])?), ("y", integers("y", &[n], 3)?)];
    let data = Dataset::from_arrays(rows).label("y").shuffle(n, 7).repeat_forever().batch(batch).drop_remainder();
    let fewest = Arc::new(AtomicUsize::new(usize::MAX));
    let watch = Watch { seen: Vec::with_capacity(1_000), fewest: fewest.clone() };
    // Each batch that is made ahead allocates once: with two threads up to 66, at any step. Some of
    // the 90 stretches of 10 steps have none of them, and no log line.
    estimator.train(TrainSpec::new(data).steps(900).hook(watch))?;
    let _ = std::fs::remove_dir_all(folder);
    Ok(fewest.load(Ordering::Relaxed))
}

#[test]
#[cfg_attr(debug_assertions, ignore = "with debug assertions, `DisjointMut` keeps a ledger on the heap")]
fn steps_do_not_allocate() {
    for threads in [1, 2] {
        assert_eq!(training_allocations(threads, 4, 32).unwrap(), 0, "train, {threads} threads");
        // Batches so large that threads make them.
        assert_eq!(training_allocations(threads, 64, 2_048).unwrap(), 0, "train, large batches, {threads} threads");
    }
    for threads in [1, 2] {
        let numbers = |n: usize| Ok(vec![uniform("x", &[n, 4])?, integers("y", &[n], 3)?]);
        assert_eq!(allocations(&models::iris(), threads, numbers).unwrap(), 0, "iris, {threads} threads");
        let numbers = |n: usize| Ok(vec![uniform("x", &[n, 4])?, uniform("y", &[n, 1])?]);
        assert_eq!(allocations(&models::linear(), threads, numbers).unwrap(), 0, "linear, {threads} threads");
        let images = |n: usize| Ok(vec![uniform("x", &[n, 28, 28, 1])?, integers("y", &[n], 10)?]);
        assert_eq!(allocations(&models::cnn(), threads, images).unwrap(), 0, "cnn, {threads} threads");
        let ids = |n: usize| Ok(vec![integers("ids", &[n, 8], 1_000)?, uniform("y", &[n, 1])?]);
        assert_eq!(allocations(&models::lookup(1_000, 32, 8), threads, ids).unwrap(), 0, "lookup, {threads} threads");
        let steps = |n: usize| Ok(vec![uniform("x", &[n, 7, 5])?, uniform("y", &[n, 1])?]);
        assert_eq!(allocations(&models::sequence(7, 5, 19), threads, steps).unwrap(), 0, "sequence, {threads} threads");
        assert_eq!(ragged_allocations(threads).unwrap(), 0, "ragged, {threads} threads");
    }
}
