//! A training that saves as often as it can, and readers of its folder.

use std::path::Path;

use estimand::adapt;
use estimand::prelude::*;

use crate::model::{Slow, classifier, columns, rows};

fn estimator(folder: &Path) -> Result<Estimator> {
    let columns = columns(&adapt(&rows(120)?)?)?;
    classifier(folder, columns, RunConfig::new().save_checkpoints(Every::Steps(1)).keep_checkpoint_max(2))
}

/// Trains with a checkpoint at every step; the newest two are kept.
pub fn train(folder: &Path, n_steps: u64) -> Result<()> {
    let input = rows(120)?.repeat_forever().batch(16);
    let finished = estimator(folder)?.train(TrainSpec::new(input).max_steps(n_steps).hook(Slow::from_environment()))?;
    println!("step: {}", finished.global_step);
    Ok(())
}

/// Evaluates and predicts with the newest checkpoint, with a new estimator each time; prints each
/// result and each failure.
pub fn read(folder: &Path, n: u64) -> Result<()> {
    let mut failures = 0;
    for i in 0..n {
        let read = || -> Result<u64> {
            let estimator = estimator(folder)?;
            let metrics = estimator.evaluate(rows(40)?.batch(20))?;
            for prediction in estimator.predict(PredictSpec::new(rows(40)?.batch(20)).untrained()) {
                prediction?;
            }
            Ok(metrics.global_step())
        };
        match read() {
            Ok(step) => println!("read {i}: step {step}"),
            Err(error) => {
                failures += 1;
                println!("read {i} failed: {}", error.to_string().replace('\n', " "));
            }
        }
    }
    println!("failures: {failures}");
    Ok(())
}
