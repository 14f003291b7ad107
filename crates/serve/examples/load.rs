//! Measures a server and its clients on one machine: processor time and latency of one-row
//! requests, throughput of large ones.
//!
//! `cargo run --release -p estimand-serve --example load [-- SECONDS]`
//!
//! The model is a wide and deep classifier of eight columns, of which four are strings. The server
//! is another process, so that its processor time can be told from that of the clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use estimand::export::Receiver;
use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use estimand_serve::Server;

const WORDS: [&str; 4] = ["job", "city", "school", "state"];
const NUMBERS: [&str; 4] = ["age", "hours", "gain", "loss"];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, folder] = &arguments[..]
        && flag == "--serve"
    {
        return serve(Path::new(folder));
    }
    let seconds = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(3.0);
    let folder = std::env::temp_dir().join(format!("estimand-load-{}", std::process::id()));
    let result = measure(&folder, Duration::from_secs_f64(seconds));
    // The folder is in the system's place for temporary files.
    let _ = std::fs::remove_dir_all(&folder);
    result
}

/// Serves the model until the input ends.
fn serve(folder: &Path) -> Result<()> {
    let start = Instant::now();
    let running = Server::new()
        .rest_port(0)
        .grpc_port(None)
        .model("m", folder.join("export"))
        .model("tiny", folder.join("tiny"))
        .start()?;
    let port = running.rest_address().map_or(0, |address| address.port());
    println!("{port} {}", start.elapsed().as_secs_f64() * 1e3);
    let _ = std::io::stdin().read(&mut [0]);
    running.shutdown();
    Ok(())
}

fn rows(n: usize) -> Result<Dataset> {
    let mut columns = Vec::new();
    for (k, name) in WORDS.iter().enumerate() {
        let words: Vec<String> = (0..n).map(|i| format!("{name}-{}", i * (k + 3) % 17)).collect();
        columns.push((*name, Array::from_strings([n], &words)?));
    }
    for (k, name) in NUMBERS.iter().enumerate() {
        columns.push((*name, Array::from((0..n).map(|i| (i * (k + 7) % 90) as f32).collect::<Vec<f32>>())));
    }
    columns.push(("label", Array::from((0..n).map(|i| (i % 3 == 0) as i64).collect::<Vec<i64>>())));
    Ok(Dataset::from_arrays(columns).label("label"))
}

fn export(folder: &Path) -> Result<PathBuf> {
    let data = rows(1_000)?.batch(100);
    let (mut wide, mut deep): (Vec<FeatureColumn>, Vec<FeatureColumn>) = (Vec::new(), Vec::new());
    for name in WORDS {
        let words: Vec<String> = (0..15).map(|i| format!("{name}-{i}")).collect();
        let column = categorical_column_with_vocabulary_list(name, words).n_oov_buckets(2);
        wide.push(column.clone().into());
        deep.push(embedding_column(column, 8).into());
    }
    for name in NUMBERS {
        wide.push(bucketized_column(&numeric_column(name), [10.0, 20.0, 40.0, 60.0]).into());
        deep.push(numeric_column(name).into());
    }
    let model = DnnLinearCombinedClassifier::new()
        .linear_feature_columns(wide)
        .dnn_feature_columns(deep)
        .dnn_hidden_units([100, 50])
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder.join("model"))
        .build()?;
    model.train(data.repeat(2))?;
    model.export_saved_model(folder.join("export"), Receiver::like(&data)?)
}

/// A model that costs almost nothing: what is left is the server.
fn export_tiny(folder: &Path) -> Result<PathBuf> {
    let rows = [("x", Array::from([1f32, 2.0])), ("y", Array::from([2f32, 4.0]))];
    let data = Dataset::from_arrays(rows).label("y").batch(2);
    let model = LinearRegressor::new([numeric_column("x").into()]).model_dir(folder.join("tiny-model")).build()?;
    model.train(data.repeat(2))?;
    model.export_saved_model(folder.join("tiny"), Receiver::like(&data)?)
}

fn body(n: usize) -> String {
    let row = |i: usize| {
        let words = WORDS.iter().enumerate().map(|(k, name)| format!("\"{name}\": \"{name}-{}\"", i * (k + 5) % 17));
        let numbers = NUMBERS.iter().enumerate().map(|(k, name)| format!("\"{name}\": {}.5", i * (k + 3) % 90));
        format!("{{{}}}", words.chain(numbers).collect::<Vec<_>>().join(", "))
    };
    format!("{{\"instances\": [{}]}}", (0..n).map(row).collect::<Vec<_>>().join(", "))
}

struct Client {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Client {
    fn new(address: SocketAddr, model: &str, body: &str) -> std::io::Result<Client> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let head = format!(
            "POST /v1/models/{model}:predict HTTP/1.1\r\nhost: localhost\r\naccept: */*\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let request = [head.as_bytes(), body.as_bytes()].concat();
        Ok(Client { stream: BufReader::with_capacity(1 << 16, stream), request, reply: Vec::new() })
    }

