//! A minimal HTTP/1.1 client that fetches files.
//!
//! It supports plain `http://` over one connection. TLS would be most of the crate's build, and
//! needs a C compiler or an assembler. Files with a known digest are verified.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use estimand_tensor::{Error, Result};

/// The timeout for the server to send something.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest line of a response head, and the largest number of lines.
const MAX_LINE: u64 = 8 << 10;
const MAX_LINES: usize = 128;
/// The largest number of bytes of a body.
const MAX_BODY: u64 = 1 << 30;

/// Fetches the body at an address.
pub(crate) fn get(address: &str) -> Result<Vec<u8>> {
    let failed = |message: String| Error::data(format!("cannot fetch {address}: {message}"));
    let (host, path) = parse(address)?;
    let connection = connect(&host).map_err(|e| failed(e.to_string()))?;
    exchange(connection, &host, &path).map_err(failed)
}

/// Splits an address into the host with its port, and the path.
fn parse(address: &str) -> Result<(String, String)> {
    let Some(rest) = address.strip_prefix("http://") else {
        return Err(Error::unsupported(format!("`{address}` is no http:// address"))
            .help("https is not spoken here: fetch the file by other means, and put it into the folder"));
    };
    // Other bytes could end the request line.
    if !rest.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(Error::config(format!("the address {address:?} has spaces or characters beyond ASCII")));
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    // Colons before a bracket belong to an IPv6 address.
    let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
    let host = if has_port { host.to_string() } else { format!("{host}:80") };
    Ok((host, format!("/{path}")))
}

fn connect(host: &str) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::other("the host has no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(connection) => {
                connection.set_read_timeout(Some(PATIENCE))?;
                connection.set_write_timeout(Some(PATIENCE))?;
                return Ok(connection);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn exchange(mut connection: impl Read + Write, host: &str, path: &str) -> Result<Vec<u8>, String> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: estimand\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(request.as_bytes()).map_err(|e| e.to_string())?;
    respond(&mut BufReader::new(connection))
}

/// Reads a response and returns its body.
fn respond(answer: &mut impl BufRead) -> Result<Vec<u8>, String> {
    let status = line(answer)?;
    let code = status.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)).unwrap_or("");
    let (mut length, mut chunked, mut location) = (None, false, None);
    for n_lines in 0.. {
        let header = line(answer)?;
        if header.is_empty() {
            break;
        }
        if n_lines == MAX_LINES {
            return Err(format!("more than {MAX_LINES} header lines"));
        }
        let (name, value) = header.split_once(':').ok_or_else(|| format!("the header line {header:?}"))?;
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = Some(value.parse().map_err(|_| format!("a length of {value:?}"))?),
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => chunked = true,
            "transfer-encoding" => return Err(format!("the transfer encoding {value:?}")),
            "location" => location = Some(value.to_string()),
            _ => {}
        }
    }
    match (code, location) {
        ("200", _) => {}
        (_, Some(location)) => return Err(format!("it answers {status:?} and points to {location}")),
        _ => return Err(format!("it answers {status:?}")),
    }
    match length {
        _ if chunked => chunks(answer),
        Some(length) => exactly(answer, length),
        None => {
            let mut body = Vec::new();
            answer.take(MAX_BODY + 1).read_to_end(&mut body).map_err(|e| e.to_string())?;
            if body.len() as u64 > MAX_BODY { Err(too_long(body.len() as u64)) } else { Ok(body) }
        }
    }
}

fn chunks(answer: &mut impl BufRead) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    loop {
        let head = line(answer)?;
        let size = head.split(';').next().unwrap_or("").trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| format!("a chunk of {size:?} bytes"))?;
        if size == 0 {
            return Ok(body);
        }
        // Checked before the chunk is read.
        if size > MAX_BODY - body.len() as u64 {
            return Err(too_long(size));
        }
        body.extend(exactly(answer, size)?);
        if !line(answer)?.is_empty() {
            return Err("a chunk longer than it says".to_string());
        }
    }
}

fn exactly(answer: &mut impl BufRead, length: u64) -> Result<Vec<u8>, String> {
    if length > MAX_BODY {
        return Err(too_long(length));
    }
    let mut body = Vec::new();
    answer.take(length).read_to_end(&mut body).map_err(|e| e.to_string())?;
    if body.len() as u64 == length { Ok(body) } else { Err(format!("{} of {length} bytes came", body.len())) }
}

fn too_long(length: u64) -> String {
    format!("{length} bytes; at most {MAX_BODY} are fetched")
}

/// Reads a line of a response head, without its line end.
fn line(answer: &mut impl BufRead) -> Result<String, String> {
    let mut line = Vec::new();
    answer.take(MAX_LINE).read_until(b'\n', &mut line).map_err(|e| e.to_string())?;
    if line.pop() != Some(b'\n') {
        return Err("the answer ends early, or has a line without end".to_string());
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| "a header that is not text".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<String, String> {
        respond(&mut text.as_bytes()).map(|body| String::from_utf8(body).unwrap())
    }

    #[test]
    fn bodies_by_length_by_chunk_and_to_the_end() {
        assert_eq!(answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcd").unwrap(), "abc");
        assert_eq!(answer("HTTP/1.0 200 OK\n\nabcd").unwrap(), "abcd");
        let chunked =
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3;x=1\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(answer(chunked).unwrap(), "abc0123456789");
    }

    #[test]
    fn odd_answers_are_refused_with_what_was_found() {
        for (text, found) in [
            ("", "ends early"),
            ("HTTP/1.1 404 Not Found\r\n\r\n", "404 Not Found"),
            ("HTTP/1.1 301 Moved\r\nLocation: https://x/\r\n\r\n", "points to https://x/"),
            ("HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", "\"nonsense\""),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", "3 of 9 bytes"),
            ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "a length of \"-1\""),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", "at most"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "\"gzip\""),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "at most"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", "longer than it says"),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", "\"xyz\""),
        ] {
            let error = answer(text).unwrap_err();
            assert!(error.contains(found), "{found}: {error}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(1000));
        assert!(answer(&endless).unwrap_err().contains("more than 128"));
        assert!(answer(&"x".repeat(100_000)).unwrap_err().contains("without end"));
    }

    #[test]
    fn addresses() {
        let host = |address| parse(address).map(|(host, path)| host + " " + &path);
        assert_eq!(host("http://example.org").unwrap(), "example.org:80 /");
        assert_eq!(host("http://example.org:8080/a/b.gz").unwrap(), "example.org:8080 /a/b.gz");
        assert_eq!(host("http://[::1]/x").unwrap(), "[::1]:80 /x");
        assert_eq!(host("http://[::1]:90/x").unwrap(), "[::1]:90 /x");
        assert!(host("https://example.org/").unwrap_err().to_string().contains("https is not spoken"));
        assert!(host("http://example.org/a b").unwrap_err().to_string().contains("spaces"));
    }
}
