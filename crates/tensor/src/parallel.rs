//! The thread pool: how a kernel spreads its blocks over the cores.
//!
//! A kernel cuts its work into tasks whose borders depend on the problem alone and calls [`Pool::run`]; who computes
//! which task is then a matter of timing and cannot reach the bits of the result. Handing out a run costs no heap
//! allocation: workers that finished the last run spin for a moment and find the next one, later they park.
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

use std::any::Any;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long an idle worker looks for the next run before it parks: longer than the gaps between the ops of a step.
const SPIN: Duration = Duration::from_micros(50);

/// A task body as the workers see it: borrowed from the caller of [`Pool::run`], its lifetime erased.
type Body = *const (dyn Fn(usize) + Sync);

/// The gate that workers pass to take part in a run: `run number << 32 | OPEN | workers inside`.
///
/// Only while it is open may a worker step in, and the caller closes it and waits for the count to reach zero before
/// the run's data dies. A worker that wakes up late finds it closed and has missed nothing.
struct Gate(AtomicU64);

const OPEN: u64 = 1 << 31;
const INSIDE: u64 = OPEN - 1;

impl Gate {
    /// Whether run `seen` is over and another is open.
    fn has_news(&self, seen: u64) -> bool {
        let state = self.0.load(Ordering::SeqCst);
        state & OPEN != 0 && state >> 32 != seen
    }

    /// Steps into the open run, unless it is the one already `seen`; returns its number.
    fn enter(&self, seen: u64) -> Option<u64> {
        let state = self.0.load(Ordering::Relaxed);
        if state & OPEN == 0 || state >> 32 == seen {
            return None;
        }
        // A failed exchange means that the gate moved: the caller's loop comes back.
        self.0.compare_exchange(state, state + 1, Ordering::Acquire, Ordering::Relaxed).ok().map(|s| s >> 32)
    }

    fn leave(&self) {
        self.0.fetch_sub(1, Ordering::Release);
    }

    fn open(&self) {
        let run = (self.0.load(Ordering::Relaxed) >> 32).wrapping_add(1) & 0xffff_ffff;
        self.0.store(run << 32 | OPEN, Ordering::SeqCst);
    }

    /// Lets nobody in any more and returns once everybody is out.
    fn close(&self) {
        self.0.fetch_and(!OPEN, Ordering::Relaxed);
        let mut spins = 0_u32;
        while self.0.load(Ordering::Acquire) & INSIDE != 0 {
            spins += 1;
            // With more threads than cores the worker waited for may need this very core.
            if spins.is_multiple_of(1024) { thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

/// What the caller and the workers share.
struct Shared {
    gate: Gate,
    body: UnsafeCell<Option<Body>>,
    n_tasks: AtomicUsize,
    next_task: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    stop: AtomicBool,
    /// One flag per worker: it is parked or about to be.
    parked: Box<[AtomicBool]>,
    spin: Duration,
}

// SAFETY: `body` is written only while the gate is closed and empty, and read only by threads inside the gate; the
// gate's acquire and release order the two. Everything else is atomic or locked.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `body` is used only as said above, from whichever thread.
unsafe impl Send for Shared {}

impl Shared {
    /// Claims and runs tasks until none is left. A panic ends the run early and is kept for the caller.
    fn work(&self, body: &(dyn Fn(usize) + Sync)) {
        let n_tasks = self.n_tasks.load(Ordering::Relaxed);
        let result = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let task = self.next_task.fetch_add(1, Ordering::Relaxed);
                if task >= n_tasks {
                    break;
                }
                body(task);
            }
        }));
        if let Err(payload) = result {
            self.next_task.store(n_tasks, Ordering::Relaxed);
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
        }
    }

    /// The life of worker number `index`.
    fn serve(&self, index: usize) {
        let mut seen = 0;
        loop {
            self.wait(index, seen);
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            if let Some(run) = self.gate.enter(seen) {
                seen = run;
                // SAFETY: inside the gate the caller of `run` is blocked in it, so the body it lent is alive.
                let body = unsafe { (*self.body.get()).map(|body| &*body) };
                if let Some(body) = body {
                    self.work(body);
                }
                self.gate.leave();
            }
        }
    }

