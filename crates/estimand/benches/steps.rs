//! Whole training steps, each with the time it cannot beat. `cargo bench --bench steps`
//!
//! Prints `name = value` lines; `benches/compare/steps.sh` reads them beside TensorFlow's.

use std::time::Instant;

use estimand::graph::Cpu;
use estimand::prelude::*;

#[path = "../../../benches/models.rs"]
#[allow(dead_code, reason = "no user of it needs all of them")]
mod models;

use models::{Model, integers, uniform};

/// The best mean of several rounds, in microseconds a step: the machine is shared, so only the best
/// is the program's own.
fn measure(model: &Model, threads: usize, feeds: &[Array], steps: usize) -> Result<f64> {
    measure_batches(model, threads, &[feeds.to_vec()], steps)
}

/// As `measure`, going round some batches.
fn measure_batches(model: &Model, threads: usize, batches: &[Vec<Array>], steps: usize) -> Result<f64> {
    let mut session = Session::with(&model.graph, Cpu::with_threads(threads), 1)?;
    let batches: Vec<_> = batches.iter().map(|feeds| model.feeds(feeds)).collect();
    let mut outputs = Vec::new();
    let mut best = f64::MAX;
    for round in 0..8 {
        let start = Instant::now();
        for step in 0..steps {
            session.run_into(&[&model.train], &batches[step % batches.len()], &mut outputs)?;
        }
        if round > 0 {
            best = best.min(start.elapsed().as_secs_f64() * 1e6 / steps as f64);
        }
    }
    Ok(best)
}

/// The best mean time of a prediction of one row on one thread, in microseconds.
fn one_row(model: &Model, feeds: &[Array]) -> Result<f64> {
    let mut session = Session::with(&model.graph, Cpu::with_threads(1), 1)?;
    let feeds = model.feeds(feeds);
    let mut outputs = Vec::new();
    let mut best = f64::MAX;
    for _ in 0..8 {
        let start = Instant::now();
        for _ in 0..1_000 {
            session.run_into(&[&model.logits], &feeds, &mut outputs)?;
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}

/// A figure, with the time that the bytes and operations of the work take at the machine's rates,
/// and what these are.
fn report(name: &str, value: f64, bound: f64, why: &str) {
    println!("{name} = {value:.2}    bound {bound:.1}: {why}");
}

fn main() -> Result<()> {
    let iris = [uniform("x", &[32, 4])?, integers("y", &[32], 3)?];
    let time = measure(&models::iris(), 1, &iris, 5_000)?;
    report("iris_step_us", time, 0.2, "33 kFLOP at 150 GFLOP/s; the rest is 30 calls of kernels");

    let cnn = [uniform("x", &[128, 28, 28, 1])?, integers("y", &[128], 10)?];
    let time = measure(&models::cnn(), 2, &cnn, 20)? / 1e3;
    report(
        "cnn_step_ms",
        time,
        5.5,
        "1.36 GFLOP issued in convolutions, 0.18 in layers, at 140 GFLOP/s on each of 2 threads",
    );

    let lstm = [uniform("x", &[32, 50, 64])?, uniform("y", &[32, 1])?];
    let time = measure(&models::lstm(50, 64, 64), 2, &lstm, 20)? / 1e3;
    report(
        "lstm_step_ms",
        time,
        0.9,
        "0.26 GFLOP in five products of 1,600 x 64 by 64 x 256 at 140 GFLOP/s on each of 2 threads",
    );

    for (name, rows) in [("sparse_adagrad_100k_us", 100_000), ("sparse_adagrad_10m_us", 10_000_000)] {
        let feeds = [integers("ids", &[4_096], rows as i64)?, uniform("rows", &[4_096, 32])?];
        let time = measure(&models::sparse_update(rows, 32), 2, &feeds, 100)?;
        report(
            name,
            time,
            60.0,
            "4,096 rows of weights and slots read and written, gradients read twice: 3 MiB at 50 GB/s",
        );
    }

    for (name, rows) in [("lookup_step_us", 100_000), ("lookup_large_step_us", 1_000_000)] {
        let feeds = [integers("ids", &[512, 8], rows as i64)?, uniform("y", &[512, 1])?];
        let time = measure(&models::lookup(rows, 32, 8), 2, &feeds, 200)?;
        report(
            name,
            time,
            90.0,
            "the update above, and 4,096 rows gathered, summed and spread again: 4.5 MiB at 50 GB/s",
        );
    }

    let feeds = [integers("ids", &[4_096], 1_000_000)?, uniform("rows", &[4_096, 32])?];
    let time = measure(&models::unique_lookup(1_000_000, 32), 1, &feeds, 100)?;
    report(
        "unique_lookup_us",
        time,
        110.0,
        "4,096 ids hashed, rows gathered, combined, spread, weights and slots read and written: 5.5 MiB at 50 GB/s",
    );

    let model = models::ctr(1_000_000, 32);
    let time = one_row(&model, &models::ctr_batch(0, 1)?)?;
    report("ctr_one_row_us", time, 2.5, "a prediction of one row: 0.4 MB of weights read from the cache at 160 GB/s");

    let batches = (0..64).map(|seed| models::ctr_batch(seed, 512)).collect::<Result<Vec<_>>>()?;
    let time = measure_batches(&model, 2, &batches, 128)? / 1e3;
    report(
        "ctr_step_ms",
        time,
        1.2,
        "0.31 GFLOP in layers at 140 GFLOP/s on each of 2 threads; 4,096 ids and their rows as above",
    );
    Ok(())
}
