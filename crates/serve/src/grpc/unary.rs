//! Calls with one message and one answer, which is all calls but those of reflection.
//!
//! The bytes are those of the protocol: a flag, a length and a message, in the body of a request of
//! HTTP/2, and an answer whose status follows in trailers. `tonic` reads and writes streams of
//! messages, which takes some 9,000 instructions more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response};
use prost::Message;

use crate::body::{self, Failed};
use crate::core::Core;
use crate::infer::Deadline;
use crate::metrics::{Api, Entry};
use crate::status::{Answer, Code, Status};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const SUCCESS: HeaderValue = HeaderValue::from_static("0");
const PACKING: HeaderName = HeaderName::from_static("grpc-encoding");
/// The name of the header that says how messages may be packed, and what it says.
const PACKINGS: (&str, &str) = ("grpc-accept-encoding", "identity,gzip");
/// The bytes before a message: whether it is packed, and its length.
pub(super) const HEAD: usize = 5;

/// The body of an answer.
pub(crate) enum ReplyBody {
    /// One message that is not sent yet, and the status after it, which is success.
    Message(Option<Bytes>, bool),
    /// A status without a message, or a stream of messages.
    Other(tonic::body::Body),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let (message, is_ended) = match self.get_mut() {
            ReplyBody::Other(body) => return Pin::new(body).poll_frame(context),
            ReplyBody::Message(message, is_ended) => (message, is_ended),
        };
        Poll::Ready(match message.take() {
            Some(bytes) => Some(Ok(Frame::data(bytes))),
            None if std::mem::replace(is_ended, true) => None,
            None => {
                let mut trailers = HeaderMap::with_capacity(1);
                trailers.insert(STATUS, SUCCESS);
                Some(Ok(Frame::trailers(trailers)))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Message(_, is_ended) => *is_ended,
            ReplyBody::Other(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            // Not the exact size: it would become a header, which answers of gRPC do not have.
            ReplyBody::Message(..) => SizeHint::default(),
            ReplyBody::Other(body) => body.size_hint(),
        }
    }
}

/// A request that is read from its message.
pub(crate) trait FromMessage: Sized {
    fn from_message(message: Bytes) -> Result<Self, String>;
}

impl<T: Message + Default> FromMessage for T {
    fn from_message(message: Bytes) -> Result<T, String> {
        Message::decode(message).map_err(|e| e.to_string())
    }
}

/// An answer that is written as a message.
pub(crate) trait IntoMessage {
    /// The message, after [`HEAD`] bytes of any value.
    fn into_message(self) -> Vec<u8>;
}

impl<T: Message> IntoMessage for T {
    fn into_message(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD + self.encoded_len());
        bytes.extend([0; HEAD]);
        self.encode_raw(&mut bytes);
        bytes
    }
}

/// A method of a service.
pub(super) trait Rpc: Send + 'static {
    type Request: FromMessage + Send;
    type Response: IntoMessage + Send;
    /// The name in the metrics; `None` if the method is not counted.
    const API: Option<Api>;

    /// The model that a request is for.
    fn model(request: &Self::Request) -> Option<&str>;

    fn answer(
        core: &Arc<Core>,
        request: Self::Request,
        deadline: Deadline,
    ) -> impl Future<Output = Answer<Self::Response>> + Send;
}

/// Decodes a message, answers it, and encodes the answer.
pub(super) async fn answer<M: Rpc>(
    core: Arc<Core>,
    request: Request<Incoming>,
    deadline: Deadline,
) -> Response<ReplyBody> {
    let (parts, body) = request.into_parts();
    let is_gzip = match is_gzip(&parts.headers) {
        Ok(is_gzip) => is_gzip,
        Err(status) => {
            let mut status = tonic::Status::from(status);
            status.metadata_mut().insert(PACKINGS.0, tonic::metadata::MetadataValue::from_static(PACKINGS.1));
            return status.into_http().map(ReplyBody::Other);
        }
    };
    drop(parts);
    match call::<M>(&core, body, is_gzip, deadline).await {
        Ok(bytes) => {
            let mut response = Response::new(ReplyBody::Message(Some(bytes), false));
            response.headers_mut().insert(CONTENT_TYPE, GRPC);
            response
        }
        Err(status) => failure(status),
    }
}

/// An answer that is only a status.
pub(super) fn failure(status: Status) -> Response<ReplyBody> {
    tonic::Status::from(status).into_http().map(ReplyBody::Other)
}

