//! `LinearSdca` on 100,000 rows of 20 numbers and 4 hashed categories: 5 epochs in batches of
//! 1,000. Prints milliseconds of the training call, and the objective that it has reached.
//!
//! `benches/compare/sdca.sh` runs it beside TensorFlow's LinearSDCA.

use std::time::Instant;

use estimand::prelude::*;
use estimand::premade::LinearSdca;

const ROWS: usize = 100_000;
const WIDTH: usize = 20;
const FIELDS: usize = 4;
const BUCKETS: usize = 10_000;
const BATCH: usize = 1_000;
const EPOCHS: usize = 5;
const NAMES: [&str; FIELDS] = ["a", "b", "c", "d"];

/// A number from 0 to 1 for each index, the same on every machine.
fn number(i: usize) -> f64 {
    let mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f64 / (1u64 << 24) as f64
}

/// Rows whose label follows from the numbers, the categories, and chance.
fn rows() -> Result<Dataset> {
    let x: Vec<f32> = (0..ROWS * WIDTH).map(|i| (2.0 * number(i) - 1.0) as f32).collect();
    let category = |row: usize, field: usize| (number(ROWS * WIDTH + row * FIELDS + field) * 5_000.0) as usize;
    let label = |row: usize| {
        let numbers: f64 = (0..WIDTH).map(|i| f64::from(x[row * WIDTH + i]) * (i % 5) as f64 * 0.3).sum();
        let categories: f64 = (0..FIELDS).map(|field| 2.0 * number(usize::MAX / 2 + category(row, field)) - 1.0).sum();
        i64::from(numbers + categories + 2.0 * number(usize::MAX / 4 + row) - 1.0 > 0.0)
    };
    let labels: Vec<i64> = (0..ROWS).map(label).collect();
    let mut arrays = vec![("id", Array::from_strings([ROWS], (0..ROWS).map(|i| i.to_string()))?)];
    for (field, name) in NAMES.into_iter().enumerate() {
        arrays
            .push((name, Array::from_strings([ROWS], (0..ROWS).map(|row| format!("{name}{}", category(row, field))))?));
    }
    arrays.push(("x", Array::from_vec([ROWS, WIDTH], x)?));
    arrays.push(("y", Array::from(labels)));
    Ok(Dataset::from_arrays(arrays).label("y"))
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("estimand-bench-sdca-{}", std::process::id()));
    let data = rows()?.repeat(EPOCHS as u64).batch(BATCH);
    let mut best = f64::INFINITY;
    let mut reached = None;
    for round in 0..3 {
        let sdca = LinearSdca::new("id").symmetric_l2_regularization(10.0);
        let mut columns: Vec<FeatureColumn> = vec![numeric_column("x").shape([WIDTH]).into()];
        columns.extend(NAMES.map(|name| categorical_column_with_hash_bucket(name, BUCKETS).into()));
        let config = RunConfig::new().tf_random_seed(1);
        let model = LinearClassifier::new(columns).optimizer(&sdca).config(config);
        let model = model.model_dir(folder.join(round.to_string())).build()?;
        let started = Instant::now();
        let finished = model.train(&data)?;
        best = best.min(started.elapsed().as_secs_f64() * 1e3);
        assert_eq!(finished.n_steps as usize, EPOCHS * ROWS / BATCH);
        reached = sdca.progress();
    }
    println!("sdca_ms = {best:.1}");
    if let Some(reached) = reached {
        println!("objective {:.6}, duality gap {:.1e}", reached.primal_objective, reached.duality_gap);
    }
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}
