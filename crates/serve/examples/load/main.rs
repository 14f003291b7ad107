//! Measures a server and its clients on one machine: processor time and latency of one-row
//! requests, throughput of large ones.
//!
//! `cargo run --profile dist -p estimand-serve --example load [-- SECONDS]`
//!
//! The model is a wide and deep classifier of eight columns, of which four are strings
//! (`model.rs`). The server is another process, so that its processor time can be told from that of
//! the clients (`client.rs`). `load export FOLDER` writes the model, also as ONNX, `load --serve
//! FOLDER` serves it, and `load ask ADDRESS PATH SECONDS CLIENTS` asks another server, for
//! `benches/compare/serve.sh`.

mod client;
#[path = "../../src/grpc/messages.rs"]
#[allow(dead_code, reason = "only one message is sent")]
mod messages;
mod model;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client::{Ask, Grpc, Rest};
use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use estimand_serve::Server;
use estimand_wire::TensorProto;
use messages::{ModelSpec, PredictRequest};
use model::{NUMBERS, WORDS, body, export, export_onnx, export_tiny};

/// The allocator of the program.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: estimand_serve::Allocator = estimand_serve::Allocator;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("--serve") if arguments.len() == 2 => return serve(Path::new(&arguments[1])),
        Some("export") if arguments.len() == 2 => {
            let folder = Path::new(&arguments[1]);
            return export(folder).and_then(|_| export_onnx(folder)).map(drop);
        }
        Some("ask") => return ask(&arguments[1..]),
        _ => {}
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
    let mut server = Server::new().rest_port(0).grpc_port(None).model("m", folder.join("export"));
    for other in ["tiny", "plain"].iter().filter(|name| folder.join(name).is_dir()) {
        server = server.model(*other, folder.join(other));
    }
    let running = server.start()?;
    println!("{}", running.rest_address().map_or(0, |address| address.port()));
    let _ = std::io::stdin().read(&mut [0]);
    running.shutdown();
    Ok(())
}

/// Processor time of a process, in microseconds.
fn processor_time(process: &Child) -> f64 {
    let mut clock = 0;
    // SAFETY: the call only writes the clock.
    match unsafe { libc::clock_getcpuclockid(process.id() as libc::pid_t, &mut clock) } {
        0 => time_of(clock) * 1e6,
        _ => 0.0,
    }
}

/// Resident memory of a process, in MiB.
fn resident(process: &Child) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let kilobytes = |line: &str| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok();
    status.lines().find_map(kilobytes).unwrap_or(0.0) / 1024.0
}

/// What happened in a short time.
#[derive(Clone, Copy)]
struct Window {
    n_requests: usize,
    processor_time: f64,
    /// Whether the host gave some of it to others.
    is_stolen: bool,
}

/// The length of a window.
const WINDOW: Duration = Duration::from_millis(50);

/// The processor time of a request: the median of the windows that the host left alone, and their
/// share of all. If those are few, all windows count.
fn time_of_request(windows: &[Window]) -> (f64, f64) {
    let cost = |window: &Window| (window.n_requests > 0).then(|| window.processor_time / window.n_requests as f64);
    let all: Vec<f64> = windows.iter().filter_map(cost).collect();
    let quiet: Vec<f64> = windows.iter().filter(|window| !window.is_stolen).filter_map(cost).collect();
    let share = quiet.len() as f64 / all.len().max(1) as f64;
    let mut counted = if quiet.len() >= 5 { quiet } else { all };
    counted.sort_by(f64::total_cmp);
    (percentile(&counted, 0.5), share)
}

/// Asks with some clients for a while: latencies in microseconds, sorted, and the time it took.
fn ask_for<A: Ask>(
    n_clients: usize,
    time: Duration,
    new: impl Fn() -> std::io::Result<A> + Sync,
) -> Result<(Vec<f64>, f64)> {
    ask_and_watch(n_clients, time, new, |_, _| {})
}

