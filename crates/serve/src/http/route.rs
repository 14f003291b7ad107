//! Finds who answers a request: gRPC by its content type, everything else by its path.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};

use crate::body::{self, Failed, Whole};
use crate::core::Core;
use crate::infer::Deadline;
use crate::rest::{self, Reply};
use crate::{grpc, kserve, metrics, page};

/// The body of a response: bytes, or that of gRPC.
pub(super) type ReplyBody = Either<Full<Bytes>, grpc::ReplyBody>;

/// Headers that trace a request through several services. They are sent back.
const TRACING: [HeaderName; 3] = [
    HeaderName::from_static("x-request-id"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// The size of a request's head. The reader of connections stops only at a multiple of the limit.
fn head_bytes(request: &Request<Incoming>) -> usize {
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    request.uri().path().len() + request.uri().query().map_or(0, str::len) + fields.sum::<usize>()
}

/// Answers a request.
pub(super) async fn answer(core: Arc<Core>, request: Request<Incoming>, peer: SocketAddr) -> Response<ReplyBody> {
    let limit = core.settings.max_head_bytes;
    if head_bytes(&request) > limit {
        let reply = Reply::failure_with(431, &format!("the head of the request has more than {limit} bytes"));
        return response(&core, reply, &HeaderMap::new(), false);
    }
    if grpc::is_grpc(request.headers()) {
        return grpc::answer(core, request).await.map(Either::Right);
    }
    let start = Instant::now();
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let reply = plain(&core, &parts.method, &parts.uri, &parts.headers, body).await;
    if core.settings.has_access_log {
        tracing::info!(
            target: "estimand_serve::access",
            "{peer} \"{} {path}\" {} {} bytes {} us",
            parts.method,
            reply.status,
            reply.body.len(),
            start.elapsed().as_micros()
        );
    }
    let is_head = parts.method == Method::HEAD;
    response(&core, reply, &parts.headers, is_head)
}

/// Answers a request that is not gRPC.
async fn plain(core: &Core, method: &Method, uri: &Uri, headers: &HeaderMap, body: Incoming) -> Reply {
    let path = uri.path();
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    if method == Method::OPTIONS && path.starts_with("/v1/") {
        return preflight(headers);
    }
    if is_read {
        match path {
            "/" => return Reply::html(page::HTML),
            "/healthz" => return health(core),
            "/livez" => return Reply::text("ok\n"),
            _ => {}
        }
    }
    if let Err(status) = core.settings.tokens.check(headers) {
        return Reply::failure(&status);
    }
    if is_read {
        match path {
            page::DATA => return Reply::json(page::data(core)),
            _ if core.settings.metrics_path.as_deref() == Some(path) => {
                return Reply::text(metrics::page(&core.models));
            }
            _ => {}
        }
    }
    let _admitted = match core.admit() {
        Ok(share) => share,
        Err(status) => return Reply::failure(&status),
    };
    let limit = core.settings.timeout;
    let deadline = Deadline::after(Some(limit));
    let whole = match deadline.wait(body::read(core, body, core.settings.max_body_bytes)).await {
        Ok(read) => match read.map_err(refusal).and_then(|whole| unpacked(core, headers, whole)) {
            Ok(whole) => whole,
            Err(reply) => return reply,
        },
        // The client is too slow: this is its time, not ours.
        Err(_) => return Reply::failure_with(408, &format!("the body did not arrive within {} ms", limit.as_millis())),
    };
    let reply = if path == "/v2" || path.starts_with("/v2/") {
        let length = headers.get(kserve::JSON_LENGTH).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        kserve::answer(core, method.as_str(), path, length, &whole.bytes, deadline).await
    } else if path.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("/v1/")) {
        rest::answer(core, method.as_str(), path, uri.query(), &whole.bytes, deadline).await
    } else {
        Reply::failure_with(
            404,
            &format!("there is nothing at {path}; models are at /v1/models/NAME and /v2/models/NAME, and a page at /"),
        )
    };
    drop(whole.share);
    reply
}

/// The body as it was before the client packed it.
fn unpacked<'a>(core: &'a Core, headers: &HeaderMap, mut whole: Whole<'a>) -> Result<Whole<'a>, Reply> {
    match headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase()).as_deref() {
        None | Some(b"" | b"identity") => Ok(whole),
        Some(b"gzip") => {
            let packed = whole.bytes.clone();
            whole.bytes = whole.unpack(&packed, core, core.settings.max_body_bytes).map_err(refusal)?;
            Ok(whole)
        }
        Some(other) => Err(Reply::failure_with(
            415,
            &format!("the body is packed with `{}`; send it as it is, or with gzip", String::from_utf8_lossy(other)),
        )),
    }
}

fn refusal(failed: Failed) -> Reply {
    let (status, text) = match failed {
        Failed::Full(status) => return Reply::failure(&status),
        Failed::TooLarge(limit) => {
            (413, format!("the body of the request has more than {limit} bytes, which is the limit"))
        }
        Failed::Gone => (400, "the client ended the connection before the end of the body".to_string()),
        Failed::Damaged(error) => (400, format!("the body is not valid gzip: {error}")),
    };
    Reply::failure_with(status, &text)
}

/// Whether the server can answer: for load balancers and Kubernetes.
fn health(core: &Core) -> Reply {
    match core.is_ready() {
        true => Reply::text("ok\n"),
        false => Reply { status: 503, ..Reply::text("not ready\n") },
    }
}

/// The question of a browser, whether a page of another site may ask.
fn preflight(headers: &HeaderMap) -> Reply {
    let origin = headers.get(header::ORIGIN).map_or(&b""[..], HeaderValue::as_bytes);
    if origin.starts_with(b"http://") || origin.starts_with(b"https://") {
        return Reply::text("");
    }
    Reply::failure_with(400, "Origin header is missing in CORS preflight")
}

fn response(core: &Core, reply: Reply, asked: &HeaderMap, is_head: bool) -> Response<ReplyBody> {
    let n = reply.body.len();
    let body = if is_head { Bytes::new() } else { Bytes::from(reply.body) };
    let mut response = Response::new(Either::Left(Full::new(body)));
    *response.status_mut() =
        hyper::StatusCode::from_u16(reply.status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    if reply.content_type == rest::HTML {
        // The page needs nothing from elsewhere, and nothing may put itself around it.
        let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
                      connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    }
    if is_head {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(n));
    }
    if let Some(length) = reply.json_length {
        headers.insert(HeaderName::from_static(kserve::JSON_LENGTH), HeaderValue::from(length));
    }
    for name in TRACING {
        if let Some(value) = asked.get(&name) {
            headers.insert(name, value.clone());
        }
    }
    if reply.status == 401 {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if reply.status == 429 {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if core.settings.has_cors {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET"));
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Content-Type"));
    }
    response
}