    /// Returns when there may be something to do: spins first, then parks.
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
                // Threads that read input may wait for this very core.
                thread::yield_now();
                continue;
            }
            self.parked[index].store(true, Ordering::SeqCst);
            // Looked at once more after the flag is up: whoever opens the gate either sees the flag or is seen.
            if !self.gate.has_news(seen) && !self.stop.load(Ordering::SeqCst) {
                thread::park();
            }
            self.parked[index].store(false, Ordering::SeqCst);
        }
    }
}

/// A fixed set of threads that run the tasks of one kernel at a time.
pub struct Pool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    busy: AtomicBool,
}

impl Pool {
    /// A pool of `n_threads`, the caller of [`Pool::run`] included: `n_threads - 1` workers are started.
    ///
    /// Where the system refuses a thread the pool goes on with those it got.
    pub fn new(n_threads: usize) -> Pool {
        let n_workers = n_threads.saturating_sub(1);
        // Spinning only pays where each thread has a core to itself.
        let spin = if n_threads <= available_cores() { SPIN } else { Duration::ZERO };
        let shared = Arc::new(Shared {
            gate: Gate(AtomicU64::new(0)),
            body: UnsafeCell::new(None),
            n_tasks: AtomicUsize::new(0),
            next_task: AtomicUsize::new(0),
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

    /// The process's pool, one thread per core.
    pub fn global() -> &'static Pool {
        static GLOBAL: OnceLock<Pool> = OnceLock::new();
        GLOBAL.get_or_init(|| Pool::new(available_cores()))
    }

    /// How many threads take part in a run, the caller included.
    pub fn n_threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `body(0)` .. `body(n_tasks - 1)`, each once, and returns when all are done.
    ///
    /// The tasks may run on any thread and in any order. A single task, a pool of one thread, a call from inside a
    /// task and a call while another thread uses the pool all run on the caller. A panic in a task is raised
    /// again here, after the tasks already begun; those not begun are then dropped.
    pub fn run(&self, n_tasks: usize, body: &(dyn Fn(usize) + Sync)) {
        if n_tasks <= 1 || self.workers.is_empty() || self.busy.swap(true, Ordering::Acquire) {
            return (0..n_tasks).for_each(body);
        }
        let shared = &*self.shared;
        shared.n_tasks.store(n_tasks, Ordering::Relaxed);
        shared.next_task.store(0, Ordering::Relaxed);
        // SAFETY: the gate is closed and empty (`busy` keeps other callers away), so nobody reads `body` now. The
        // lifetime is erased from the pointer only: `close` below returns before the borrow ends.
        unsafe { *shared.body.get() = Some(std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Body>(body)) };
        shared.gate.open();
        for (worker, parked) in self.workers.iter().zip(&shared.parked).take(n_tasks - 1) {
            if parked.load(Ordering::SeqCst) {
                worker.thread().unpark();
            }
        }
        shared.work(body);
        shared.gate.close();
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.busy.store(false, Ordering::Release);
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker catches the panics of its tasks, so it has none of its own to report.
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

/// A mutable slice that the tasks of one run share, each taking its own part.
pub struct DisjointMut<'a, T> {
    start: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: the parts handed out are disjoint by the contract of `slice`; sending such a part to another thread is
// sending `&mut [T]`, which asks for `T: Send`.
unsafe impl<T: Send> Sync for DisjointMut<'_, T> {}

impl<'a, T> DisjointMut<'a, T> {
    /// Lends out `slice` until the value is dropped.
    pub fn new(slice: &'a mut [T]) -> Self {
        DisjointMut { start: slice.as_mut_ptr(), len: slice.len(), borrow: PhantomData }
    }

    /// The first element, for kernels that take pointers; what they write there must not overlap either.
    pub fn as_mut_ptr(&self) -> *mut T {
        self.start
    }

    /// The `len` elements from `start`.
    ///
    /// # Safety
    /// Parts that are alive at the same time must not overlap.
    #[allow(clippy::mut_from_ref)] // the point of the type; the contract forbids the aliasing
    pub unsafe fn slice(&self, start: usize, len: usize) -> &mut [T] {
        assert!(start <= self.len && len <= self.len - start, "part {start}+{len} of a slice of {}", self.len);
        // SAFETY: in bounds by the assertion, unaliased by the contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}
