//! Hostile, slow and large clients, and the end of the server.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use estimand_serve::{BatchingParameters, ModelConfig};

use crate::client::Client;
use crate::models::{classifier, rest, served, server};

const BODY: &str = r#"{"instances": [{"size": 80.0, "city": "Oslo"}]}"#;
const PREDICT: &str = "/v1/models/flats:predict";

#[test]
fn bodies_have_a_limit() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).max_body_bytes(10_000).start().unwrap();
    let reply = rest(&running).ask("POST", PREDICT, &[], &[b' '; 10_001]);
    assert_eq!((reply.status, reply.error().contains("more than 10000 bytes")), (413, true));
    // A length that is only claimed is refused before a byte arrives.
    let mut client = rest(&running);
    let head = format!("POST {PREDICT} HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000000\r\n\r\n");
    client.stream.get_mut().write_all(head.as_bytes()).unwrap();
    assert_eq!(client.read("POST").status, 413);
    // Without a length the bytes are counted.
    let mut client = rest(&running);
    let head = format!("POST {PREDICT} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    client.stream.get_mut().write_all(head.as_bytes()).unwrap();
    for _ in 0..3 {
        let _ = client.stream.get_mut().write_all(format!("1000\r\n{}\r\n", " ".repeat(4_096)).as_bytes());
    }
    assert_eq!(client.read("POST").status, 413);
    // Chunks of a good body are one body.
    let mut client = rest(&running);
    let (a, b) = BODY.split_at(20);
    let chunks = format!("{:x}\r\n{a}\r\n{:x}\r\n{b}\r\n0\r\n\r\n", a.len(), b.len());
    client.stream.get_mut().write_all(format!("{head}{chunks}").as_bytes()).unwrap();
    assert_eq!(client.read("POST").status, 200);
    let shared = server().model("flats", folder.path()).max_total_bytes(30).start().unwrap();
    assert_eq!(rest(&shared).post(PREDICT, BODY).status, 429);
    let none = server().model("flats", folder.path()).max_requests(0).start().unwrap();
    assert_eq!(rest(&none).post(PREDICT, BODY).status, 429);
    assert_eq!(rest(&none).get("/healthz").status, 200, "health is always answered");
}

/// Packed bodies are unpacked up to the limit: a bomb of 50 KB would be 50 MB.
#[test]
fn packed_bodies() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).max_body_bytes(1 << 20).start().unwrap();
    let pack = crate::grpc::gzip;
    let gzip = [("content-encoding", "gzip")];
    let mut client = rest(&running);
    let packed = client.ask("POST", PREDICT, &gzip, &pack(BODY.as_bytes()));
    assert_eq!((packed.status, packed.text()), (200, client.post(PREDICT, BODY).text()));
    assert_eq!(client.ask("POST", PREDICT, &gzip, &pack(&vec![b' '; 50_000_000])).status, 413);
    assert_eq!(client.ask("POST", PREDICT, &gzip, b"not gzip").status, 400);
    assert_eq!(client.ask("POST", PREDICT, &[("content-encoding", "br")], b"x").status, 415);
}

#[test]
fn heads_have_a_limit() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).start().unwrap();
    let mut client = rest(&running);
    let reply = client.ask("GET", "/v1/models/flats", &[("x-long", &"x".repeat(100_000))], b"");
    assert_eq!(reply.status, 431);
    // A head without an end is cut: the server does not collect it.
    let mut endless = rest(&running);
    endless.stream.get_mut().write_all(b"GET / HTTP/1.1\r\nx: ").unwrap();
    let mut n_sent = 0;
    while n_sent < 50 << 20 && endless.stream.get_mut().write_all(&[b'x'; 1 << 16]).is_ok() {
        n_sent += 1 << 16;
    }
    assert!(n_sent < 50 << 20, "{n_sent} bytes of a head were taken");
    let mut client = rest(&running);
    client.stream.get_mut().write_all(b"\x16\x03\x01\x02\0 this is not HTTP\r\n\r\n").unwrap();
    assert_eq!(client.read("GET").status, 400);
    assert_eq!(rest(&running).post(PREDICT, BODY).status, 200);
}

