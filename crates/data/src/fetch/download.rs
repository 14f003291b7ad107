//! Fetches a file over https. Built with the feature `download` only.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use estimand_tensor::{Error, Result, Sha256};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// How long the other side may say nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of a file.
const MAX_BYTES: u64 = 1 << 30;

/// Writes what an address answers with to a sink that is made once the answer begins; returns the
/// sink and the SHA-256.
///
/// `authorities` is a PEM file of the certificates to trust instead of the usual ones.
pub(super) fn get<W: Write>(
    address: &str,
    authorities: Option<&Path>,
    sink: impl FnOnce() -> Result<W>,
) -> Result<(W, String)> {
    let failed = |why: String| Error::data(format!("cannot fetch {address}: {why}"));
    let agent = agent(address, authorities)?;
    let mut answer = agent.get(address).call().map_err(|e| failed(e.to_string()))?;
    // Redirects that are not followed, and parts of a file, are no errors to the client.
    if answer.status() != 200 {
        let location = answer.headers().get("location").and_then(|value| value.to_str().ok());
        let to = location.map_or(String::new(), |location| format!(" and points to {location}"));
        return Err(failed(format!("the server answers {}{to}", answer.status())));
    }
    let length = answer.body().content_length();
    if let Some(length) = length.filter(|length| *length > MAX_BYTES) {
        return Err(failed(too_long(length, MAX_BYTES)));
    }
    let mut sink = sink()?;
    let digest = copy(answer.body_mut().as_reader(), &mut sink, MAX_BYTES).map_err(failed)?;
    Ok((sink, digest))
}

/// The client for an address.
fn agent(address: &str, authorities: Option<&Path>) -> Result<ureq::Agent> {
    let is_secure = address.starts_with("https://");
    let is_local = is_on_this_machine(address);
    if !is_secure && !is_local {
        return Err(Error::unsupported(format!("`{address}` is not an https:// address"))
            .help("use https://; plain http:// is allowed only for servers on this machine"));
    }
    let mut tls = TlsConfig::builder();
    if let Some(path) = authorities {
        tls = tls.root_certs(certificates(path)?);
    }
    let mut config = ureq::Agent::config_builder()
        .https_only(is_secure)
        .tls_config(tls.build())
        .user_agent("estimand")
        .timeout_resolve(Some(PATIENCE))
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_per_read(Some(PATIENCE))
        .timeout_per_write(Some(PATIENCE));
    if !is_secure {
        // Where they lead to may be another machine.
        config = config.max_redirects(0);
    }
    if is_local {
        config = config.proxy(None);
    }
    Ok(config.build().into())
}

/// Whether the host of an address is this machine by its very name.
fn is_on_this_machine(address: &str) -> bool {
    let Some((_, rest)) = address.split_once("://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    ["localhost", "127.0.0.1", "[::1]"].into_iter().any(|name| match host.strip_prefix(name) {
        Some("") => true,
        Some(port) => port.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit())),
        None => false,
    })
}

/// The certificates of a PEM file, as the only ones to trust.
fn certificates(path: &Path) -> Result<RootCerts> {
    let pem = std::fs::read(path).map_err(|e| Error::io(path, "read", &e))?;
    let mut all = Vec::new();
    for item in parse_pem(&pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => all.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(Error::data(format!("the certificates cannot be read: {error}")).in_file(path)),
        }
    }
    if all.is_empty() {
        return Err(Error::data("the file has no certificate").in_file(path).help("give a file in PEM format"));
    }
    Ok(RootCerts::new_with_certs(&all))
}

/// Copies a body of at most `limit` bytes; returns its SHA-256.
fn copy(mut body: impl Read, sink: &mut impl Write, limit: u64) -> Result<String, String> {
    let mut buffer = vec![0; 1 << 16];
    let (mut digest, mut n_bytes) = (Sha256::new(), 0);
    loop {
        let n = match body.read(&mut buffer) {
            Ok(0) => return Ok(digest.finish()),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(format!("the download failed after {n_bytes} bytes: {error}")),
        };
        n_bytes += n as u64;
        if n_bytes > limit {
            return Err(too_long(n_bytes, limit));
        }
        digest = digest.update(&buffer[..n]);
        sink.write_all(&buffer[..n]).map_err(|e| format!("the file cannot be written: {e}"))?;
    }
}

fn too_long(length: u64, limit: u64) -> String {
    format!("the file has {length} bytes or more; at most {limit} are fetched")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_bodies_end_at_the_limit() {
        let mut sink = Vec::new();
        let error = copy(io::repeat(7), &mut sink, 100_000).unwrap_err();
        assert!(error.contains("at most 100000"), "{error}");
        assert!(sink.len() <= 100_000);
        let exactly = copy(io::repeat(b'a').take(1000), &mut sink, 1000).unwrap();
        assert_eq!(exactly, "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3");
    }

    #[test]
    fn names_of_this_machine() {
        for address in ["http://localhost", "http://localhost:80/a", "http://127.0.0.1:1234/", "http://[::1]:9/x"] {
            assert!(is_on_this_machine(address), "{address}");
        }
        for address in [
            "localhost",
            "http://localhost.example.org/",
            "http://localhost@example.org/",
            "http://127.0.0.1:80@example.org/",
            "http://127.0.0.11/",
            "http://example.org/localhost",
        ] {
            assert!(!is_on_this_machine(address), "{address}");
        }
        let error = agent("http://example.org/x", None).unwrap_err().to_string();
        assert!(error.contains("is not an https:// address"), "{error}");
        assert!(agent("ftp://localhost/x", None).is_ok_and(|agent| agent.get("ftp://localhost/x").call().is_err()));
    }
}
