//! The thread pool, which kernels use to run their blocks on several cores.
//!
//! A kernel cuts its work into tasks whose boundaries depend on the problem alone, and calls
//! [`Pool::run`]. Timing decides which thread computes a task, but that cannot change the bits of
//! the result. Starting a run costs no heap allocation: workers that finished the last run spin for
//! a short time to find the next one, and park after that.
//!
//! ```
//! use estimand_tensor::parallel::{DisjointMut, Pool};
//! let pool = Pool::new(2);
//! let mut squares = vec![0; 8];
//! let out = DisjointMut::new(&mut squares);
//! pool.run(8, &|i| {
//!     // SAFETY: task i is the only one to touch element i.
//!     unsafe { out.slice(i, 1)[0] = i * i };
//! });
//! assert_eq!(squares, [0, 1, 4, 9, 16, 25, 36, 49]);
//! ```

mod disjoint;
mod gate;
mod idle;
#[cfg(test)]
mod model;

use std::any::Any;
use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub use disjoint::DisjointMut;
use gate::Gate;
pub use idle::Idle;

use crate::cpu::float_mode::FloatMode;

/// The largest number of threads of a pool.
const MAX_THREADS: usize = 1024;

/// The time that an idle worker spins for the next run before it parks: longer than the gaps
/// between the ops of a step.
const SPIN: Duration = Duration::from_micros(50);

/// A task body in the form that workers see: borrowed from the caller of [`Pool::run`], with its
/// lifetime erased.
type Body = *const (dyn Fn(usize) + Sync);

/// The state that the caller and the workers share.
struct Shared {
    gate: Gate,
    body: UnsafeCell<Option<Body>>,
    n_tasks: AtomicUsize,
    next_task: AtomicUsize,
    /// The caller's mode for subnormal numbers. Workers use the same mode.
    float_mode: AtomicU64,
    /// The number of the run in this process.
    #[cfg(debug_assertions)]
    run_number: AtomicU64,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    stop: AtomicBool,
    /// One flag per worker: whether it is parked or about to park.
    parked: Box<[AtomicBool]>,
    spin: Duration,
}

// SAFETY: `body` is written only while the gate is closed and empty, and read only by threads
// inside the gate; the gate's acquire and release order the two. Everything else is atomic or
// locked.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `body` is used only as described above, from any thread.
unsafe impl Send for Shared {}

impl Shared {
    /// Claims and runs tasks until none is left. A panic ends the run early and is stored for the
    /// caller.
    ///
    /// This never unwinds: otherwise the caller's stack would be gone while others work on it, or a
    /// worker would never leave the gate.
    fn work(&self, body: &(dyn Fn(usize) + Sync)) {
        let n_tasks = self.n_tasks.load(Ordering::Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let task = self.next_task.fetch_add(1, Ordering::Relaxed);
                if task >= n_tasks {
                    break;
                }
                self.call(task, body);
            }
        }));
        if let Err(payload) = result {
            self.next_task.store(n_tasks, Ordering::Relaxed);
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            let extra = if first.is_none() { first.replace(payload) } else { Some(payload) };
            drop(first);
            extra.into_iter().for_each(drop_payload);
        }
    }

    /// Runs one task. In builds with debug assertions its number is recorded, for [`DisjointMut`].
    #[inline(always)]
    fn call(&self, task: usize, body: &(dyn Fn(usize) + Sync)) {
        #[cfg(debug_assertions)]
        disjoint::task::during(self.run_number.load(Ordering::Relaxed), task, || body(task));
        #[cfg(not(debug_assertions))]
        body(task);
    }

    /// The main loop of worker number `index`.
    fn serve(&self, index: usize) {
        let mut seen = 0;
        loop {
            self.wait(index, seen);
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            if let Some(run) = self.gate.enter(seen) {
                seen = run;
                // SAFETY: the caller of `run` wrote the body before it opened the gate, and does
                // not return or unwind before `close` has seen this worker leave. So nobody writes
                // `body` now, and what it points to is alive.
                let body = unsafe { (*self.body.get()).map(|body| &*body) };
                if let Some(body) = body {
                    let mode = FloatMode::from_bits(self.float_mode.load(Ordering::Relaxed));
                    mode.during(|| self.work(body));
                }
                self.gate.leave();
            }
        }
    }

    /// Waits until there may be work: spins first, then parks.
    fn wait(&self, index: usize, seen: u64) {
        let start = Instant::now();
        let mut spins = 0_u32;
        loop {
            if self.gate.has_news(seen) || self.stop.load(Ordering::Relaxed) {
                return;
            }
            spins += 1;
            if !spins.is_multiple_of(64) {
                std::hint::spin_loop();
                continue;
            }
            if start.elapsed() < self.spin {
                // Threads that read input may be waiting for this core.
                thread::yield_now();
                continue;
            }
            self.parked[index].store(true, Ordering::SeqCst);
            // Checks once more after setting the flag: the thread that opens the gate either sees
            // the flag, or this worker sees the open gate.
            if !self.gate.has_news(seen) && !self.stop.load(Ordering::SeqCst) {
                thread::park();
            }
            self.parked[index].store(false, Ordering::SeqCst);
        }
    }
}

