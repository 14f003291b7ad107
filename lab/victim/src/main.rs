//! The training that the laboratory disturbs: a short program that uses every writer of the
//! library.
//!
//! `estimand-lab-victim train FOLDER` writes rows (CSV, TFRecord), adapts columns to them, trains
//! with a disk cache, two evaluation sets, early stopping, an exporter, summaries and a CSV log,
//! and writes the report. All schedules are in steps. It prints the results that must be the same
//! after any disturbance. `estimand-lab-victim fast FOLDER N` trains N steps, saves a checkpoint at
//! each and keeps two. `estimand-lab-victim read FOLDER N` evaluates and predicts N times with the
//! checkpoints of that other process.
//!
//! `VICTIM_STEP_MS` sets the minimum duration of a step in milliseconds.

mod model;
mod race;
mod whole;

use std::path::PathBuf;
use std::process::ExitCode;

use estimand::console::{self, Level};
use estimand::prelude::*;

fn run() -> Result<()> {
    console::verbosity(Level::Warn);
    let usage = || Error::config("usage: estimand-lab-victim train FOLDER | fast FOLDER N | read FOLDER N");
    let mut arguments = std::env::args().skip(1);
    let (mode, folder) = (arguments.next().ok_or_else(usage)?, arguments.next().ok_or_else(usage)?);
    let folder = PathBuf::from(folder);
    let mut number = || arguments.next().and_then(|text| text.parse().ok()).ok_or_else(usage);
    match mode.as_str() {
        "train" => whole::train(&folder),
        "fast" => race::train(&folder, number()?),
        "read" => race::read(&folder, number()?),
        _ => Err(usage()),
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
