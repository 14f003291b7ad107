//! Joins the rows of concurrent requests to one run of the model, within a bound of waiting time.
//!
//! Each signature has a [`Queue`]. The threads of the [`Batcher`] take a queue whose rows fill a
//! batch, or whose oldest request has waited long enough, run its rows as one batch (`join.rs`),
//! and give each request its own rows. A row has the same bits alone and in a batch.

mod join;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use estimand_tensor::{Array, Error, Result};
use tokio::sync::oneshot;

use crate::model::Signature;
use crate::status::{Answer, Code, Status};

/// How requests are joined; the defaults are TensorFlow Serving's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchingParameters {
    max_batch_size: usize,
    batch_timeout: Duration,
    max_enqueued_batches: usize,
    n_threads: usize,
}

impl Default for BatchingParameters {
    fn default() -> BatchingParameters {
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
        BatchingParameters { max_batch_size: 1_000, batch_timeout: Duration::ZERO, max_enqueued_batches: 10, n_threads }
    }
}

impl BatchingParameters {
    /// The defaults of TensorFlow Serving.
    pub fn new() -> BatchingParameters {
        BatchingParameters::default()
    }

    /// Sets the largest number of rows that are run at once. By default 1,000. A larger request
    /// runs alone.
    #[must_use]
    pub fn max_batch_size(mut self, n: usize) -> BatchingParameters {
        self.max_batch_size = n.max(1);
        self
    }

    /// Sets how long a request waits for others. By default 0: requests are joined only while all
    /// threads are busy.
    #[must_use]
    pub fn batch_timeout(mut self, timeout: Duration) -> BatchingParameters {
        self.batch_timeout = timeout;
        self
    }

    /// Sets the number of batches that may wait; a request beyond them is refused with 429. By
    /// default 10.
    #[must_use]
    pub fn max_enqueued_batches(mut self, n: usize) -> BatchingParameters {
        self.max_enqueued_batches = n.max(1);
        self
    }

    /// Sets the number of threads that run batches. By default the number of processors.
    #[must_use]
    pub fn num_batch_threads(mut self, n: usize) -> BatchingParameters {
        self.n_threads = n.max(1);
        self
    }
}

/// The threads that run batches.
pub(crate) struct Batcher {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    parameters: BatchingParameters,
    state: Mutex<State>,
    wake: Condvar,
    next_id: AtomicU64,
}

#[derive(Default)]
struct State {
    queues: HashMap<u64, Waiting>,
    is_stopped: bool,
}

/// The requests of one signature that wait.
#[derive(Default)]
struct Waiting {
    tasks: VecDeque<Task>,
    n_rows: usize,
}

/// A request that waits.
struct Task {
    signature: Arc<Signature>,
    arrays: Vec<Array>,
    n_rows: usize,
    deadline: Option<Instant>,
    since: Instant,
    answer: oneshot::Sender<Answer<Vec<Array>>>,
}

impl Batcher {
    pub(crate) fn start(parameters: BatchingParameters) -> Result<Batcher> {
        let n_threads = parameters.n_threads;
        let (state, wake, next_id) = (Mutex::default(), Condvar::new(), AtomicU64::new(0));
        let shared = Arc::new(Shared { parameters, state, wake, next_id });
        let mut batcher = Batcher { shared, threads: Vec::new() };
        for i in 0..n_threads {
            let shared = Arc::clone(&batcher.shared);
            let thread = std::thread::Builder::new()
                .name(format!("estimand-batch-{i}"))
                .spawn(move || shared.work())
                .map_err(|e| Error::config(format!("cannot start a thread that runs batches: {e}")))?;
            batcher.threads.push(thread);
        }
        Ok(batcher)
    }
}

