//! The laws of resuming: train(100) equals train(50) and 50 more, bit for bit, with any number of
//! threads.

use std::path::Path;

use estimand::graph::checkpoint::BundleReader;
use estimand::prelude::*;

use crate::hooks::log_lines::logged;
use crate::models::{Folder, network, points};

fn config(threads: usize) -> RunConfig {
    RunConfig::new().tf_random_seed(7).threads(threads).save_checkpoints(Every::Steps(1_000))
}

fn train(folder: &Path, threads: usize, max_steps: u64) -> Result<()> {
    let model = Estimator::new(network).config(config(threads)).model_dir(folder).build()?;
    model.train(TrainSpec::new(points(70).repeat_forever().batch(8)).max_steps(max_steps))?;
    Ok(())
}

/// The bytes of the newest checkpoint.
fn bits(folder: &Path, step: u64) -> Vec<u8> {
    std::fs::read(folder.join(format!("model.ckpt-{step}.data-00000-of-00001"))).unwrap()
}

#[test]
fn stopping_and_going_on_leaves_no_trace() -> Result<()> {
    let whole = Folder::new();
    train(whole.path(), 2, 100)?;
    let expected = bits(whole.path(), 100);
    for stops in [vec![50, 100], vec![1, 2, 3, 30, 99, 100]] {
        let parts = Folder::new();
        for &step in &stops {
            train(parts.path(), 2, step)?;
        }
        assert_eq!(bits(parts.path(), 100), expected, "stopped at {stops:?}");
    }
    Ok(())
}

#[test]
fn the_number_of_threads_changes_no_bit() -> Result<()> {
    // Reading that takes so long that it is given to threads of its own after some batches.
    let slow = |batch| {
        std::thread::sleep(std::time::Duration::from_micros(100));
        Ok(batch)
    };
    let data = points(70).repeat_forever().batch(8).map(slow);
    let train = |threads: usize, input_threads: usize| {
        let folder = Folder::new();
        let config = config(threads).input_threads(input_threads);
        let model = Estimator::new(network).config(config).model_dir(folder.path()).build()?;
        model.train(TrainSpec::new(&data).max_steps(40))?;
        Ok::<_, Error>(bits(folder.path(), 40))
    };
    let alone = train(1, 1)?;
    for threads in [1, 2, 3, 8] {
        for input_threads in [1, 4] {
            let bits = train(threads, input_threads)?;
            assert!(bits == alone, "{threads} threads of the step and {input_threads} of the input");
        }
    }
    Ok(())
}

/// A call that reads the input to its end is followed by another epoch, shuffled anew, as `repeat`
/// would have it.
#[test]
fn one_call_for_each_epoch() -> Result<()> {
    let (calls, repeated) = (Folder::new(), Folder::new());
    let data = points(64).batch(8);
    let model = Estimator::new(network).config(config(2)).model_dir(calls.path()).build()?;
    for epoch in 1..=3 {
        assert_eq!(model.train(&data)?.global_step, 8 * epoch);
    }
    let model = Estimator::new(network).config(config(2)).model_dir(repeated.path()).build()?;
    model.train(points(64).batch(8).repeat(3))?;
    let kernel = |folder: &Folder| BundleReader::open(folder.path().join("model.ckpt-24"))?.read("dense/kernel");
    assert_eq!(kernel(&calls)?, kernel(&repeated)?);
    Ok(())
}

/// Where the last batch of an epoch has a checkpoint of its own, the next call begins the next
/// epoch all the same.
#[test]
fn an_epoch_that_ends_with_a_checkpoint_is_followed_by_another() -> Result<()> {
    let folder = Folder::new();
    let config = config(2).save_checkpoints(Every::Steps(8));
    let model = Estimator::new(network).config(config).model_dir(folder.path()).build()?;
    for epoch in 1..=3 {
        let finished = model.train(points(64).batch(8))?;
        assert_eq!((finished.global_step, finished.reason.as_str()), (8 * epoch, "the input ended"));
    }
    Ok(())
}

/// An input that was read to its end has no place to lose. One that was not is worth a warning.
#[test]
fn another_input_is_told_only_in_the_middle_of_one() -> Result<()> {
    let other = || points(64).filter(|batch: &estimand::tensor::Batch| Ok(vec![true; batch.n_rows()])).batch(8);
    // A checkpoint every 8 steps is saved before the end of the input is found.
    for (steps, every, is_told) in [(None, 100, false), (None, 8, false), (Some(3), 100, true), (Some(8), 8, true)] {
        let folder = Folder::new();
        let config = config(2).save_checkpoints(Every::Steps(every));
        let model = Estimator::new(network).config(config).model_dir(folder.path()).build()?;
        let first = TrainSpec::new(points(64).batch(8));
        model.train(match steps {
            Some(steps) => first.steps(steps),
            None => first,
        })?;
        let (finished, lines) = logged(|| model.train(other()));
        assert_eq!(finished?.n_steps, 8);
        let found = lines.iter().any(|line| line.contains("The input is read from its beginning"));
        assert_eq!(found, is_told, "{lines:?}");
    }
    Ok(())
}

/// Damaged files are named and never read.
#[test]
fn a_damaged_checkpoint_is_named() -> Result<()> {
    let folder = Folder::new();
    train(folder.path(), 2, 10)?;
    for name in ["model.ckpt-10.index", "model.ckpt-10.data-00000-of-00001"] {
        let path = folder.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut flipped = whole.clone();
        let middle = flipped.len() / 2;
        flipped[middle] ^= 4;
        for damaged in [flipped, whole[..whole.len() / 2].to_vec()] {
            std::fs::write(&path, damaged).unwrap();
            let error = train(folder.path(), 2, 20).unwrap_err().to_string();
            assert!(error.contains("model.ckpt-10"), "{error}");
        }
        std::fs::write(&path, whole).unwrap();
    }
    train(folder.path(), 2, 20)
}