/// Drops the payload of a panic. Dropping runs foreign code too; if it panics in turn, that payload
/// is leaked to avoid an endless chain.
fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
}

/// An open run. When it is dropped, even by a panic of the caller, the gate is closed and empty,
/// and the pool is free again.
struct OpenRun<'a>(&'a Pool);

impl Drop for OpenRun<'_> {
    fn drop(&mut self) {
        let shared = &*self.0.shared;
        shared.gate.close();
        // SAFETY: the gate is closed and empty, so no thread reads `body` now. It must not outlive
        // the data it points to.
        unsafe { *shared.body.get() = None };
        self.0.busy.store(false, Ordering::Release);
    }
}

/// A fixed set of threads that run the tasks of one kernel at a time.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    busy: AtomicBool,
}

impl Pool {
    /// Creates a pool of `n_threads` threads, at most 1024, including the caller of [`Pool::run`]:
    /// `n_threads - 1` workers are started.
    ///
    /// If the system refuses a thread, the pool continues with the threads it has.
    pub fn new(n_threads: usize) -> Pool {
        let n_workers = n_threads.min(MAX_THREADS).saturating_sub(1);
        // Spinning is useful only if each thread has its own core.
        let spin = if n_threads <= available_cores() { SPIN } else { Duration::ZERO };
        let shared = Arc::new(Shared {
            gate: Gate::new(),
            body: UnsafeCell::new(None),
            n_tasks: AtomicUsize::new(0),
            next_task: AtomicUsize::new(0),
            float_mode: AtomicU64::new(0),
            #[cfg(debug_assertions)]
            run_number: AtomicU64::new(0),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
            parked: (0..n_workers).map(|_| AtomicBool::new(false)).collect(),
            spin,
        });
        let start = |index| {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("kernel-{}", index + 1)).spawn(move || shared.serve(index)).ok()
        };
        let workers = (0..n_workers).map_while(start).collect();
        Pool { shared, workers, busy: AtomicBool::new(false) }
    }

    /// The pool of the process, with one thread per core.
    pub fn global() -> &'static Pool {
        static GLOBAL: OnceLock<Pool> = OnceLock::new();
        GLOBAL.get_or_init(|| Pool::new(available_cores()))
    }

    /// The number of threads that take part in a run, including the caller.
    pub fn n_threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `body(0)` .. `body(n_tasks - 1)`, each once, and returns when all are done.
    ///
    /// The tasks may run on any thread and in any order, in the caller's floating-point
    /// [mode](crate::cpu::float_mode). A single task, a pool of one thread, a call from inside a
    /// task and a call while another thread uses the pool all run on the caller. The first panic of
    /// a task is raised again here, after the tasks already begun have ended. Tasks not begun are
    /// then dropped, and so are the panics of further tasks.
    pub fn run(&self, n_tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        if n_tasks <= 1 || self.workers.is_empty() || self.busy.swap(true, Ordering::Acquire) {
            return run_here(n_tasks, body);
        }
        let shared = &*self.shared;
        shared.n_tasks.store(n_tasks, Ordering::Relaxed);
        shared.next_task.store(0, Ordering::Relaxed);
        shared.float_mode.store(FloatMode::current().to_bits(), Ordering::Relaxed);
        #[cfg(debug_assertions)]
        shared.run_number.store(disjoint::task::new_run(), Ordering::Relaxed);
        // SAFETY: the gate is closed and empty (`busy` keeps other callers away), so nobody reads
        // `body` now. The lifetime is erased from the pointer only: `OpenRun` takes it back before
        // the borrow ends.
        unsafe { *shared.body.get() = Some(std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Body>(body)) };
        let run = OpenRun(self);
        shared.gate.open();
        for (worker, parked) in self.workers.iter().zip(&shared.parked).take(n_tasks - 1) {
            if parked.load(Ordering::SeqCst) {
                worker.thread().unpark();
            }
        }
        shared.work(body);
        // From here on no thread adds a panic, and no other caller takes the pool until it is free.
        shared.gate.close();
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(run);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }
}

/// Runs all tasks one after the other, on the caller.
fn run_here(n_tasks: usize, body: &(dyn Fn(usize) + Sync)) {
    #[cfg(debug_assertions)]
    {
        let run = disjoint::task::new_run();
        (0..n_tasks).for_each(|task| disjoint::task::during(run, task, || body(task)));
    }
    #[cfg(not(debug_assertions))]
    (0..n_tasks).for_each(body);
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker catches the panics of its tasks, so it has no panic of its own to report.
            let _ = worker.join();
        }
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("n_threads", &self.n_threads()).finish()
    }
}

fn available_cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
