//! `ProfilerHook`: every step of the program is timed, counted and written.

use std::path::Path;

use estimand::graph::Cost;
use estimand::graph::{Combiner, RaggedTensor};
use estimand::hook::{Profile, ProfilerHook};
use estimand::prelude::*;
use serde_json::Value;

use crate::models::{Folder, points};

/// Images of 8 x 8 in three classes.
fn images(n: usize) -> Dataset {
    let x: Vec<f32> = (0..64 * n).map(|i| ((i * 37 % 101) as f32 / 101.0).sin()).collect();
    let y: Vec<i64> = (0..n).map(|i| (i * 7 % 3) as i64).collect();
    let arrays = [("x", Array::from_vec([n, 8, 8, 1], x).unwrap()), ("y", Array::from(y))];
    Dataset::from_arrays(arrays).label("y")
}

fn cnn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = Conv2d::new(16, 3).relu().apply(&cx.feature("x"));
    let net = Flatten::new().apply(&MaxPool2d::new(2).apply(&net));
    let loss = Dense::new(3).apply(&net).sparse_softmax_cross_entropy(&cx.label()).mean();
    Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Adam::default(), 0.01)))
}

/// Words and what they mean, summed up by rows of a table.
fn words(n: usize) -> Dataset {
    let word = |i: usize| ["wide", "deep", "linear", "tree"][i * 7 % 4];
    let y: Vec<f32> = (0..n).map(|i| (i % 2) as f32).collect();
    let words = Array::from_strings([n], (0..n).map(word)).unwrap();
    Dataset::from_arrays([("word", words), ("y", Array::from(y))]).label("y")
}

fn wide(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let present = RaggedTensor::from_dense(&cx.feature("word"));
    let ids = present.with_values(present.values.hash_bucket(100));
    let table = cx.graph().variable("linear/weights", [100, 1], Initializer::Zeros);
    let logits = table.lookup(&ids, Combiner::Sum).reshape([-1]);
    let loss = logits.sigmoid_cross_entropy(&cx.label()).mean();
    Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Ftrl::default(), 0.1)))
}

type ModelFunction = fn(&ModelFnContext<'_>) -> Result<EstimatorSpec>;

/// Trains seven steps, of which the third and the sixth are timed.
fn profiled(model: ModelFunction, data: Dataset, folder: &Path) -> Result<Profile> {
    let config = RunConfig::new().tf_random_seed(1).threads(2).save_checkpoints(Every::Never);
    let estimator = Estimator::new(model).config(config).model_dir(folder).build()?;
    let hook = ProfilerHook::every(Every::Steps(3));
    let profile = hook.profile();
    estimator.train(TrainSpec::new(data).max_steps(7).hook(hook))?;
    Ok(profile.get())
}

fn events(folder: &Path, step: u64) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join(format!("timeline-{step}.json"))).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

/// The events of a category: names, starts and ends.
fn complete(events: &[Value], category: &str) -> Vec<(String, f64, f64)> {
    let of = |e: &&Value| e["ph"] == "X" && e["cat"] == category;
    let times = |e: &Value| (e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap());
    let shown = |e: &Value| (e["name"].as_str().unwrap().to_string(), times(e).0, times(e).0 + times(e).1);
    events.iter().filter(of).map(shown).collect()
}

fn cost_of<'a>(profile: &'a Profile, op: &str, name: &str) -> &'a Cost {
    let found = profile.rows().find(|row| row.op == op && row.name == name);
    &found.unwrap_or_else(|| panic!("no {op} of {name} in\n{profile}")).cost
}

