//! Memory of reading what does not fit in it:
//! `cargo bench -p estimand-data --bench streaming -- [GIGABYTES]`.
//!
//! CSV rows are made as they are read, from a named pipe, so that no disk is needed: by default 10
//! GB of them are shuffled in blocks, batched and read ahead. The target is a peak below 300 MB;
//! the bound is what was asked for: the block of the shuffle, the chunks of the reader.
#![allow(clippy::print_stdout)] // a bench prints

use std::io::Write;
use std::time::Instant;

use estimand_data::Csv;
use estimand_tensor::{DType, FeatureSpec, Result};

fn main() -> Result<()> {
    let size = std::env::args().skip(1).find_map(|argument| argument.parse::<f64>().ok()).unwrap_or(10.0);
    let pipe = std::env::temp_dir().join(format!("estimand-streaming-{}.csv", std::process::id()));
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("not measured: there is no mkfifo here");
        return Ok(());
    }
    let bytes = (size * 1e9) as u64;
    let path = pipe.clone();
    let writer = std::thread::spawn(move || write(&path, bytes));

    let start = Instant::now();
    let csv = Csv::new(&pipe).header(false).column_names(["id", "amount", "city", "rich"]).label("rich");
    let csv = csv
        .feature("id", FeatureSpec::dense(DType::I64, []))
        .feature("amount", FeatureSpec::dense(DType::F32, []))
        .feature("city", FeatureSpec::dense(DType::Str, []))
        .feature("rich", FeatureSpec::dense(DType::I32, []));
    let mut n_rows = 0;
    for batch in &csv.dataset().shuffle(100_000, 7).batch(256).prefetch(2) {
        n_rows += batch?.n_rows();
    }
    let seconds = start.elapsed().as_secs_f64();
    let _ = writer.join();
    let _ = std::fs::remove_file(&pipe);
    let peak = peak_memory();
    println!("streamed_gb = {size} ({n_rows} rows, {:.0} MB/s)", size * 1e3 / seconds);
    println!("streaming_peak_mb = {:.0} (target 300)", peak as f64 / 1e6);
    Ok(())
}

fn write(path: &std::path::Path, n_bytes: u64) {
    let mut block = Vec::new();
    for i in 0..20_000_u64 {
        let _ = writeln!(block, "{i},{}.25,city-{},{}", i * 7919 % 100_000, i % 977, i % 2);
    }
    let mut pipe = std::fs::OpenOptions::new().write(true).open(path).expect("the pipe");
    let mut left = n_bytes;
    while left > 0 && pipe.write_all(&block).is_ok() {
        left = left.saturating_sub(block.len() as u64);
    }
}

/// The most memory that this process had, in bytes; 0 where the system does not say.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(0, |kb| kb * 1024)
}
