//! A future that wakes itself is polled again at once.
//!
//! A connection of HTTP/1 wakes itself in each request: who reads the body asks for bytes, and the
//! same future brings them. The scheduler would queue it, and wake another thread to share the
//! work.

use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The polls in a row after which other futures of the thread have their turn.
const MAX_POLLS: usize = 16;

const ASLEEP: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

/// Polls a future until it waits for something else than itself.
pub(super) struct Again<F> {
    future: Pin<Box<F>>,
    sleeper: Arc<Sleeper>,
    waker: Waker,
}

/// Where the future is, and whom to wake when it sleeps.
struct Sleeper {
    state: AtomicU8,
    task: Mutex<Waker>,
}

impl<F> Again<F> {
    pub(super) fn new(future: F) -> Again<F> {
        let sleeper = Arc::new(Sleeper { state: AtomicU8::new(ASLEEP), task: Mutex::new(Waker::noop().clone()) });
        Again { future: Box::pin(future), waker: Waker::from(Arc::clone(&sleeper)), sleeper }
    }
}

impl<F: Future> Future for Again<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Again { future, sleeper, waker } = &mut *self;
        sleeper.task.lock().unwrap_or_else(PoisonError::into_inner).clone_from(context.waker());
        for _ in 0..MAX_POLLS {
            sleeper.state.store(POLLED, Ordering::Release);
            if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(waker)) {
                return Poll::Ready(output);
            }
            if sleeper.state.swap(ASLEEP, Ordering::AcqRel) == POLLED {
                return Poll::Pending;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let before = self.state.compare_exchange(POLLED, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if before == Err(ASLEEP) {
            self.task.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Polls a future that wakes itself `n` times: the polls of it, and the times that its task was
    /// woken.
    fn polls_and_wakes(n: usize) -> (usize, usize) {
        let counted = Arc::new(Counted::default());
        let mut n_polls = 0;
        let future = Again::new(poll_fn(|context| {
            n_polls += 1;
            if n_polls <= n {
                context.waker().wake_by_ref();
                // A second time counts as one.
                context.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        }));
        let waker = Waker::from(Arc::clone(&counted));
        assert!(Box::pin(future).as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        (n_polls, counted.0.load(Ordering::Relaxed))
    }

    #[test]
    fn who_wakes_itself_is_polled_again() {
        assert_eq!(polls_and_wakes(0), (1, 0));
        assert_eq!(polls_and_wakes(3), (4, 0));
        // One that never ends leaves its turn to others.
        assert_eq!(polls_and_wakes(1_000), (MAX_POLLS, 1));
    }

    #[test]
    fn who_sleeps_wakes_its_task() {
        let counted = Arc::new(Counted::default());
        let waker = Waker::from(Arc::clone(&counted));
        let mut inner = None;
        {
            let mut future = Box::pin(Again::new(poll_fn(|context| {
                inner = Some(context.waker().clone());
                Poll::<()>::Pending
            })));
            // The task may change between two polls: the last one counts.
            assert!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        inner.expect("a waker").wake();
        assert_eq!(counted.0.load(Ordering::Relaxed), 1);
    }

    /// Two threads hand a number to and fro, and wake each other at any moment of a poll.
    #[test]
    fn no_wake_is_lost() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
        let (there, mut from_here) = tokio::sync::mpsc::channel::<usize>(1);
        let (back, mut from_there) = tokio::sync::mpsc::channel::<usize>(1);
        let other = runtime.spawn(Again::new(async move {
            while let Some(n) = from_here.recv().await {
                if back.send(n + 1).await.is_err() {
                    return;
                }
            }
        }));
        let this = runtime.spawn(Again::new(async move {
            let mut n = 0;
            while n < 20_000 {
                there.send(n).await.expect("the other listens");
                n = from_there.recv().await.expect("an answer");
                if n % 7 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            n
        }));
        assert_eq!(runtime.block_on(this).expect("a number"), 20_000);
        runtime.block_on(other).expect("an end");
    }
}
