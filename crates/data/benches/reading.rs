//! How fast files become batches: `cargo bench -p estimand-data --bench reading`.
//!
//! The adult census data, a hundred times over, as CSV and as TFRecord of `tf.Example`s, read to
//! batches of 256 with all their strings. Beside each rate stands its bound: the same bytes read
//! from the file and nothing done with them. Every figure is the best of several runs.
//!
//! With `ESTIMAND_BENCH_FOLDER` the files are left there for the peer, see
//! `benches/compare/input.sh`.
#![allow(clippy::print_stdout)] // a bench prints

use std::hint::black_box;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use estimand_data::{Csv, Dataset, datasets};
use estimand_tensor::Result;

const N_COPIES: u64 = 100;
const BATCH: usize = 256;
const N_RUNS: usize = 4;

fn main() -> Result<()> {
    let kept = std::env::var_os("ESTIMAND_BENCH_FOLDER").map(PathBuf::from);
    let own = std::env::temp_dir().join(format!("estimand-reading-{}", std::process::id()));
    let folder = kept.as_ref().unwrap_or(&own);
    std::fs::create_dir_all(folder).expect("a folder to write to");
    let (csv, records) = (folder.join("adult.csv"), folder.join("adult.tfrecord"));

    let adult = datasets::load("adult", "train")?.dataset();
    adult.repeat(N_COPIES).write_csv(&csv)?;
    let columns = Csv::new(&csv);
    report("csv", &csv, &columns.clone().dataset().batch(BATCH))?;
    // The same rows, with the 64-bit integers that Examples have.
    let specs = columns.dataset().spec()?;
    let wide = specs.into_iter().map(|(name, spec)| (name, widened(&spec))).collect::<Vec<_>>();
    let rows = Csv::new(&csv).features(wide.clone()).dataset();
    rows.take(32_561).write_tfrecord(folder.join("once.tfrecord"))?;
    let once = std::fs::read(folder.join("once.tfrecord")).expect("the file");
    std::fs::write(&records, once.repeat(N_COPIES as usize)).expect("space on the disk");
    report("tfrecord", &records, &Dataset::from_tfrecord(&records, wide).batch(BATCH))?;

    if kept.is_none() {
        let _ = std::fs::remove_dir_all(&own);
    }
    Ok(())
}

fn widened(spec: &estimand_tensor::FeatureSpec) -> estimand_tensor::FeatureSpec {
    use estimand_tensor::{DType, FeatureSpec};
    match spec.dtype() {
        DType::Str => FeatureSpec::dense(DType::Str, []),
        _ => FeatureSpec::dense(DType::I64, []),
    }
}

/// Rows a second, and what reading the bytes alone would allow.
fn report(name: &str, path: &Path, data: &Dataset) -> Result<()> {
    let (mut best, mut bound, mut n_rows) = (f64::INFINITY, f64::INFINITY, 0);
    for _ in 0..N_RUNS {
        let start = Instant::now();
        n_rows = 0;
        for batch in data {
            n_rows += black_box(batch?).n_rows();
        }
        best = best.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let mut file = std::fs::File::open(path).expect("the file");
        let mut buffer = vec![0; 256 << 10];
        while file.read(&mut buffer).expect("its bytes") > 0 {
            black_box(&mut buffer);
        }
        bound = bound.min(start.elapsed().as_secs_f64());
    }
    let rate = |seconds: f64| n_rows as f64 / seconds;
    println!("{name}_rows_s = {:.0} rows/s ({n_rows} rows; bound {:.0})", rate(best), rate(bound));
    Ok(())
}
