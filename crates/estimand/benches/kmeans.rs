//! k-means over 1,000,448 rows of 64 numbers with 100 clusters: one pass in mini-batches of 1,024.
//! Prints milliseconds of the training call.
//!
//! `benches/compare/kmeans.sh` runs it beside TensorFlow's KMeans and scikit-learn's
//! MiniBatchKMeans.

use std::time::Instant;

use estimand::prelude::*;

const WIDTH: usize = 64;
const CLUSTERS: usize = 100;
const BATCH: usize = 1_024;
const ROWS: usize = 977 * BATCH;

/// Rows around 100 places, the same on every machine.
fn rows() -> Result<Array> {
    let number = |i: usize| {
        let mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f32 / (1u64 << 24) as f32
    };
    let value = |i: usize| number(i) + 4.0 * number(usize::MAX / 2 + i / WIDTH % CLUSTERS * WIDTH + i % WIDTH);
    Array::from_vec([ROWS, WIDTH], (0..ROWS * WIDTH).map(value).collect())
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("estimand-bench-kmeans-{}", std::process::id()));
    let rows = rows()?;
    let data = Dataset::from_arrays([("x", rows.clone())]).batch(BATCH);
    let mut best = f64::INFINITY;
    for round in 0..3 {
        let kmeans = KMeans::new(CLUSTERS).initial_clusters(rows.rows(0..CLUSTERS)?);
        let kmeans = kmeans.model_dir(folder.join(round.to_string())).build()?;
        let started = Instant::now();
        let finished = kmeans.train(&data)?;
        best = best.min(started.elapsed().as_secs_f64() * 1e3);
        assert_eq!(finished.n_steps as usize, ROWS / BATCH);
    }
    println!("kmeans_ms = {best:.1}");
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}