async fn call<M: Rpc>(core: &Arc<Core>, body: Incoming, is_gzip: bool, deadline: Deadline) -> Answer<Bytes> {
    let limit = core.settings.max_body_bytes;
    let mut whole = body::read(core, body, limit.saturating_add(HEAD)).await.map_err(|e| failed(e, limit))?;
    let (is_packed, mut message) = message(whole.bytes.clone(), limit)?;
    if is_packed {
        if !is_gzip {
            return Err(internal("a message is packed, but the header `grpc-encoding` does not say how"));
        }
        message = whole.unpack(&message, core, limit).map_err(|e| failed(e, limit))?;
    }
    let request =
        M::Request::from_message(message).map_err(|e| internal(format!("failed to decode the message: {e}")))?;
    let start = Instant::now();
    let counted = match (M::API, M::model(&request)) {
        (Some(api), Some(name)) => core.models.find(name).map(|model| (api, model)),
        _ => None,
    };
    let answer = M::answer(core, request, deadline).await;
    if let Some((api, model)) = counted {
        let code = answer.as_ref().map_or_else(|status| status.code, |_| Code::Ok);
        model.metrics.answered(api, Entry::Grpc, code, start.elapsed());
    }
    // The message is in memory until it is answered.
    drop(whole);
    framed(answer?.into_message())
}

/// Whether packed messages of a request are packed with gzip.
fn is_gzip(headers: &HeaderMap) -> Answer<bool> {
    match headers.get(PACKING).map(HeaderValue::as_bytes) {
        None | Some(b"identity") => Ok(false),
        Some(b"gzip") => Ok(true),
        Some(other) => Err(Status::new(
            Code::Unimplemented,
            format!(
                "messages are packed with `{}`; send them as they are, or with gzip",
                String::from_utf8_lossy(other)
            ),
        )),
    }
}

fn internal(message: impl Into<String>) -> Status {
    Status::new(Code::Internal, message)
}

/// The status of a body that cannot be read, for messages of up to `limit` bytes.
fn failed(failed: Failed, limit: usize) -> Status {
    match failed {
        Failed::TooLarge(_) => larger(format!("more than {limit}"), limit),
        Failed::Full(status) => status,
        Failed::Gone => Status::new(Code::Cancelled, "the client ended the stream before the end of the message"),
        Failed::Damaged(error) => internal(format!("the message is not valid gzip: {error}")),
    }
}

// The words of gRPC in C++, which TensorFlow Serving uses.
fn larger(n: impl std::fmt::Display, limit: usize) -> Status {
    Status::new(Code::ResourceExhausted, format!("Received message larger than max ({n} vs. {limit})"))
}

/// The only message of a body, and whether it is packed.
fn message(mut body: Bytes, limit: usize) -> Answer<(bool, Bytes)> {
    if body.is_empty() {
        return Err(internal("the request has no message; expected one"));
    }
    if body.len() < HEAD {
        return Err(internal(format!("the request ends after {} bytes; a message takes at least {HEAD}", body.len())));
    }
    let (flag, length) = (body.get_u8(), body.get_u32() as usize);
    if flag > 1 {
        return Err(internal(format!("the flag of a message is {flag}; expected 0, or 1 for a packed message")));
    }
    if length > limit {
        return Err(larger(length, limit));
    }
    if length != body.len() {
        return Err(internal(format!("a message of {length} bytes has {}; expected one whole message", body.len())));
    }
    Ok((flag == 1, body))
}

/// A message with its head.
fn framed(mut bytes: Vec<u8>) -> Answer<Bytes> {
    let n = bytes.len() - HEAD;
    let length =
        u32::try_from(n).map_err(|_| internal(format!("the answer has {n} bytes, more than a message can")))?;
    bytes[0] = 0;
    bytes[1..HEAD].copy_from_slice(&length.to_be_bytes());
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_one_whole_message() {
        let read = |body: &'static [u8]| message(Bytes::from_static(body), 3).map_err(|status| status.message);
        assert_eq!(read(b"\0\0\0\0\x02ab"), Ok((false, Bytes::from_static(b"ab"))));
        assert_eq!(read(b"\x01\0\0\0\x00"), Ok((true, Bytes::new())));
        for (body, text) in [
            (&b""[..], "the request has no message"),
            (b"\0\0\0\0", "ends after 4 bytes"),
            (b"\x02\0\0\0\0", "the flag of a message is 2"),
            (b"\0\0\0\0\x04abcd", "Received message larger than max (4 vs. 3)"),
            (b"\0\xff\xff\xff\xff", "larger than max (4294967295 vs. 3)"),
            (b"\0\0\0\0\x02a", "a message of 2 bytes has 1"),
            (b"\0\0\0\0\0\0\0\0\0\0", "a message of 0 bytes has 5"),
        ] {
            let error = read(body).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
