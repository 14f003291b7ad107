//! Bodies of gRPC requests, counted against the limit of all bodies together.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::core::Core;
use crate::status::Answer;

/// The bytes that a request holds until it is dropped.
pub(super) struct Held {
    core: Arc<Core>,
    n: AtomicUsize,
}

impl Held {
    pub(super) fn new(core: Arc<Core>) -> Held {
        Held { core, n: AtomicUsize::new(0) }
    }

    fn grow(&self, n: usize) -> Answer<()> {
        self.core.reserve(n)?.keep();
        self.n.fetch_add(n, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.core.release(self.n.load(Ordering::Relaxed));
    }
}

/// A body whose bytes are counted.
pub(super) struct Counted {
    body: Incoming,
    held: Arc<Held>,
}

impl Counted {
    pub(super) fn new(body: Incoming, held: Arc<Held>) -> Counted {
        Counted { body, held }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        polled.map(|frame| {
            let gone = |error: hyper::Error| tonic::Status::cancelled(format!("the request did not arrive: {error}"));
            let frame = match frame?.map_err(gone) {
                Ok(frame) => frame,
                Err(status) => return Some(Err(status)),
            };
            let n = frame.data_ref().map_or(0, Bytes::len);
            Some(self.held.grow(n).map(|()| frame).map_err(tonic::Status::from))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
