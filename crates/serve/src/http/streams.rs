//! Streams of HTTP/2: a request that is answered at once needs no task of its own, and one write.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use hyper::rt::Executor;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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
