//! What `Estimator::train` costs around the engine's step:
//! `cargo bench -p estimand --bench train_loop`.
//!
//! The iris network (4-10-10-3, batch 32, one thread for the step) is trained through the public
//! door with all default hooks, and by a bare `Session` that is fed the same arrays. The difference
//! is loop, input and hooks; the target is 5 us. Then the time from the start of `train` to the end
//! of its first step, and the MNIST network from arrays in memory (target 9 ms on two cores).
#![allow(clippy::print_stdout)] // a bench prints

use std::time::Instant;

use estimand::graph::Cpu;
use estimand::prelude::*;

fn network(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = Dense::new(10).relu().apply(&cx.feature("x"));
    let net = Dense::new(10).relu().apply(&net);
    classify(cx, &Dense::new(3).apply(&net), Optimizer::new(Adagrad::default(), 0.05))
}

fn cnn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = MaxPool2d::new(2).apply(&Conv2d::new(20, 5).relu().apply(&cx.feature("x")));
    let net = MaxPool2d::new(2).apply(&Conv2d::new(40, 5).relu().apply(&net));
    let net = Dense::new(256).relu().apply(&Flatten::new().apply(&net));
    let net = Dense::new(256).relu().apply(&Dropout::new(0.5).apply(&net));
    classify(cx, &Dense::new(10).apply(&Dropout::new(0.5).apply(&net)), Optimizer::new(Adam::default(), 0.002))
}

fn classify(cx: &ModelFnContext<'_>, logits: &Tensor, optimizer: Optimizer) -> Result<EstimatorSpec> {
    let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
    Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(optimizer))
}

fn rows(n: usize, dims: &[usize], n_classes: usize) -> Result<[(&'static str, Array); 2]> {
    let width: usize = dims.iter().product();
    let x: Vec<f32> = (0..n * width).map(|i| ((i * 7919) % 1009) as f32 / 1009.0).collect();
    let y: Vec<i64> = (0..n).map(|i| (i % n_classes) as i64).collect();
    let dims: Vec<usize> = std::iter::once(n).chain(dims.iter().copied()).collect();
    Ok([("x", Array::from_vec(dims, x)?), ("y", Array::from(y))])
}

fn estimator(
    model: fn(&ModelFnContext<'_>) -> Result<EstimatorSpec>,
    folder: &std::path::Path,
    threads: usize,
) -> Result<Estimator> {
    let _ = std::fs::remove_dir_all(folder);
    let config = RunConfig::new().tf_random_seed(1).threads(threads);
    Estimator::new(model).config(config).model_dir(folder).build()
}

/// Seconds for a step of `train`, the best of some rounds of `n` steps.
fn trained(
    model: fn(&ModelFnContext<'_>) -> Result<EstimatorSpec>,
    data: &Dataset,
    threads: usize,
    n: u64,
) -> Result<f64> {
    let folder = std::env::temp_dir().join(format!("estimand-bench-loop-{}", std::process::id()));
    let estimator = estimator(model, &folder, threads)?;
    let mut best = f64::INFINITY;
    for _ in 0..4 {
        let start = Instant::now();
        estimator.train(TrainSpec::new(data).steps(n))?;
        best = best.min(start.elapsed().as_secs_f64() / n as f64);
    }
    let _ = std::fs::remove_dir_all(folder);
    Ok(best)
}

/// Seconds for the engine's step alone.
fn bare(n: usize) -> Result<f64> {
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
    let y = g.placeholder("y", DType::I64, [Dim::BATCH]);
    let net = Dense::new(10).relu().apply(&Dense::new(10).relu().apply(&x));
    let loss = Dense::new(3).apply(&net).sparse_softmax_cross_entropy(&y).mean();
    let train = Optimizer::new(Adagrad::default(), 0.05).minimize(&loss);
    let mut session = Session::with(&g, Cpu::with_threads(1), 1)?;
    let [(_, features), (_, labels)] = rows(32, &[4], 3)?;
    let feeds = [(&x, features), (&y, labels)];
    let (mut best, mut outputs) = (f64::INFINITY, Vec::new());
    for _ in 0..4 {
        let start = Instant::now();
        for _ in 0..n {
            session.run_into(&[&loss, &train], &feeds, &mut outputs)?;
        }
        best = best.min(start.elapsed().as_secs_f64() / n as f64);
    }
    Ok(best)
}

fn iris() -> Result<Dataset> {
    Ok(Dataset::from_arrays(rows(150, &[4], 3)?).label("y").shuffle(150, 7).repeat_forever().batch(32).drop_remainder())
}

/// A whole program: one step of training in a new folder.
fn one_step() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("estimand-bench-first-{}", std::process::id()));
    estimator(network, &folder, 0)?.train(TrainSpec::new(iris()?).steps(1))?;
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}

/// Seconds from the start of a process to its end, with one step of training between, the best of
/// some.
fn process() -> Result<f64> {
    let failed = |error| Error::config(format!("cannot start this program again: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let mut best = f64::INFINITY;
    for _ in 0..10 {
        let start = Instant::now();
        let status = std::process::Command::new(&program).arg(ONE_STEP).status().map_err(failed)?;
        assert!(status.success(), "{status}");
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

const ONE_STEP: &str = "one-step";

fn main() -> Result<()> {
    if std::env::args().any(|argument| argument == ONE_STEP) {
        return one_step();
    }
    let step = bare(50_000)?;
    println!("iris_engine_step_us = {:.2}", step * 1e6);
    for threads in [1, 2] {
        let whole = trained(network, &iris()?, threads, 50_000)?;
        println!(
            "iris_train_step_us = {:.2} with {threads} threads: {:.2} beyond the engine's (target 5)",
            whole * 1e6,
            (whole - step) * 1e6
        );
    }

    println!("process_with_one_step_ms = {:.2} with two checkpoints synced (target 50)", process()? * 1e3);

    let data = Dataset::from_arrays(rows(1_280, &[28, 28, 1], 10)?).label("y").shuffle(1_280, 7).repeat_forever();
    println!("cnn_train_step_ms = {:.2} (target 9)", trained(cnn, &data.batch(128).drop_remainder(), 0, 200)? * 1e3);
    Ok(())
}
