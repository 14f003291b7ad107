//! A server of this process that speaks TLS, or plain HTTP.
//!
//! `server.pem` is a certificate of `localhost` and 127.0.0.1 until 2126, signed by the one in
//! `authority.pem`; both were made by `openssl x509`. Nobody else uses their keys.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The PEM file of the only authority that knows the server.
pub fn authority() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/download/authority.pem")
}

/// Serves for as long as the process lives.
pub struct Server {
    pub address: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// A server of some answers by their paths; each is everything that it says, head and body.
    pub fn start(is_secure: bool, answers: impl IntoIterator<Item = (&'static str, Vec<u8>)>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let scheme = if is_secure { "https" } else { "http" };
        let address = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (asked, answers) = (Arc::new(Mutex::new(Vec::new())), BTreeMap::from_iter(answers));
        let log = asked.clone();
        let tls = Arc::new(tls());
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let connection = connection.unwrap();
                // Clients that trust nobody hang up.
                let _ = match is_secure {
                    true => {
                        let tls = ServerConnection::new(tls.clone()).unwrap();
                        converse(StreamOwned::new(tls, connection), &answers, &log)
                    }
                    false => converse(connection, &answers, &log),
                };
            }
        });
        Server { address, asked }
    }

    /// The paths that it was asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn tls() -> ServerConfig {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("server_key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap()
}

fn converse(
    connection: impl Read + Write,
    answers: &BTreeMap<&'static str, Vec<u8>>,
    log: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut connection = BufReader::new(connection);
    let mut lines = Vec::new();
    while lines.last().is_none_or(|line: &String| !line.trim().is_empty()) {
        let mut line = String::new();
        if connection.read_line(&mut line)? == 0 {
            return Ok(());
        }
        lines.push(line);
    }
    let path = lines[0].split(' ').nth(1).unwrap().to_string();
    let missing = answer("404 Not Found", b"no");
    let answer = answers.get(path.as_str()).unwrap_or(&missing);
    log.lock().unwrap().push(path);
    connection.get_mut().write_all(answer)?;
    connection.get_mut().flush()
}

/// An answer with its length.
pub fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
