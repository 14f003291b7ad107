//! Reads the body of a request, within limits.

use std::io::Read;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap};

use crate::core::{Core, Share};
use crate::rest::Reply;

/// A body and the share of memory that it takes.
pub(super) struct Whole<'a> {
    pub(super) bytes: Bytes,
    pub(super) share: Share<'a>,
}

fn too_large(limit: usize) -> Reply {
    Reply::failure_with(413, &format!("the body of the request has more than {limit} bytes, which is the limit"))
}

/// Reads a whole body, and unpacks it.
pub(super) async fn read<'a>(core: &'a Core, headers: &HeaderMap, mut body: Incoming) -> Result<Whole<'a>, Reply> {
    let limit = core.settings.max_body_bytes;
    let hint = body.size_hint();
    if hint.lower() > limit as u64 {
        return Err(too_large(limit));
    }
    let known = hint.exact().and_then(|n| usize::try_from(n).ok());
    let mut share = core.reserve(known.unwrap_or(0)).map_err(|status| Reply::failure(&status))?;
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let gone = |_| Reply::failure_with(400, "the client ended the connection before the end of the body");
        let Ok(data) = frame.map_err(gone)?.into_data() else { continue };
        let n = first.len() + all.len() + data.len();
        if n > limit {
            return Err(too_large(limit));
        }
        if known.is_none() {
            share.grow(data.len(), core).map_err(|status| Reply::failure(&status))?;
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
    match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase()).as_deref() {
        None | Some(b"" | b"identity") => Ok(Whole { bytes, share }),
        Some(b"gzip") => {
            let bytes = unpack(&bytes, limit)?;
            share.grow(bytes.len(), core).map_err(|status| Reply::failure(&status))?;
            Ok(Whole { bytes, share })
        }
        Some(other) => Err(Reply::failure_with(
            415,
            &format!("the body is packed with `{}`; send it as it is, or with gzip", String::from_utf8_lossy(other)),
        )),
    }
}

/// Unpacks gzip, up to the limit: a small body may unpack to any size.
fn unpack(packed: &[u8], limit: usize) -> Result<Bytes, Reply> {
    let mut bytes = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(packed).take(limit as u64 + 1);
    reader
        .read_to_end(&mut bytes)
        .map_err(|error| Reply::failure_with(400, &format!("the body is not valid gzip: {error}")))?;
    if bytes.len() > limit {
        return Err(too_large(limit));
    }
    Ok(bytes.into())
}
