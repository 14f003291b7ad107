//! The rows and the model of the victim.

use std::path::Path;
use std::time::Duration;

use estimand::Adapted;
use estimand::hook::{Hook, HookContext};
use estimand::prelude::*;

/// Makes rows of two numbers, a word, and a class that depends on them except in every seventh row.
pub fn rows(n: usize) -> Result<Dataset> {
    let number = |i: usize, by: usize| ((i * by % 101) as f32 / 101.0 * 6.0).sin();
    let (a, b): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (number(i, 37), number(i, 53))).unzip();
    let words = ["ash", "birch", "cedar", "elm"];
    let word = |i: usize| words[i * 13 % 29 % words.len()];
    let class = |i: usize| i64::from((a[i] + b[i] > 0.2) ^ (i * 31).is_multiple_of(7));
    let classes: Vec<i64> = (0..n).map(class).collect();
    let names = Array::from_strings([n], (0..n).map(word))?;
    let columns = [("a", Array::from(a)), ("b", Array::from(b)), ("word", names), ("y", Array::from(classes))];
    Ok(Dataset::from_arrays(columns).label("y"))
}

/// Makes columns with values learned from rows.
pub fn columns(adapted: &Adapted) -> Result<Vec<FeatureColumn>> {
    Ok(vec![
        adapted.z_score(numeric_column("a"))?.into(),
        adapted.bucketized(&numeric_column("b"), 4)?.into(),
        embedding_column(&adapted.vocabulary("word", 10)?, 3).into(),
    ])
}

/// Makes a small network with a high learning rate, so that it gets worse soon.
pub fn classifier(folder: &Path, columns: Vec<FeatureColumn>, config: RunConfig) -> Result<Estimator> {
    DnnClassifier::new([8], columns)
        .optimizer(Optimizer::new(Adam::default(), 0.2))
        .config(config.tf_random_seed(11).threads(2))
        .model_dir(folder)
        .build()
}

/// A hook that delays steps, so that processes overlap.
pub struct Slow(Duration);

impl Slow {
    /// Reads the delay from `VICTIM_STEP_MS`.
    pub fn from_environment() -> Slow {
        let ms = std::env::var("VICTIM_STEP_MS").ok().and_then(|text| text.parse().ok());
        Slow(Duration::from_millis(ms.unwrap_or(0)))
    }
}

impl Hook for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    fn after_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        if !self.0.is_zero() {
            std::thread::sleep(self.0);
        }
        Ok(())
    }
}
