//! A training step of an LSTM classifier: 64 sequences of up to 50 tokens in a batch, vectors of 64
//! numbers for 10,000 tokens, 128 units, Adagrad. Prints milliseconds of a step.
//!
//! `benches/compare/rnn.sh` runs it beside TensorFlow's RNNClassifier.

use std::time::Instant;

use estimand::hook::{Hook, HookContext};

use estimand::nn::column::sequence_categorical_column_with_identity;
use estimand::prelude::*;
use estimand::premade::CellType;
use estimand::tensor::{Feature, Ragged};

const BATCH: usize = 64;
const ROWS: usize = 20 * BATCH;
const TOKENS: usize = 10_000;
/// Steps of one measurement, and those before it.
const STEPS: usize = 60;
const FIRST: usize = 5;

/// Writes down when each step ends: as beside it in TensorFlow, the start and the end of a training
/// do not count.
struct Clock<'a>(&'a mut Vec<Instant>);

impl Hook for Clock<'_> {
    fn name(&self) -> &str {
        "clock"
    }

    fn after_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.0.push(Instant::now());
        Ok(())
    }
}

/// Sequences of 26 to 50 tokens, the same on every machine; the sum of a row's tokens is its class.
fn rows() -> Result<Dataset> {
    let number = |i: usize| {
        let mixed = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33) as usize
    };
    let (mut tokens, mut splits, mut classes) = (Vec::new(), vec![0i64], Vec::new());
    for row in 0..ROWS {
        let ids = (0..26 + number(row) % 25).map(|step| (number(1_000_000 + row * 50 + step) % TOKENS) as i64);
        let first = tokens.len();
        tokens.extend(ids);
        classes.push(tokens[first..].iter().sum::<i64>() % 2);
        splits.push(tokens.len() as i64);
    }
    let tokens = Feature::from(Ragged::new(Array::from(tokens), splits)?);
    Ok(Dataset::from_arrays([("tokens", tokens), ("class", Array::from(classes).into())]).label("class"))
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("estimand-bench-rnn-{}", std::process::id()));
    let data = rows()?.batch(BATCH).repeat_forever();
    let tokens = sequence_categorical_column_with_identity("tokens", TOKENS);
    let rnn = RnnClassifier::new(columns![embedding_column(tokens, 64)]).units([128]).cell_type(CellType::Lstm);
    let config = RunConfig::new().save_summary_steps(1_000_000).log_step_count_steps(None);
    let rnn = rnn.config(config).model_dir(&folder).build()?;
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let mut ends = Vec::new();
        rnn.train(TrainSpec::new(&data).steps((FIRST + STEPS) as u64).hook(Clock(&mut ends)))?;
        best = best.min((ends[FIRST + STEPS - 1] - ends[FIRST - 1]).as_secs_f64() * 1e3 / STEPS as f64);
    }
    println!("rnn_ms = {best:.2}");
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}
