//! Streams of HTTP/2: a request that is answered at once needs no task of its own, and one write.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use hyper::rt::Executor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Polls the first stream that a poll of the connection brings right there, and the others in
/// tasks. A client that waits for each answer keeps one thread busy, a client with many requests
/// all of them.
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
        if !self.has_one.swap(true, Ordering::Relaxed) {
            // A task polls its future once before it waits for any wake, so none is lost.
            let poll = || stream.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
            // A panic ends the stream, as it would end a task, not the connection.
            if catch_unwind(AssertUnwindSafe(poll)).unwrap_or(true) {
                return;
            }
        }
        tokio::spawn(stream);
    }
}

/// A connection that takes one piece at a time. The writer of HTTP/2 then copies answers of up to
/// 1,024 bytes between their headers and their trailers, and sends all in one write instead of two.
pub(super) struct OnePiece<T>(pub(super) T);

impl<T: AsyncRead + Unpin> AsyncRead for OnePiece<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for OnePiece<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::thread;

    use tokio::sync::mpsc;

    use super::*;

    /// A connection that brings streams in four polls: each tells its name, and whether it runs
    /// within a poll of the connection.
    async fn bring_streams(tell: mpsc::UnboundedSender<(&'static str, bool)>) {
        let streams = Streams::default();
        let is_polled = Arc::new(AtomicBool::new(false));
        let start = |name: &'static str, waits: bool| {
            let (tell, is_polled) = (tell.clone(), Arc::clone(&is_polled));
            let here = thread::current().id();
            streams.execute(async move {
                if waits {
                    tokio::task::yield_now().await;
                }
                let is_here = thread::current().id() == here && is_polled.load(Ordering::Relaxed);
                assert_ne!(name, "panics", "on purpose");
                tell.send((name, is_here)).expect("somebody listens");
            });
        };
        let mut n_polls = 0;
        let connection = pin!(poll_fn(|context| {
            is_polled.store(true, Ordering::Relaxed);
            n_polls += 1;
            match n_polls {
                1 => {
                    start("first", false);
                    start("second", false);
                }
                2 => {
                    start("waits", true);
                    start("beside", false);
                }
                3 => start("panics", false),
                4 => start("last", false),
                _ => return Poll::Ready(()),
            }
            is_polled.store(false, Ordering::Relaxed);
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        streams.read(connection).await;
    }

    #[tokio::test]
    async fn one_stream_of_a_poll_is_answered_there() {
        let (tell, mut told) = mpsc::unbounded_channel();
        bring_streams(tell).await;
        let mut all = Vec::new();
        while let Some(one) = told.recv().await {
            all.push(one);
        }
        all.sort_unstable();
        let expected = [("beside", false), ("first", true), ("last", true), ("second", false), ("waits", false)];
        assert_eq!(all, expected);
    }
}
