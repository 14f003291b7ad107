//! Images from IDX files to shuffled batches: `cargo bench -p estimand-data --bench images`.
//!
//! As many images as MNIST has, u8 to f32 divided by 255, in batches of 128. Beside each rate
//! stands what memory allows: the bytes moved for an image at the speed of a plain copy.
//!
//! With `ESTIMAND_BENCH_FOLDER` the files are left there for the peer, see
//! `benches/compare/input.sh`.
#![allow(clippy::print_stdout)] // a bench prints

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use estimand_data::{Dataset, image};
use estimand_tensor::Result;

const N: usize = 60_000;
const PIXELS: usize = 28 * 28;
const BATCH: usize = 128;

/// An epoch: the best of several.
fn rate(data: &Dataset) -> Result<f64> {
    let mut best: f64 = 0.0;
    for _ in 0..7 {
        let (start, mut n) = (Instant::now(), 0);
        for batch in data {
            n += black_box(batch?).n_rows();
        }
        assert_eq!(n, N / BATCH * BATCH);
        best = best.max(n as f64 / start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Bytes read and written in a second by copies of one batch to another, in one thread.
fn copied() -> f64 {
    let from = vec![1u8; 64 << 20];
    let mut to = vec![0u8; BATCH * PIXELS * 4];
    let mut best: f64 = 0.0;
    for _ in 0..5 {
        let start = Instant::now();
        for part in from.chunks_exact(to.len()) {
            to.copy_from_slice(part);
            black_box(&mut to);
        }
        best = best.max(2.0 * from.len() as f64 / start.elapsed().as_secs_f64());
    }
    best
}

fn files(folder: &Path) -> std::io::Result<(PathBuf, PathBuf)> {
    let (images, labels) = (folder.join("bench-images-idx3-ubyte"), folder.join("bench-labels-idx1-ubyte"));
    let n = (N as u32).to_be_bytes();
    let pixels: Vec<u8> = (0..N * PIXELS).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    std::fs::write(&images, [&[0, 0, 8, 3], &n[..], &[0, 0, 0, 28, 0, 0, 0, 28], &pixels].concat())?;
    std::fs::write(&labels, [&[0, 0, 8, 1], &n[..], &pixels[..N]].concat())?;
    Ok((images, labels))
}

fn main() -> Result<()> {
    let kept = std::env::var_os("ESTIMAND_BENCH_FOLDER").map(PathBuf::from);
    let folder = kept.clone().unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")));
    let (images, labels) = files(&folder).expect("files that can be written");
    let source = Dataset::from_idx([("image", &images), ("label", &labels)]).label("label");
    source.spec()?;
    let shuffled = source.shuffle(N, 7).batch(BATCH).drop_remainder();
    let floats = shuffled.map_feature("image", image::to_unit);
    let copy = copied();
    println!("one copy, read and written: {:.1} GB/s; {N} images of {PIXELS} bytes, batches of {BATCH}:", copy / 1e9);
    let mut best: f64 = 0.0;
    // A gather reads and writes each byte; the division reads it again and writes four.
    for (name, data, bytes) in [
        ("shuffled u8", &shuffled, 2 * PIXELS),
        ("u8 to f32 / 255", &floats, 7 * PIXELS),
        ("u8 to f32 / 255, read ahead", &floats.prefetch(4), 7 * PIXELS),
    ] {
        let rate = rate(data)?;
        best = best.max(if bytes == 7 * PIXELS { rate } else { 0.0 });
        println!("{name:<30} {:6.2} M images/s   (one thread's copies: {:.2})", rate / 1e6, copy / bytes as f64 / 1e6);
    }
    println!("mnist_rows_s = {best:.0}");
    if kept.is_none() {
        std::fs::remove_file(images).and(std::fs::remove_file(labels)).expect("they are ours");
    }
    Ok(())
}
