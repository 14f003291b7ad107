//! Streams of HTTP/2: a request that is answered at once needs no task of its own.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use hyper::rt::Executor;

/// Polls the first stream that a poll of the connection brings right there, and the others in tasks.
/// A client that waits for each answer keeps one thread busy, a client with many requests all of
/// them.
#[derive(Clone, Default)]
pub(super) struct Streams {
    has_one: Arc<AtomicBool>,
}

impl Streams {
    /// Reads a connection whose executor is a clone of this.
    pub(super) async fn read<C: Future>(&self, mut connection: Pin<&mut C>) -> C::Output {
        std::future::poll_fn(|context| {
            self.has_one.store(false, Ordering::Relaxed);
            connection.as_mut().poll(context)
        })
        .await
    }
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut stream = Box::pin(stream);
        // A task polls its future once before it waits for any wake, so none is lost.
        let is_here = !self.has_one.swap(true, Ordering::Relaxed);
        if is_here && stream.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            return;
        }
        tokio::spawn(stream);
    }
}
