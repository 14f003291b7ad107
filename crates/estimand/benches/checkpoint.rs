//! Checkpoints against the disk: 256 MB of variables are written as a checkpoint, and the same
//! bytes as a plain file. `cargo bench --bench checkpoint`
//!
//! Prints the rate of the checkpoint over that of the file: the median of rounds in which both take
//! turns, since disks have moods.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use estimand::graph::checkpoint::BundleWriter;
use estimand::prelude::*;

const N_VARIABLES: usize = 64;
const FLOATS: usize = 1 << 20;
const ROUNDS: usize = 9;

/// Write and sync, no more.
fn plain(path: &Path, variables: &[Array]) -> std::io::Result<f64> {
    let start = Instant::now();
    let mut file = File::create(path)?;
    for variable in variables {
        file.write_all(variable.bytes())?;
    }
    file.sync_all()?;
    let seconds = start.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(seconds)
}

fn checkpoint(prefix: &Path, variables: &[Array]) -> Result<f64> {
    let start = Instant::now();
    let mut writer = BundleWriter::create(prefix)?;
    for (i, variable) in variables.iter().enumerate() {
        writer.add(&format!("layer_{i:02}/kernel"), variable)?;
    }
    writer.finish()?;
    Ok(start.elapsed().as_secs_f64())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let variable = |i: usize| Array::from((0..FLOATS).map(|k| (k ^ i) as f32).collect::<Vec<_>>());
    let variables: Vec<Array> = (0..N_VARIABLES).map(variable).collect();
    let folder = std::env::temp_dir().join(format!("estimand-checkpoint-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "create", &e))?;
    let (mut plain_times, mut times) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let path = folder.join("plain");
        let pair = (
            plain(&path, &variables).map_err(|e| Error::io(&path, "write", &e))?,
            checkpoint(&folder.join(format!("model.ckpt-{round}")), &variables)?,
        );
        // The first round finds an empty cache and a cold disk.
        if round > 0 {
            plain_times.push(pair.0);
            times.push(pair.1);
        }
        fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, "remove", &e))?;
        fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "create", &e))?;
    }
    fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, "remove", &e))?;
    let ratio = median(plain_times.iter().zip(&times).map(|(plain, own)| plain / own).collect());
    let rate = (N_VARIABLES * FLOATS * size_of::<f32>()) as f64 / 1e9;
    let (plain, own) = (rate / median(plain_times), rate / median(times));
    println!(
        "checkpoint_rate_ratio = {ratio:.2}    bound 0.60: {own:.2} GB/s against {plain:.2} GB/s of write and sync"
    );
    Ok(())
}