impl Drop for Batcher {
    /// Runs the requests that wait, then ends the threads.
    fn drop(&mut self) {
        self.shared.lock().is_stopped = true;
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

/// The queue of a signature.
pub(crate) struct Queue {
    id: u64,
    shared: Arc<Shared>,
}

impl Queue {
    pub(crate) fn new(batcher: &Arc<Batcher>) -> Queue {
        let id = batcher.shared.next_id.fetch_add(1, Ordering::Relaxed);
        Queue { id, shared: Arc::clone(&batcher.shared) }
    }

    /// Whether a request is small enough to be joined with others.
    pub(crate) fn takes(&self, n_rows: usize) -> bool {
        (1..=self.shared.parameters.max_batch_size).contains(&n_rows)
    }

    /// Adds a request. If the receiver is dropped before the request runs, it never does.
    pub(crate) fn add(
        &self,
        signature: Arc<Signature>,
        arrays: Vec<Array>,
        n_rows: usize,
        deadline: Option<Instant>,
    ) -> Answer<oneshot::Receiver<Answer<Vec<Array>>>> {
        let (answer, receiver) = oneshot::channel();
        let parameters = &self.shared.parameters;
        let mut state = self.shared.lock();
        if state.is_stopped {
            return Err(Status::new(Code::Unavailable, "the server is shutting down"));
        }
        let waiting = state.queues.entry(self.id).or_default();
        let limit = parameters.max_batch_size.saturating_mul(parameters.max_enqueued_batches);
        if waiting.n_rows + n_rows > limit {
            waiting.drop_cancelled();
        }
        if waiting.n_rows + n_rows > limit {
            return Err(Status::full(format!(
                "The batch scheduling queue to which this task was submitted is full: {} rows wait, the limit is \
                 {limit} (max_batch_size * max_enqueued_batches); try again later",
                waiting.n_rows
            )));
        }
        waiting.n_rows += n_rows;
        waiting.tasks.push_back(Task { signature, arrays, n_rows, deadline, since: Instant::now(), answer });
        drop(state);
        self.shared.wake.notify_one();
        Ok(receiver)
    }
}

impl Waiting {
    fn drop_cancelled(&mut self) {
        self.tasks.retain(|task| !task.answer.is_closed());
        self.n_rows = self.tasks.iter().map(|task| task.n_rows).sum();
    }

    /// Takes the requests of one batch: the oldest, and others that have rows of the same shapes.
    fn take(&mut self, max_rows: usize) -> Vec<Task> {
        let mut batch: Vec<Task> = Vec::new();
        let mut n_rows = 0;
        let mut left = VecDeque::new();
        while let Some(task) = self.tasks.pop_front() {
            let fits = n_rows + task.n_rows <= max_rows
                && batch.first().is_none_or(|first| join::have_equal_rows(&first.arrays, &task.arrays));
            if fits {
                n_rows += task.n_rows;
                batch.push(task);
            } else {
                left.push_back(task);
            }
            if n_rows == max_rows {
                break;
            }
        }
        left.append(&mut self.tasks);
        self.tasks = left;
        self.n_rows -= n_rows;
        batch
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs batches until the server stops and nothing waits.
    fn work(&self) {
        while let Some(batch) = self.next_batch() {
            join::run(batch);
        }
    }

    fn next_batch(&self) -> Option<Vec<Task>> {
        let (max_rows, timeout) = (self.parameters.max_batch_size, self.parameters.batch_timeout);
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let age =
                |waiting: &Waiting| waiting.tasks.front().map_or(Duration::ZERO, |task| now - task.since.min(now));
            let is_stopped = state.is_stopped;
            let is_due = |waiting: &Waiting| waiting.n_rows >= max_rows || age(waiting) >= timeout || is_stopped;
            let due =
                state.queues.iter().filter(|(_, waiting)| is_due(waiting)).max_by_key(|(_, waiting)| age(waiting));
            if let Some(id) = due.map(|(&id, _)| id) {
                let waiting = state.queues.get_mut(&id)?;
                let batch = waiting.take(max_rows);
                if waiting.tasks.is_empty() {
                    state.queues.remove(&id);
                }
                let is_more = !state.queues.is_empty();
                drop(state);
                if is_more {
                    self.wake.notify_one();
                }
                return Some(batch);
            }
            if is_stopped {
                return None;
            }
            let oldest = state.queues.values().map(age).max();
            state = match oldest {
                Some(age) => {
                    self.wake.wait_timeout(state, timeout - age).map_or_else(|e| e.into_inner().0, |woken| woken.0)
                }
                None => self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}