#[test]
fn a_convolutional_network() -> Result<()> {
    let folder = Folder::new();
    // Batches of 20, and of 10 at the end of each of the epochs: steps 1, 2, 4, 5, 7 and 3, 6.
    let profile = profiled(cnn, images(50).batch(20).repeat_forever(), folder.path())?;
    let traces: Vec<String> = folder.files().into_iter().filter(|name| name.starts_with("timeline")).collect();
    assert_eq!((traces, profile.n_steps()), (vec!["timeline-3.json".to_string(), "timeline-6.json".to_string()], 2));
    assert!(profile.rows().all(|row| row.calls == 2));
    assert!(profile.rows().map(|row| row.time).sum::<std::time::Duration>() <= profile.run_time());
    assert!(profile.rates().is_some_and(|rates| rates.flops > 1e6 && rates.bytes > 1e6));

    // Two batches of 10. 6 x 6 places of 16 filters of 3 x 3 (5760 results), bias, relu, and 4 of
    // each of 3 x 3 x 16 pooled.
    let conv = cost_of(&profile, "Conv2D+bias+relu+MaxPool+which", "conv2d/Conv2D");
    assert_eq!(conv.flops, 2 * (2 * 5760 * 9 + 2 * 5760 + 4 * 1440));
    // 10 x 144 times 144 x 3, and a bias.
    assert_eq!(cost_of(&profile, "MatMul+bias", "dense/MatMul").flops, 2 * (2 * 10 * 144 * 3 + 30));
    // A matrix and its two slots, read and written; the gradient is read.
    let update = cost_of(&profile, "ApplyAdam", "dense/kernel");
    assert_eq!((update.read, update.written, update.flops), (2 * 4 * 432 * 4, 2 * 3 * 432 * 4, 2 * 10 * 432));

    // The trace has the same steps, one after the other, between the input and the hooks.
    let events = events(folder.path(), 6);
    let (steps, around) = (complete(&events, "Op"), complete(&events, "Loop"));
    assert_eq!(steps.iter().map(|s| &s.0).collect::<Vec<_>>(), profile.rows().map(|row| &row.op).collect::<Vec<_>>());
    assert!(steps.windows(2).all(|pair| pair[0].2 <= pair[1].1 + 1e-3), "{steps:?}");
    let [input, hooks] = &around[..] else { panic!("{around:?}") };
    assert!(input.2 <= steps[0].1 + 1e-3 && steps[steps.len() - 1].2 <= hooks.1 + 1e-3, "{input:?} {hooks:?}");
    assert!(events.iter().any(|e| e["ph"] == "M" && e["args"]["name"] == "input"));
    let text = profile.to_string();
    assert!(text.starts_with("2 steps were timed") && text.contains("x bound"), "{text}");
    Ok(())
}

#[test]
fn a_wide_model() -> Result<()> {
    let folder = Folder::new();
    let profile = profiled(wide, words(12).batch(4).repeat_forever(), folder.path())?;
    // Four words in each batch, 0, 3, 2, 1: four rows of one weight each.
    assert_eq!(cost_of(&profile, "ApplyFtrl", "linear/weights").flops, 2 * 4 * 10);
    let lookup = profile.rows().find(|row| row.op == "SparseSegmentSum").unwrap();
    assert_eq!(lookup.cost.flops, 2 * 4);
    Ok(())
}

#[test]
fn an_evaluation_counts_batches() -> Result<()> {
    let folder = Folder::new();
    let estimator = Estimator::new(crate::models::network).model_dir(folder.path()).build()?;
    let traces = folder.path().join("traces");
    let hook = ProfilerHook::every(Every::Steps(2)).output_dir(&traces);
    let profile = hook.profile();
    estimator.evaluate(EvalSpec::new(points(50).batch(10)).hook(hook))?;
    // The first of five batches is never timed, then every second one is.
    assert_eq!(profile.get().n_steps(), 2);
    assert_eq!(std::fs::read_dir(&traces).unwrap().count(), 2);
    Ok(())
}

#[test]
fn timing_changes_no_bit() -> Result<()> {
    let train = |hook: Option<ProfilerHook>| -> Result<Vec<u8>> {
        let folder = Folder::new();
        let config = RunConfig::new().tf_random_seed(4);
        let estimator = Estimator::new(crate::models::network).config(config).model_dir(folder.path()).build()?;
        let spec = TrainSpec::new(points(30).batch(8).repeat_forever()).max_steps(9);
        estimator.train(match hook {
            Some(hook) => spec.hook(hook),
            None => spec,
        })?;
        Ok(std::fs::read(folder.path().join("model.ckpt-9.data-00000-of-00001")).unwrap())
    };
    assert!(train(None)? == train(Some(ProfilerHook::every(Every::Steps(1))))?);
    Ok(())
}
