//! Clients: REST over HTTP/1, and gRPC over HTTP/2.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::{BufMut, Bytes, BytesMut};
use estimand_wire::Message;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::runtime::Runtime;

/// One connection that asks the same again and again.
pub trait Ask {
    /// Sends the request and reads the whole answer.
    fn ask(&mut self) -> Result<()>;
}

/// A client of REST.
pub struct Rest {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Rest {
    pub fn new(address: SocketAddr, path: &str, body: &str) -> Result<Rest> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), body.as_bytes()].concat();
        Ok(Rest { stream: BufReader::with_capacity(1 << 16, stream), request, reply: Vec::new() })
    }
}

impl Ask for Rest {
    fn ask(&mut self) -> Result<()> {
        self.stream.get_mut().write_all(&self.request)?;
        let (mut line, mut length, mut is_ok) = (String::new(), 0, false);
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            is_ok |= line.starts_with("HTTP/1.1 200");
            if let Some(n) = line.strip_prefix("content-length: ") {
                length = n.trim().parse().unwrap_or(0);
            }
            if line == "\r\n" {
                break;
            }
        }
        self.reply.resize(length, 0);
        self.stream.read_exact(&mut self.reply)?;
        if is_ok { Ok(()) } else { Err(Error::other(String::from_utf8_lossy(&self.reply).into_owned())) }
    }
}

/// A client of gRPC.
pub struct Grpc {
    runtime: Runtime,
    sender: SendRequest<Full<Bytes>>,
    path: String,
    message: Bytes,
}

impl Grpc {
    pub fn new(address: SocketAddr, method: &str, message: &impl Message) -> Result<Grpc> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let sender = runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let made = handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
            let (sender, connection) = made.map_err(Error::other)?;
            tokio::spawn(connection);
            Ok::<_, Error>(sender)
        })?;
        let mut framed = BytesMut::new();
        framed.put_u8(0);
        framed.put_u32(message.encoded_len() as u32);
        message.encode(&mut framed).map_err(Error::other)?;
        Ok(Grpc { runtime, sender, path: format!("http://{address}/{method}"), message: framed.freeze() })
    }
}

impl Ask for Grpc {
    fn ask(&mut self) -> Result<()> {
        let request = hyper::Request::post(&self.path)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(Full::new(self.message.clone()))
            .map_err(Error::other)?;
        let Grpc { runtime, sender, .. } = self;
        runtime.block_on(async {
            let response = sender.send_request(request).await.map_err(Error::other)?;
            let head = response.headers().clone();
            let body = response.into_body().collect().await.map_err(Error::other)?;
            let end = body.trailers().cloned().unwrap_or(head);
            match end.get("grpc-status").map(|status| status.as_bytes()) {
                Some(b"0") => Ok(()),
                status => Err(Error::other(format!("the status is {status:?}"))),
            }
        })
    }
}
