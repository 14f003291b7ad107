//! Readers of a folder in which a training saves and removes checkpoints as fast as it can.

use std::time::{Duration, Instant};

use super::{Bench, Law};
use crate::experiment::{Experiment, Verdict};
use crate::outcome::{brief, check_checkpoints};
use crate::victim::{End, Ran};

pub const LAW: Law = Law {
    name: "readers",
    promise: "Evaluations and predictions during a training that removes checkpoints do not fail.",
    experiment: "Two processes evaluate and predict in a loop beside a training that saves every step and keeps two checkpoints",
    experiments,
};

fn experiments(bench: &Bench) -> Vec<Experiment<'_>> {
    let (n, reads) = if bench.is_full { (4, 60) } else { (1, 25) };
    (0..n).map(|i| Experiment::new(format!("readers/{i}"), move || read(bench, reads))).collect()
}

fn read(bench: &Bench, reads: u64) -> Result<Verdict, String> {
    let folder = bench.folder()?;
    let (model, root) = (folder.model(), folder.root());
    let failed = |e: std::io::Error| e.to_string();
    let mut trainer = bench.place.run(root, &["fast", "model", "1000000"]).start().map_err(failed)?;
    let began = Instant::now();
    while !model.join("checkpoint").exists() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let reader = || bench.place.run(root, &["read", "model", &reads.to_string()]).start().map_err(failed);
    let (first, second) = (reader()?, reader()?);
    let read = [first.finish().map_err(failed)?, second.finish().map_err(failed)?];
    let was_training = trainer.is_running().map_err(failed)?;
    trainer.kill().map_err(failed)?;
    let trained = trainer.finish().map_err(failed)?;
    if !was_training {
        return Err(format!("the training ended before its readers: {}", brief(&trained.stderr)));
    }
    let counts: Vec<u64> = read.iter().map(count).collect::<Result<_, _>>()?;
    check_checkpoints(&model)?;
    Ok(Verdict::Held(counts.iter().sum()))
}

/// Returns the number of reads; an error if one of them failed.
fn count(ran: &Ran) -> Result<u64, String> {
    if ran.end != End::Code(0) {
        return Err(format!("a reader ended with {:?}: {}", ran.end, brief(&ran.stderr)));
    }
    let failures: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("failed: ")).collect();
    let n = ran.stdout.lines().filter(|line| line.starts_with("read ")).count() as u64;
    match failures.first() {
        None => Ok(n),
        Some(first) => Err(format!("{} of {n} reads failed, the first: {}", failures.len(), brief(first))),
    }
}
