//! A thread pool that returns results in the order of the jobs. Readers of files, `map` and
//! `prefetch` run on it.
//!
//! Threads take one job at a time, so the results are the same for any number of threads. A panic
//! in a thread becomes a panic of the caller that takes the result.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use estimand_tensor::{Error, Result};

type Next<J> = Box<dyn FnMut() -> Option<J> + Send>;
type Work<J, T> = Arc<dyn Fn(J) -> T + Send + Sync>;

/// A queue of jobs whose results come in the order of the jobs.
pub struct Ordered<J, T> {
    state: State<J, T>,
    work: Work<J, T>,
    n_threads: usize,
    n_ahead: usize,
    /// Whether the threads start with the second job.
    eager: bool,
}

enum State<J, T> {
    /// The caller does the work: for the first job, or for all jobs if there is one thread.
    Inline {
        next: Next<J>,
        done: u64,
    },
    Running {
        shared: Arc<Shared<J, T>>,
        threads: Vec<JoinHandle<()>>,
    },
    Ended,
}

impl<J: Send + 'static, T: Send + 'static> Ordered<J, T> {
    /// Creates the queue. `next` returns the jobs, and `None` at the end; `work` does one job. At
    /// most `n_ahead` results wait to be taken.
    ///
    /// The second job starts the threads, so a small file needs none. With an `n_threads` of 1 they
    /// never start.
    pub fn new(
        n_threads: usize,
        n_ahead: usize,
        next: impl FnMut() -> Option<J> + Send + 'static,
        work: impl Fn(J) -> T + Send + Sync + 'static,
    ) -> Ordered<J, T> {
        let state = State::Inline { next: Box::new(next), done: 0 };
        Ordered { state, work: Arc::new(work), n_threads, n_ahead: n_ahead.max(1), eager: true }
    }

    /// Lets the caller do the work until it calls [`start`](Ordered::start). Use it for jobs that
    /// may cost less than passing them to a thread.
    #[must_use]
    pub fn lazy(mut self) -> Ordered<J, T> {
        self.eager = false;
        self
    }

    /// Starts the threads now, even if there is only one.
    pub fn start(&mut self) -> Result<()> {
        let State::Inline { .. } = self.state else { return Ok(()) };
        let State::Inline { next, .. } = std::mem::replace(&mut self.state, State::Ended) else { return Ok(()) };
        let shared = Arc::new(Shared {
            jobs: Mutex::new(Jobs { next, n_taken: 0 }),
            results: Mutex::new(Results { done: VecDeque::new(), n_done: 0, n_given: 0, end: None, abandoned: false }),
            room: Condvar::new(),
            ready: Condvar::new(),
            n_ahead: self.n_ahead as u64,
        });
        let mut threads = Vec::new();
        for _ in 0..self.n_threads.max(1) {
            let (theirs, work) = (shared.clone(), self.work.clone());
            let spawned = thread::Builder::new().name("input".to_string()).spawn(move || theirs.run(&*work));
            match spawned {
                Ok(thread) => threads.push(thread),
                // Fewer threads give the same results.
                Err(_) if !threads.is_empty() => break,
                Err(error) => return Err(Error::config(format!("cannot start a thread that reads input: {error}"))),
            }
        }
        self.state = State::Running { shared, threads };
        Ok(())
    }

    /// Takes the next result; `None` after the last.
    pub fn take(&mut self) -> Result<Option<T>> {
        let job = match &mut self.state {
            State::Running { shared, .. } => {
                let result = shared.take();
                if result.is_none() {
                    self.end();
                }
                return Ok(result.map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))));
            }
            State::Ended => return Ok(None),
            State::Inline { next, done } => {
                *done += 1;
                next().map(|job| (job, *done))
            }
        };
        let Some((job, number)) = job else {
            self.state = State::Ended;
            return Ok(None);
        };
        if self.eager && number > 1 && self.n_threads > 1 {
            self.start()?;
        }
        Ok(Some((self.work)(job)))
    }
}

