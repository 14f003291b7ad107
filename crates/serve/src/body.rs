//! Reads the body of a request, within limits.

use std::io::{self, Read};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use crate::core::{Core, Share};
use crate::status::Status;

/// A body and the share of memory that it takes.
pub(crate) struct Whole<'a> {
    pub(crate) bytes: Bytes,
    pub(crate) share: Share<'a>,
}

/// Why there is no body.
pub(crate) enum Failed {
    /// It has more bytes than this limit.
    TooLarge(usize),
    /// All bodies together would take too much memory.
    Full(Status),
    /// The client ended the connection before.
    Gone,
    /// It is not valid gzip.
    Damaged(io::Error),
}

/// Reads a whole body of up to `limit` bytes.
pub(crate) async fn read(core: &Core, mut body: Incoming, limit: usize) -> Result<Whole<'_>, Failed> {
    let hint = body.size_hint();
    if hint.lower() > limit as u64 {
        return Err(Failed::TooLarge(limit));
    }
    let known = hint.exact().and_then(|n| usize::try_from(n).ok());
    let mut share = core.reserve(known.unwrap_or(0)).map_err(Failed::Full)?;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Failed::Gone)?.into_data() else { continue };
        let n = first.len() + all.len() + data.len();
        if n > limit {
            return Err(Failed::TooLarge(limit));
        }
        if known.is_none() {
            share.grow(data.len(), core).map_err(Failed::Full)?;
        }
        // The usual body arrives in one piece and is not copied.
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.reserve(known.unwrap_or(n).max(n));
            all.extend_from_slice(&first);
            first = Bytes::new();
        }
        all.extend_from_slice(&data);
    }
    let bytes = if all.is_empty() { first } else { all.freeze() };
    Ok(Whole { bytes, share })
}

impl Whole<'_> {
    /// Unpacks a part of the body with gzip, up to the limit: a few bytes may unpack to any size.
    pub(crate) fn unpack(&mut self, packed: &[u8], core: &Core, limit: usize) -> Result<Bytes, Failed> {
        let mut bytes = Vec::new();
        let mut reader = flate2::read::MultiGzDecoder::new(packed).take(limit as u64 + 1);
        reader.read_to_end(&mut bytes).map_err(Failed::Damaged)?;
        if bytes.len() > limit {
            return Err(Failed::TooLarge(limit));
        }
        self.share.grow(bytes.len(), core).map_err(Failed::Full)?;
        Ok(bytes.into())
    }
}