/// The same, while `watch` looks on: it gets the number of answers so far, and whether all clients
/// have ended.
fn ask_and_watch<A: Ask>(
    n_clients: usize,
    time: Duration,
    new: impl Fn() -> std::io::Result<A> + Sync,
    watch: impl FnOnce(&AtomicUsize, &dyn Fn() -> bool),
) -> Result<(Vec<f64>, f64)> {
    let failed = |e: std::io::Error| Error::io("the server", "ask", &e);
    let (start, n_answers) = (Instant::now(), AtomicUsize::new(0));
    let run = || -> std::io::Result<Vec<f64>> {
        let mut client = new()?;
        let mut all = Vec::new();
        while start.elapsed() < time {
            let asked = Instant::now();
            client.ask()?;
            all.push(asked.elapsed().as_secs_f64() * 1e6);
            n_answers.fetch_add(1, Ordering::Relaxed);
        }
        Ok(all)
    };
    let mut all = Vec::new();
    std::thread::scope(|threads| {
        let clients: Vec<_> = (0..n_clients).map(|_| threads.spawn(run)).collect();
        watch(&n_answers, &|| clients.iter().all(|client| client.is_finished()));
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

/// The seconds of a clock.
fn time_of(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes the struct.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Seconds of processor time of this thread: other programs do not disturb it.
fn thread_time() -> f64 {
    time_of(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// The time that the host of a virtual machine gave to others while this one wanted to run, and all
/// time, since the start. Programs count stolen time as their own.
fn stolen_and_all() -> Option<(f64, f64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let times: Vec<f64> = text.lines().next()?.split_whitespace().skip(1).take(8).flat_map(str::parse).collect();
    Some((*times.get(7)?, times.iter().sum()))
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

/// The server in another process.
struct Served {
    process: Child,
    address: SocketAddr,
}

impl Served {
    fn start(folder: &Path) -> Result<Served> {
        let program = std::env::current_exe().map_err(|e| Error::io("this program", "find", &e))?;
        let start = Instant::now();
        let mut process = Command::new(program)
            .args([Path::new("--serve"), folder])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| Error::io("this program", "start", &e))?;
        let mut line = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output).read_line(&mut line).map_err(|e| Error::io("the server", "read", &e))?;
        }
        println!("start_to_ready_ms = {:.1}", start.elapsed().as_secs_f64() * 1e3);
        let port = line.trim().parse().unwrap_or(0);
        Ok(Served { process, address: SocketAddr::from(([127, 0, 0, 1], port)) })
    }

    /// Measures one kind of request.
    fn measure<A: Ask>(
        &self,
        name: &str,
        n_clients: usize,
        time: Duration,
        new: impl Fn() -> std::io::Result<A> + Sync,
    ) -> Result<f64> {
        let now = |n_answers: usize| (n_answers, processor_time(&self.process), stolen_and_all().map(|(n, _)| n));
        let mut windows = Vec::new();
        let (all, took) = ask_and_watch(n_clients, time, new, |n_answers, are_done| {
            let mut before = now(0);
            while !are_done() {
                std::thread::sleep(WINDOW);
                let after = now(n_answers.load(Ordering::Relaxed));
                let (n_requests, processor_time) = (after.0 - before.0, after.1 - before.1);
                windows.push(Window { n_requests, processor_time, is_stolen: after.2 != before.2 });
                before = after;
            }
        })?;
        let (cpu, share) = time_of_request(&windows);
        println!("{name}_requests_per_s = {:.0}", all.len() as f64 / took);
        println!("{name}_server_cpu_us = {cpu:.1}");
        println!("{name}_quiet_percent = {:.0}", 100.0 * share);
        println!("{name}_p50_us = {:.0}", percentile(&all, 0.5));
        println!("{name}_p99_us = {:.0}", percentile(&all, 0.99));
        println!("{name}_resident_mb = {:.1}", resident(&self.process));
        Ok(cpu)
    }

    fn end(mut self) -> Result<()> {
        drop(self.process.stdin.take());
        self.process.wait().map_err(|e| Error::io("the server", "end", &e))?;
        Ok(())
    }
}

/// A request of gRPC for one row.
fn predict_request() -> Result<PredictRequest> {
    let mut inputs = BTreeMap::new();
    for name in WORDS {
        let array = Array::from_strings([1], [format!("{name}-3")])?;
        inputs.insert(name.to_string(), TensorProto::from_array(&array));
    }
    for name in NUMBERS {
        inputs.insert(name.to_string(), TensorProto::from_array(&Array::from([20.5f32])));
    }
    let model_spec = Some(ModelSpec { name: "m".into(), ..ModelSpec::default() });
    Ok(PredictRequest { model_spec, inputs, ..PredictRequest::default() })
}

/// Copies a folder without what an export says of itself: its columns are not counted.
fn copy_plain(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true if target.ends_with("assets.extra") => {}
            true => copy_plain(&path, &target)?,
            false => _ = std::fs::copy(path, target)?,
        }
    }
    Ok(())
}

fn measure(folder: &Path, time: Duration) -> Result<()> {
    let export = export(folder)?;
    export_tiny(folder)?;
    copy_plain(&export, &folder.join("plain/1")).map_err(|e| Error::io(folder, "copy", &e))?;
    let before = stolen_and_all();
    println!("one_row_in_process_cpu_us = {:.1}", in_process(&export)?);
    let server = Served::start(folder)?;
    let rest = |model: &str, body: &str| Rest::new(server.address, &format!("/v1/models/{model}:predict"), body);
    let (one, tiny) = (body(1), "{\"instances\": [3.5]}");
    ask_for(1, time / 10, || rest("m", &one))?;
    server.measure("rest_tiny_1_client", 1, time, || rest("tiny", tiny))?;
    server.measure("rest_1_client", 1, time, || rest("m", &one))?;
    server.measure("rest_8_clients", 8, time, || rest("m", &one))?;
    let request = predict_request()?;
    let grpc = || Grpc::new(server.address, "tensorflow.serving.PredictionService/Predict", &request);
    server.measure("grpc_1_client", 1, time, grpc)?;
    server.measure("grpc_8_clients", 8, time, grpc)?;
    let thousand = body(1_000);
    let (all, took) = ask_for(2, time, || rest("m", &thousand))?;
    println!("rest_1000_rows_per_s = {:.0}", all.len() as f64 * 1e3 / took);
    // In turns, so that a busy moment of the machine meets both.
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..6 {
        let model = ["m", "plain"][round % 2];
        let before = processor_time(&server.process);
        let (all, _) = ask_for(2, time / 2, || rest(model, &thousand))?;
        costs[round % 2].push((processor_time(&server.process) - before) / all.len() as f64 / 1e3);
    }
    let [with, without] = costs.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    });
    println!("row_server_cpu_us = {with:.3}");
    println!("row_server_cpu_without_drift_us = {without:.3}");
    if let (Some(before), Some(after)) = (before, stolen_and_all()) {
        println!("stolen_percent = {:.1}", 100.0 * (after.0 - before.0) / (after.1 - before.1).max(1.0));
    }
    server.end()
}

/// Asks another server with a body of one row: `ask ADDRESS PATH SECONDS CLIENTS`.
fn ask(arguments: &[String]) -> Result<()> {
    let wrong = || Error::config("usage: load ask ADDRESS PATH SECONDS CLIENTS");
    let [address, path, seconds, n_clients] = arguments else { return Err(wrong()) };
    let address: SocketAddr = address.parse().map_err(|_| wrong())?;
    let (seconds, n_clients) = (seconds.parse().map_err(|_| wrong())?, n_clients.parse().map_err(|_| wrong())?);
    let one = body(1);
    let (all, took) = ask_for(n_clients, Duration::from_secs_f64(seconds), || Rest::new(address, path, &one))?;
    println!("requests_per_s = {:.0}", all.len() as f64 / took);
    println!("p50_us = {:.0}", percentile(&all, 0.5));
    println!("p99_us = {:.0}", percentile(&all, 0.99));
    Ok(())
}