    /// Sends the request and reads the whole answer.
    fn ask(&mut self) -> std::io::Result<()> {
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
        if is_ok { Ok(()) } else { Err(std::io::Error::other(String::from_utf8_lossy(&self.reply).into_owned())) }
    }
}

/// Processor time and resident memory of a process, in microseconds and MiB.
fn usage(process: &Child) -> (f64, f64) {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", process.id())).unwrap_or_default();
    let stat = read("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    let resident = read("status");
    let resident =
        resident.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse().ok());
    // A tick is 10 ms on Linux.
    ((ticks(11) + ticks(12)) * 1e4, resident.unwrap_or(0.0) / 1024.0)
}

/// Asks with some clients for a while: latencies in microseconds, sorted, and the time it took.
fn ask_for(address: SocketAddr, model: &str, n_clients: usize, body: &str, time: Duration) -> Result<(Vec<f64>, f64)> {
    let failed = |e: std::io::Error| Error::io("the server", "ask", &e);
    let start = Instant::now();
    let run = || -> std::io::Result<Vec<f64>> {
        let mut client = Client::new(address, model, body)?;
        let mut all = Vec::new();
        while start.elapsed() < time {
            let asked = Instant::now();
            client.ask()?;
            all.push(asked.elapsed().as_secs_f64() * 1e6);
        }
        Ok(all)
    };
    let mut all = Vec::new();
    std::thread::scope(|threads| {
        let clients: Vec<_> = (0..n_clients).map(|_| threads.spawn(run)).collect();
        for client in clients {
            let answered = client.join().unwrap_or_else(|_| Err(std::io::Error::other("a client panicked")));
            all.extend(answered.map_err(failed)?);
        }
        Ok::<(), Error>(())
    })?;
    let took = start.elapsed().as_secs_f64();
    all.sort_by(f64::total_cmp);
    Ok((all, took))
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    sorted.get(((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// Seconds of processor time of this thread: other programs do not disturb it.
fn thread_time() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes the struct.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Processor time of one row, without a server.
fn in_process(export: &Path) -> Result<f64> {
    let signature = SavedModel::open(export)?.signature("serving_default")?;
    let word = |name: &str| Array::from_strings([1], [format!("{name}-3")]);
    let mut feeds = Vec::new();
    for name in WORDS {
        feeds.push((name, word(name)?));
    }
    feeds.extend(NUMBERS.map(|name| (name, Array::from([20.5f32]))));
    let n = 20_000;
    let mut start = thread_time();
    for i in 0..n + n / 10 {
        if i == n / 10 {
            start = thread_time();
        }
        signature.run(&feeds)?;
    }
    Ok((thread_time() - start) * 1e6 / n as f64)
}

fn measure(folder: &Path, time: Duration) -> Result<()> {
    let export = export(folder)?;
    export_tiny(folder)?;
    println!("one_row_in_process_cpu_us = {:.1}", in_process(&export)?);
    let program = std::env::current_exe().map_err(|e| Error::io("this program", "find", &e))?;
    let mut server = Command::new(program)
        .args([Path::new("--serve"), folder])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| Error::io("this program", "start", &e))?;
    let mut line = String::new();
    if let Some(output) = server.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(|e| Error::io("the server", "read", &e))?;
    }
    let (port, start_ms) = line.trim().split_once(' ').unwrap_or(("0", "0"));
    println!("start_to_ready_ms = {start_ms:.6}");
    let address = SocketAddr::from(([127, 0, 0, 1], port.parse().unwrap_or(0)));
    let one = body(1);
    ask_for(address, "m", 1, &one, time / 10)?;
    let tiny = "{\"instances\": [3.5]}";
    for (name, model, body, n_clients) in [
        ("tiny_1_client", "tiny", tiny, 1),
        ("tiny_8_clients", "tiny", tiny, 8),
        ("1_client", "m", &one, 1),
        ("8_clients", "m", &one, 8),
    ] {
        let (before, _) = usage(&server);
        let (all, took) = ask_for(address, model, n_clients, body, time)?;
        let (after, resident) = usage(&server);
        println!("rest_{name}_requests_per_s = {:.0}", all.len() as f64 / took);
        println!("rest_{name}_server_cpu_us = {:.1}", (after - before) / all.len() as f64);
        println!("rest_{name}_p50_us = {:.0}", percentile(&all, 0.5));
        println!("rest_{name}_p99_us = {:.0}", percentile(&all, 0.99));
        println!("rest_{name}_resident_mb = {resident:.1}");
    }
    let (all, took) = ask_for(address, "m", 2, &body(1_000), time)?;
    println!("rest_1000_rows_per_s = {:.0}", all.len() as f64 * 1e3 / took);
    drop(server.stdin.take());
    server.wait().map_err(|e| Error::io("the server", "end", &e))?;
    Ok(())
}