impl<J, T> Ordered<J, T> {
    /// Waits for the threads, which finish the jobs they are doing.
    fn end(&mut self) {
        if let State::Running { shared, threads } = std::mem::replace(&mut self.state, State::Ended) {
            shared.abandon();
            // Nobody takes results after this one, so nobody needs to see a later panic.
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
    }
}

impl<J, T> Drop for Ordered<J, T> {
    fn drop(&mut self) {
        self.end();
    }
}

struct Shared<J, T> {
    jobs: Mutex<Jobs<J>>,
    results: Mutex<Results<T>>,
    /// Signalled when a result was taken.
    room: Condvar,
    /// Signalled when a result is ready.
    ready: Condvar,
    n_ahead: u64,
}

struct Jobs<J> {
    next: Next<J>,
    n_taken: u64,
}

struct Results<T> {
    /// Starts with the first result that was not taken.
    done: VecDeque<Option<thread::Result<T>>>,
    n_done: usize,
    n_given: u64,
    /// The number of jobs, once known.
    end: Option<u64>,
    /// Nobody takes results any more.
    abandoned: bool,
}

impl<T> Results<T> {
    fn insert(&mut self, number: u64, result: thread::Result<T>) {
        let place = (number - self.n_given) as usize;
        if place >= self.done.len() {
            self.done.resize_with(place + 1, || None);
        }
        self.done[place] = Some(result);
        self.n_done += 1;
    }
}

/// Locks a mutex, even after a panic. The state is still consistent: no lock is held while foreign
/// code runs, except for `next`, which is then never called again.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J, T> Shared<J, T> {
    fn run(&self, work: &(dyn Fn(J) -> T + Send + Sync)) {
        while let Some((number, job)) = self.next_job() {
            let result = job.and_then(|job| catch_unwind(AssertUnwindSafe(|| work(job))));
            lock(&self.results).insert(number, result);
            self.ready.notify_one();
        }
    }

    fn next_job(&self) -> Option<(u64, thread::Result<J>)> {
        let mut jobs = lock(&self.jobs);
        let number = jobs.n_taken;
        {
            let full = |results: &mut Results<T>| {
                !results.abandoned && results.end.is_none() && number >= results.n_given + self.n_ahead
            };
            let results = self.room.wait_while(lock(&self.results), full).unwrap_or_else(PoisonError::into_inner);
            if results.abandoned || results.end.is_some() {
                return None;
            }
        }
        let job = catch_unwind(AssertUnwindSafe(|| (jobs.next)())).transpose();
        // A panic in the source is the last result.
        let end = match &job {
            None => Some(number),
            Some(Err(_)) => Some(number + 1),
            Some(Ok(_)) => None,
        };
        jobs.n_taken += 1;
        if end.is_some() {
            lock(&self.results).end = end;
            self.ready.notify_one();
            self.room.notify_all();
        }
        job.map(|job| (number, job))
    }

    fn take(&self) -> Option<thread::Result<T>> {
        let waiting = |results: &mut Results<T>| {
            results.end != Some(results.n_given) && !matches!(results.done.front(), Some(Some(_)))
        };
        let mut results = self.ready.wait_while(lock(&self.results), waiting).unwrap_or_else(PoisonError::into_inner);
        let result = results.done.pop_front()??;
        (results.n_given, results.n_done) = (results.n_given + 1, results.n_done - 1);
        // Waking a thread costs more than many jobs. So it is woken only after half of the possible
        // results were taken: then it has enough to do.
        if results.n_done as u64 <= self.n_ahead / 2 {
            self.room.notify_all();
        }
        Some(result)
    }

    fn abandon(&self) {
        lock(&self.results).abandoned = true;
        self.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn squares(n_threads: usize, n_jobs: u64) -> Ordered<u64, u64> {
        let mut jobs = 0..n_jobs;
        Ordered::new(
            n_threads,
            3,
            move || jobs.next(),
            |job| {
                // Odd jobs take longer than the even ones after them.
                thread::sleep(std::time::Duration::from_micros(200 * (job % 2)));
                job * job
            },
        )
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() -> Result<()> {
        for n_threads in [1, 2, 5] {
            for n_jobs in [0, 1, 2, 3, 50] {
                for started in [false, true] {
                    let mut results = squares(n_threads, n_jobs);
                    if started {
                        results.start()?;
                    }
                    for i in 0..n_jobs {
                        assert_eq!(results.take()?, Some(i * i), "{n_threads} threads, {n_jobs} jobs");
                    }
                    assert_eq!((results.take()?, results.take()?), (None, None));
                }
            }
        }
        Ok(())
    }

    #[test]
    fn threads_end_with_their_results() -> Result<()> {
        let mut results = squares(4, u64::MAX);
        for i in 0..10 {
            assert_eq!(results.take()?, Some(i * i));
        }
        drop(results);
        Ok(())
    }

    #[test]
    fn a_panic_comes_in_its_turn() -> Result<()> {
        for in_source in [false, true] {
            let mut jobs = 0..20_u64;
            let next = move || jobs.next().inspect(|job| assert!(!(in_source && *job == 7), "no seven"));
            let mut results = Ordered::new(3, 4, next, move |job| {
                assert!(in_source || job != 7, "no seven");
                job
            });
            for i in 0..7 {
                assert_eq!(results.take()?, Some(i));
            }
            assert!(catch_unwind(AssertUnwindSafe(|| results.take())).is_err());
        }
        Ok(())
    }
}
