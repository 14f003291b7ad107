//! A limit on decompression: counts the bytes that go into a decoder and the bytes that come out.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use estimand_tensor::{Error, Limits};

/// A reader that counts the bytes it reads.
pub(super) struct Counted<R> {
    input: R,
    n: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(out)?;
        self.n.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// A decoder that fails when its output exceeds [`Limits::ratio`] times its input.
pub(super) struct Ceiling<D> {
    decoder: D,
    packed: Arc<AtomicU64>,
    unpacked: u64,
    limits: Limits,
}

impl<D> Ceiling<D> {
    /// Wraps the decoder that `decoder` builds over the compressed bytes.
    pub(super) fn over<R: Read>(packed: R, limits: Limits, decoder: impl FnOnce(Counted<R>) -> D) -> Ceiling<D> {
        let n = Arc::new(AtomicU64::new(0));
        Ceiling { decoder: decoder(Counted { input: packed, n: n.clone() }), packed: n, unpacked: 0, limits }
    }
}

impl<D: Read> Read for Ceiling<D> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.decoder.read(out)?;
        self.unpacked += n as u64;
        // The counter of compressed bytes is read only after the free bytes are used up.
        if self.unpacked > self.limits.free_bytes {
            self.limits.check_ratio(self.unpacked, self.packed.load(Ordering::Relaxed)).map_err(io::Error::other)?;
        }
        Ok(n)
    }
}

/// Converts an error of reading: an exceeded limit keeps its own error; others are I/O errors.
pub(crate) fn read_error(path: &Path, error: &io::Error) -> Error {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(limit) => limit.clone().in_file(path),
        None => Error::io(path, "read", error),
    }
}
