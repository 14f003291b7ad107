//! Whole training steps, each with the time it cannot beat. `cargo bench --bench steps`
//!
//! Prints `name = value` lines; `benches/compare/run.sh` reads them beside TensorFlow's.

use std::time::Instant;

use estimand::prelude::*;

#[path = "../../../benches/models.rs"]
#[allow(dead_code, reason = "no user of it needs all of them")]
mod models;

use models::{Model, integers, uniform};

/// The best mean of several rounds, in microseconds a step: the machine is shared, so only the best is the program's own.
fn measure(model: &Model, threads: usize, feeds: &[Array], steps: usize) -> Result<f64> {
    let mut session = Session::with(&model.graph, Cpu::with_threads(threads), 1)?;
    let feeds = model.feeds(feeds);
    let mut outputs = Vec::new();
    let mut best = f64::MAX;
    for round in 0..8 {
        let start = Instant::now();
        for _ in 0..steps {
            session.run_into(&[&model.train], &feeds, &mut outputs)?;
        }
        if round > 0 {
            best = best.min(start.elapsed().as_secs_f64() * 1e6 / steps as f64);
        }
    }
    Ok(best)
}

fn main() -> Result<()> {
    let iris = [uniform("x", &[32, 4])?, integers("y", &[32], 3)?];
    // 32 x (4x10 + 10x10 + 10x3) x 2 forward, twice that backward: 33 kFLOP, 0.2 us at 150 GFLOP/s; the rest is calls.
    println!("iris_step_us = {:.2}", measure(&models::iris(), 1, &iris, 5_000)?);

    let cnn = [uniform("x", &[128, 28, 28, 1])?, integers("y", &[128], 10)?];
    // 1.36 GFLOP issued in convolutions, 0.18 in layers: 5.1 ms on two threads at 150 GFLOP/s each.
    println!("cnn_step_ms = {:.3}", measure(&models::cnn(), 2, &cnn, 20)? / 1e3);

    // 4,096 rows and accumulators of 128 bytes, each read and written, and the gradients read twice: 2.5 MiB, at random for large tables.
    for (name, rows) in [("sparse_adagrad_100k_us", 100_000), ("sparse_adagrad_10m_us", 10_000_000)] {
        let feeds = [integers("ids", &[4_096], rows as i64)?, uniform("rows", &[4_096, 32])?];
        println!("{name} = {:.1}", measure(&models::sparse_update(rows, 32), 2, &feeds, 100)?);
    }

    // 4,096 rows of 128 bytes read twice and written once, accumulators read and written, at random: 4,096 x 5 x 2 cache lines.
    for (name, rows) in [("lookup_step_us", 100_000), ("lookup_large_step_us", 1_000_000)] {
        let feeds = [integers("ids", &[512, 8], rows as i64)?, uniform("y", &[512, 1])?];
        println!("{name} = {:.1}", measure(&models::lookup(rows, 32, 8), 2, &feeds, 200)?);
    }
    Ok(())
}