/// Clients that send nothing, half a head, or half a body are let go; others are not disturbed.
#[test]
fn slow_clients_are_let_go() {
    let folder = served(classifier(0), 1);
    let limit = Duration::from_millis(300);
    let running = server().model("flats", folder.path()).head_timeout(limit).timeout(limit).start().unwrap();
    let address = running.rest_address().unwrap();
    let start = Instant::now();
    let body = format!("POST {PREDICT} HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n{{\"inst");
    let texts = ["", "P", "PRI * HTTP/2.0\r\n", "POST /v1/mod", "GET / HTTP/1.1\r\nx: ", &body];
    let mut slow: Vec<TcpStream> = Vec::new();
    for text in texts {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        slow.push(stream);
    }
    assert_eq!(rest(&running).post(PREDICT, BODY).status, 200);
    for (stream, text) in slow.iter_mut().zip(texts) {
        let mut all = Vec::new();
        // An answer (408) or nothing, and then the end of the connection.
        match stream.read_to_end(&mut all) {
            Ok(_) => {}
            // What was sent was not read.
            Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(e) => panic!("{text:?}: {e}"),
        }
        let answer = String::from_utf8_lossy(&all);
        assert!(answer.is_empty() || answer.contains(" 408 "), "{text:?}: {answer}");
    }
    assert!(start.elapsed() < Duration::from_secs(15));
}

/// A model that is busy refuses more requests; others answer.
#[test]
fn a_model_has_its_own_limit() {
    let folder = served(classifier(0), 1);
    let batching = BatchingParameters::new().batch_timeout(Duration::from_millis(300)).num_batch_threads(1);
    let busy = ModelConfig::new("busy", folder.path()).max_requests(1);
    let running = server().batching(batching).model_config(busy).model("free", folder.path()).start().unwrap();
    let body = r#"{"instances": [{"size": 1.0, "city": "Oslo"}]}"#;
    let codes: Vec<u16> = std::thread::scope(|threads| {
        let ask = |model: &'static str| rest(&running).post(&format!("/v1/models/{model}:predict"), body);
        let asking: Vec<_> = (0..4).map(|_| threads.spawn(move || ask("busy").status)).collect();
        assert_eq!(ask("free").status, 200);
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(codes.contains(&200) && codes.contains(&429), "{codes:?}");
    let reply = rest(&running).post("/v1/models/busy:predict", body);
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// Requests that have begun are answered; new connections are refused.
#[test]
fn a_graceful_end() {
    let folder = served(classifier(0), 1);
    let batching = BatchingParameters::new().batch_timeout(Duration::from_millis(400));
    let running = server().model("flats", folder.path()).batching(batching).start().unwrap();
    let address = running.rest_address().unwrap();
    let asked = std::thread::spawn(move || Client::new(address).post(PREDICT, BODY));
    let _idle = Client::new(address);
    std::thread::sleep(Duration::from_millis(100));
    let start = Instant::now();
    running.shutdown();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!(asked.join().unwrap().status, 200);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn headers_metrics_and_other_methods() {
    let folder = served(classifier(0), 1);
    let running = server().model("flats", folder.path()).cors().start().unwrap();
    let mut client = rest(&running);
    let trace = [("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), ("x-request-id", "7")];
    let reply = client.ask("POST", PREDICT, &trace, BODY.as_bytes());
    assert_eq!((reply.header("x-request-id"), reply.header("traceparent")), (Some("7"), Some(trace[0].1)));
    assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
    assert_eq!(client.ask("OPTIONS", PREDICT, &[("origin", "https://example.org")], b"").status, 200);
    assert_eq!(client.ask("OPTIONS", PREDICT, &[], b"").status, 400);
    let head = client.ask("HEAD", "/v1/models/flats", &[], b"");
    assert_eq!((head.status, head.header("content-length").is_some()), (200, true));
    assert_eq!(client.ask("DELETE", "/v1/models/flats", &[], b"").status, 400);
    client.post(PREDICT, "{}");
    client.post("/v1/models/no:predict", BODY);
    let page = client.get("/monitoring/prometheus/metrics");
    assert_eq!(page.header("content-type"), Some("text/plain; charset=utf-8"));
    for line in [
        "# TYPE :tensorflow:serving:request_count counter",
        ":tensorflow:serving:request_count{model_name=\"flats\",status=\"OK\"} 1",
        ":tensorflow:serving:request_count{model_name=\"flats\",status=\"INVALID_ARGUMENT\"} 1",
        ":tensorflow:serving:request_latency_count{model_name=\"flats\",API=\"predict\",entrypoint=\"REST\"} 1",
        ":tensorflow:serving:runtime_latency_count{model_name=\"flats\",API=\"Predict\",runtime=\"Estimand\"} 1",
        ":tensorflow:serving:request_example_count_total{model=\"flats\"} 1",
    ] {
        assert!(page.text().lines().any(|found| found == line), "{line} is not in {}", page.text());
    }
}
