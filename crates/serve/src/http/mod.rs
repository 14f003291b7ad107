//! Connections: HTTP/1 and HTTP/2 on every port, REST and gRPC on every connection.
//!
//! `listen` accepts connections, and `route.rs` finds who answers. A small request is answered
//! where it is read: `again.rs` and `streams.rs` spare the scheduler.

mod again;
mod route;
mod streams;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;

use crate::core::Core;
use again::Again;
use route::ReplyBody;
use streams::{OnePiece, Streams};

/// The first bytes of an HTTP/2 connection; no request of HTTP/1 begins with them. All are awaited:
/// what follows has no time limit of its own.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The wait after an error of the operating system, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The wait between two looks at a connection that has sent too little to know its protocol.
const PEEK_PAUSE: Duration = Duration::from_millis(5);
const MAX_STREAMS: u32 = 1_024;
const WINDOW_BYTES: u32 = 1 << 20;

/// Accepts connections until `stop` changes. Each holds a copy of `open` while it lives.
pub(crate) async fn listen(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    core: Arc<Core>,
    mut stop: watch::Receiver<bool>,
    open: mpsc::Sender<Infallible>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => return,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (core, stop, open, tls) = (Arc::clone(&core), stop.clone(), open.clone(), tls.clone());
                tokio::spawn(Again::new(async move {
                    connection(stream, peer, tls, core, stop).await;
                    drop(open);
                }));
            }
            Err(error) => {
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<TlsAcceptor>,
    core: Arc<Core>,
    mut stop: watch::Receiver<bool>,
) {
    // Answers are small: waiting for more to send only adds latency.
    let _ = stream.set_nodelay(true);
    let limit = core.settings.head_timeout;
    let Some(tls) = tls else {
        let version = tokio::select! {
            version = tokio::time::timeout(limit, is_http2(&stream)) => version,
            _ = stop.changed() => return,
        };
        // A client that sends nothing, or that is gone.
        let Ok(Some(is_http2)) = version else { return };
        // In a box: a connection that says nothing takes no room for requests.
        return Box::pin(serve(stream, is_http2, peer, core, stop)).await;
    };
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(limit, tls.accept(stream)) => accepted,
        _ = stop.changed() => return,
    };
    match accepted {
        Ok(Ok(stream)) => {
            let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            Box::pin(serve(stream, is_http2, peer, core, stop)).await;
        }
        Ok(Err(error)) => tracing::debug!("connection from {peer}: {error}"),
        Err(_) => tracing::debug!("connection from {peer}: no handshake within {} ms", limit.as_millis()),
    }
}

/// Answers the requests of a connection until it ends.
async fn serve<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: T,
    is_http2: bool,
    peer: SocketAddr,
    core: Arc<Core>,
    mut stop: watch::Receiver<bool>,
) {
    let head_timeout = core.settings.head_timeout;
    let max_head_bytes = core.settings.max_head_bytes;
    let service = service_fn(move |request: Request<Incoming>| {
        let core = Arc::clone(&core);
        // In a box: the future has some thousand bytes, and the writers of HTTP move it about.
        Box::pin(async move { Ok::<Response<ReplyBody>, Infallible>(route::answer(core, request, peer).await) })
    });
    // Errors of a connection are the client's: it went away, or does not speak HTTP.
    let result = if is_http2 {
        let streams = Streams::default();
        let connection = hyper::server::conn::http2::Builder::new(streams.clone())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(u32::try_from(max_head_bytes).unwrap_or(u32::MAX))
            .initial_stream_window_size(WINDOW_BYTES)
            .initial_connection_window_size(4 * WINDOW_BYTES)
            .keep_alive_interval(Some(head_timeout))
            .serve_connection(TokioIo::new(OnePiece(stream)), service);
        let mut connection = pin!(connection);
        tokio::select! {
            result = streams.read(connection.as_mut()) => result,
            _ = stop.changed() => {
                connection.as_mut().graceful_shutdown();
                streams.read(connection).await
            }
        }
    } else {
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head_timeout)
            .max_buf_size(max_head_bytes)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = pin!(connection);
        tokio::select! {
            result = connection.as_mut() => result,
            _ = stop.changed() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!("connection from {peer}: {error}");
    }
}

/// Whether a client speaks HTTP/2; `None` if it has closed the connection.
async fn is_http2(stream: &TcpStream) -> Option<bool> {
    let mut head = [0; HTTP2.len()];
    loop {
        let n = stream.peek(&mut head).await.ok()?;
        if n == 0 {
            return None;
        }
        if n == HTTP2.len() || head[..n] != HTTP2[..n] {
            return Some(head[..n] == *HTTP2);
        }
        tokio::time::sleep(PEEK_PAUSE).await;
    }
}
