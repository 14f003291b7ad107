//! Rows of concurrent requests are run together: same bits, bounded waiting, bounded queues.

use std::io::Write;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use estimand_serve::BatchingParameters;
use serde_json::json;

use crate::client::Client;
use crate::models::{classifier, rest, served, server};

const CITIES: [&str; 4] = ["Rome", "Oslo", "Bergen", "K\u{f6}ln"];

fn body(i: usize, n_rows: usize) -> String {
    let row = |k: usize| json!({"size": 20.0 + (i * 7 + k) as f64 * 1.37, "city": CITIES[(i + k) % 4]});
    json!({"instances": (0..n_rows).map(row).collect::<Vec<_>>()}).to_string()
}

/// The number of rows that the model ran, and the number of its runs: the page counts requests, so
/// runs are seen only by their effect on time. Bits are compared with a server that joins nothing.
#[test]
fn a_row_has_the_same_bits_alone_and_in_a_batch() {
    let folder = served(classifier(0), 1);
    let alone = server().model("flats", folder.path()).start().unwrap();
    let parameters = BatchingParameters::new()
        .max_batch_size(64)
        .batch_timeout(Duration::from_millis(20))
        .num_batch_threads(2)
        .max_enqueued_batches(100);
    let joined = server().model("flats", folder.path()).batching(parameters).start().unwrap();
    let mut client = rest(&alone);
    // Requests of different sizes; one is larger than a batch and runs alone.
    let n_rows = |i: usize| if i == 5 { 100 } else { 1 + i % 3 };
    let expected: Vec<String> =
        (0..24).map(|i| client.post("/v1/models/flats:predict", &body(i, n_rows(i))).text()).collect();
    let barrier = Barrier::new(expected.len());
    std::thread::scope(|threads| {
        for (i, expected) in expected.iter().enumerate() {
            let (barrier, joined) = (&barrier, &joined);
            threads.spawn(move || {
                let mut client = rest(joined);
                for _ in 0..5 {
                    barrier.wait();
                    let reply = client.post("/v1/models/flats:predict", &body(i, n_rows(i)));
                    assert_eq!((reply.status, &reply.text()), (200, expected));
                }
            });
        }
    });
}

/// Two requests that fill a batch do not wait for its time limit; one alone does.
#[test]
fn a_full_batch_does_not_wait() {
    let folder = served(classifier(0), 1);
    let parameters = BatchingParameters::new().max_batch_size(2).batch_timeout(Duration::from_millis(1_500));
    let running = server().model("flats", folder.path()).batching(parameters).start().unwrap();
    let ask = || {
        let start = Instant::now();
        assert_eq!(rest(&running).post("/v1/models/flats:predict", &body(0, 1)).status, 200);
        start.elapsed()
    };
    std::thread::scope(|threads| {
        let both = [threads.spawn(ask), threads.spawn(ask)];
        for thread in both {
            assert!(thread.join().unwrap() < Duration::from_millis(1_000));
        }
    });
    let alone = ask();
    assert!(alone >= Duration::from_millis(1_400), "{alone:?}");
}

/// Wrong rows of one request do not fail the others in its batch.
#[test]
fn a_wrong_request_fails_alone() {
    let folder = served(classifier(0), 1);
    let parameters = BatchingParameters::new().batch_timeout(Duration::from_millis(100)).num_batch_threads(1);
    let running = server().model("flats", folder.path()).batching(parameters).start().unwrap();
    let barrier = Barrier::new(6);
    std::thread::scope(|threads| {
        for i in 0..6 {
            let (barrier, running) = (&barrier, &running);
            threads.spawn(move || {
                let mut client = rest(running);
                // An example without its size is refused when it is parsed, inside of the run.
                let example =
                    if i == 3 { json!({"city": "Oslo"}) } else { json!({"city": "Oslo", "size": 50.0 + i as f64}) };
                let body = json!({"signature_name": "regression", "examples": [example]}).to_string();
                barrier.wait();
                let reply = client.post("/v1/models/flats:regress", &body);
                assert_eq!(reply.status, if i == 3 { 400 } else { 200 }, "{}", reply.text());
            });
        }
    });
}

/// A full queue answers 429 with a hint when to come back; a request that waits too long 504.
#[test]
fn full_queues_and_deadlines() {
    let folder = served(classifier(0), 1);
    let parameters = BatchingParameters::new()
        .max_batch_size(2)
        .max_enqueued_batches(1)
        .batch_timeout(Duration::from_secs(60))
        .num_batch_threads(1);
    let running = server()
        .model("flats", folder.path())
        .batching(parameters)
        .timeout(Duration::from_millis(800))
        .start()
        .unwrap();
    let body = body(0, 1);
    let mut refused = None;
    // On a busy machine a request may be late before another one meets it.
    while refused.is_none() {
        std::thread::scope(|threads| {
            // It may meet the two rows of the client below: then it tries again, as it is told.
            let waiting = threads.spawn(|| {
                loop {
                    let reply = rest(&running).post("/v1/models/flats:predict", &body);
                    if reply.status != 429 {
                        return reply;
                    }
                }
            });
            // Two more rows do not fit beside the one that waits. Until it waits, they fill a
            // batch.
            let mut client = rest(&running);
            while refused.is_none() && !waiting.is_finished() {
                let reply = client.post("/v1/models/flats:predict", &self::body(1, 2));
                refused = Some(reply).filter(|reply| reply.status != 200);
            }
            let late = waiting.join().unwrap();
            assert_eq!(late.status, 504, "{}", late.text());
            assert!(late.error().contains("time limit of 800 ms"));
        });
    }
    let reply = refused.unwrap();
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("1")), "{}", reply.text());
    assert!(reply.error().contains("queue to which this task was submitted is full"));
    // The late request has left the queue: others fit again, and fill a batch.
    let reply = rest(&running).post("/v1/models/flats:predict", &self::body(1, 2));
    assert_eq!(reply.status, 200, "{}", reply.text());
}

/// A client that goes away frees its place in the queue.
#[test]
fn cancelled_requests_are_dropped() {
    let folder = served(classifier(0), 1);
    let parameters = BatchingParameters::new()
        .max_batch_size(2)
        .max_enqueued_batches(1)
        .batch_timeout(Duration::from_secs(60))
        .num_batch_threads(1);
    let running = server().model("flats", folder.path()).batching(parameters).start().unwrap();
    let body = body(0, 1);
    for _ in 0..5 {
        let mut gone = Client::new(running.rest_address().unwrap());
        let head =
            format!("POST /v1/models/flats:predict HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        gone.stream.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(30));
    }
    std::thread::sleep(Duration::from_millis(100));
    let reply = rest(&running).post("/v1/models/flats:predict", &self::body(1, 2));
    assert_eq!(reply.status, 200, "{}", reply.text());
}
