//! Transient errors of the input.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use estimand::prelude::*;
use estimand::tensor::Batch;

use crate::models::{Folder, network, points};

/// Batches, of which the reading fails at some, counted over all attempts.
fn unsteady(failures: &'static [u64], error: fn() -> Error) -> Dataset {
    let calls = Arc::new(AtomicU64::new(0));
    points(70).repeat_forever().batch(8).map(move |batch: Batch| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        if failures.contains(&call) { Err(error()) } else { Ok(batch) }
    })
}

fn reset() -> Error {
    Error::io("far/away.csv", "read", &std::io::Error::from(std::io::ErrorKind::ConnectionReset))
}

fn train(folder: &Folder, data: &Dataset, retries: u32, input_threads: usize) -> Result<Vec<u8>> {
    let config = RunConfig::new().tf_random_seed(5).save_checkpoints(Every::Steps(10)).input_threads(input_threads);
    let model = Estimator::new(network).config(config.input_retries(retries)).model_dir(folder.path()).build()?;
    model.train(TrainSpec::new(data).max_steps(40))?;
    Ok(std::fs::read(folder.path().join("model.ckpt-40.data-00000-of-00001")).unwrap())
}

/// Not a bit is different from a run that nothing disturbed; also where batches are prepared ahead,
/// by several threads.
#[test]
fn training_goes_on_behind_the_last_batch() -> Result<()> {
    let undisturbed = train(&Folder::new(), &unsteady(&[], reset), 0, 1)?;
    for input_threads in [1, 3] {
        for failures in [&[13][..], &[1, 25], &[20, 21, 22, 30]] {
            let disturbed = train(&Folder::new(), &unsteady(failures, reset), 3, input_threads)?;
            assert!(disturbed == undisturbed, "failures at {failures:?}, {input_threads} threads");
        }
    }
    // One that the input has marked itself.
    let busy = || Error::data("the server is busy").transient();
    assert!(train(&Folder::new(), &unsteady(&[17], busy), 1, 2)? == undisturbed);
    Ok(())
}

#[test]
fn errors_that_end_the_training() {
    // Nobody has asked for retries.
    let folder = Folder::new();
    let error = train(&folder, &unsteady(&[13], reset), 0, 1).unwrap_err().to_string();
    assert!(error.contains("far/away.csv") && error.contains("RunConfig::input_retries"), "{error}");
    assert_eq!(folder.steps(), [0, 10], "what was saved is there, and no more");

    // It does not pass.
    let error = train(&Folder::new(), &unsteady(&[13, 14, 15], reset), 2, 1).unwrap_err().to_string();
    assert!(error.contains("far/away.csv") && error.contains("after 2 retries"), "{error}");

    // It is of a kind that does not pass.
    let gone = || Error::io("far/away.csv", "open", &std::io::Error::from(std::io::ErrorKind::NotFound));
    let error = train(&Folder::new(), &unsteady(&[13], gone), 5, 1).unwrap_err().to_string();
    assert!(error.contains("far/away.csv") && !error.contains("retries"), "{error}");
}
