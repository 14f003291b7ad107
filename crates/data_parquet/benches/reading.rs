//! Columns of Parquet files to rows, beside the `parquet` crate alone:
//! `cargo bench -p estimand-data-parquet`.
//!
//! A million rows of a table like that of the census: numbers and few words, in row groups of
//! 131,072. The peer decodes the same columns of the same file to Arrow's arrays, in one thread,
//! and does nothing with them. Rounds alternate; the best of each counts, because the machine is
//! shared.
#![allow(clippy::print_stdout)] // a bench prints

use std::fs::File;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use estimand_data::{Dataset, InputContext, Position};
use estimand_data_parquet::parquet;
use estimand_tensor::{Array, Result};

const N: usize = 1_000_000;
const ROUNDS: usize = 9;

/// The numbers, and all columns.
const SELECTIONS: [&[&str]; 2] =
    [&["age", "hours", "gain", "score"], &["age", "hours", "gain", "score", "job", "town", "rich"]];

fn table() -> Result<Dataset> {
    let hash = |i: usize, seed: usize| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed) >> 33;
    let jobs = ["clerk", "farmer", "nurse", "chef", "engineer", "teacher"];
    Ok(Dataset::from_arrays([
        ("age", Array::from((0..N).map(|i| 17 + (hash(i, 1) % 70) as i64).collect::<Vec<_>>())),
        ("hours", Array::from((0..N).map(|i| (hash(i, 2) % 100) as i32).collect::<Vec<_>>())),
        ("gain", Array::from((0..N).map(|i| hash(i, 3) as f64 / 7.0).collect::<Vec<_>>())),
        ("score", Array::from((0..N).map(|i| hash(i, 4) as f32).collect::<Vec<_>>())),
        ("job", Array::from_strings([N], (0..N).map(|i| jobs[hash(i, 5) % jobs.len()]))?),
        ("town", Array::from_strings([N], (0..N).map(|i| format!("town {}", hash(i, 6) % 20_000)))?),
        ("rich", Array::from((0..N).map(|i| hash(i, 7) % 4 == 0).collect::<Vec<_>>())),
    ]))
}

/// Seconds of the `parquet` crate alone.
fn alone(path: &Path, columns: &[&str]) -> f64 {
    let start = Instant::now();
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).expect("written")).expect("a Parquet file");
    let mask = ProjectionMask::columns(builder.parquet_schema(), columns.iter().copied());
    let reader = builder.with_projection(mask).with_batch_size(8_192).build().expect("its columns");
    let n: usize = reader.map(|batch| black_box(batch.expect("its rows")).num_rows()).sum();
    assert_eq!(n, N);
    start.elapsed().as_secs_f64()
}

/// Seconds of ours.
fn ours(path: &Path, columns: &[&str], n_threads: usize, batch: Option<usize>) -> Result<f64> {
    let start = Instant::now();
    let mut data = parquet::read(path).select(columns.iter().copied()).dataset();
    if let Some(n) = batch {
        data = data.batch(n);
    }
    let cx = InputContext { n_threads, ..InputContext::default() };
    let mut stream = data.open(&cx, &Position::default())?;
    let mut n = 0;
    while let Some(item) = stream.pull(8_192)? {
        n += black_box(item).batch.n_rows();
    }
    assert_eq!(n, N);
    Ok(start.elapsed().as_secs_f64())
}

fn main() -> Result<()> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench.parquet");
    let written = parquet::write(&table()?, &path)?;
    println!("{N} rows, {:.1} MB", written.n_bytes as f64 / 1e6);
    for columns in SELECTIONS {
        let mut best = [f64::INFINITY; 4];
        for _ in 0..ROUNDS {
            let times = [
                alone(&path, columns),
                ours(&path, columns, 1, None)?,
                ours(&path, columns, 2, None)?,
                ours(&path, columns, 2, Some(256))?,
            ];
            best.iter_mut().zip(times).for_each(|(best, time)| *best = best.min(time));
        }
        let [alone, one, two, batches] = best.map(|seconds| N as f64 / seconds / 1e6);
        println!("{} columns, million rows a second", columns.len());
        println!("  the parquet crate alone      {alone:8.2}");
        println!("  rows, one thread             {one:8.2}   ratio {:.2} (at least 0.80)", one / alone);
        println!("  rows, two threads            {two:8.2}   ratio {:.2}", two / alone);
        println!("  batches of 256, two threads  {batches:8.2}   ratio {:.2}", batches / alone);
    }
    std::fs::remove_file(&path).ok();
    Ok(())
}
