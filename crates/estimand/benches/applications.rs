//! Networks of `keras.applications`: milliseconds of a forward pass and of a training step over 8
//! images of 224 x 224 pixels, and the most memory of the process.
//!
//! ```text
//! cargo bench -p estimand --bench applications -- [resnet50 | mobile_net_v2 | inception_v3] [ROUNDS]
//! ```
//!
//! `benches/compare/applications.sh` runs it beside tf.keras and, if it is there, PyTorch.

use std::time::Instant;

use estimand::keras::applications::{self, Application};
use estimand::keras::{Compile, Model};
use estimand::prelude::*;

const BATCH: usize = 8;
const SIZE: usize = 224;

/// Numbers from -1 to 1 without a pattern, the same on every machine.
fn images() -> Result<Array> {
    let number = |i: usize| {
        let mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    Array::from_vec([BATCH, SIZE, SIZE, 3], (0..BATCH * SIZE * SIZE * 3).map(number).collect())
}

fn network(name: &str) -> Result<Application> {
    let network = match name {
        "resnet50" => applications::resnet50(),
        "mobile_net_v2" => applications::mobile_net_v2(),
        "inception_v3" => applications::inception_v3(),
        _ => return Err(Error::config(format!("there is no network `{name}`"))),
    };
    Ok(network.input_shape([SIZE, SIZE, 3]))
}

/// The shortest of some rounds in milliseconds, after one that is not counted.
fn best(rounds: usize, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    run()?;
    let mut best = f64::INFINITY;
    for _ in 0..rounds {
        let started = Instant::now();
        run()?;
        best = best.min(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(best)
}

/// The most memory that the process has had, in MiB; 0 where the system does not say.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}

fn run(name: &str, rounds: usize) -> Result<()> {
    let mut model: Model = network(name)?.build()?;
    let (x, y) = (images()?, Array::from_vec([BATCH], (0..BATCH as i64).map(|i| i * 37).collect())?);
    let forward = best(rounds, || model.predict(&x).map(drop))?;
    println!("{name}_forward_ms = {forward:.1}");
    println!("{name}_forward_mib = {}", peak());
    let sgd = Optimizer::keras(Sgd::default().momentum(0.9), 0.0001);
    model.compile(Compile::new(sgd, "sparse_categorical_crossentropy"))?;
    let step = best(rounds, || model.train_on_batch((&x, &y)).map(drop))?;
    println!("{name}_step_ms = {step:.1}");
    println!("{name}_step_mib = {}", peak());
    Ok(())
}

fn main() -> Result<()> {
    // Cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let rounds = arguments.get(1).and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    match arguments.first() {
        Some(name) => run(name, rounds),
        None => ["resnet50", "mobile_net_v2", "inception_v3"].into_iter().try_for_each(|name| run(name, rounds)),
    }
}
