//! Whole programs through `Estimator::train`, hooks and checkpoints included:
//! `benches/compare/run.sh` runs them beside TensorFlow's.
//!
//! `cargo bench -p estimand --bench programs -- WORKLOAD FOLDER` prints `name = seconds`: of a
//! step, in the steady state, or of a whole process with one step in it. `files FOLDER` writes the
//! files that both sides read.
#![allow(clippy::print_stdout)] // a bench prints

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use estimand::data::Csv;
use estimand::hook::{Hook, HookContext};
use estimand::prelude::*;

#[path = "../../../benches/census.rs"]
mod census;
#[path = "../../../benches/models.rs"]
#[allow(dead_code, reason = "shared with other benchmarks")]
mod models;

use models::{integers, uniform};

/// Steps that are left out at the beginning.
const WARM_UP: usize = 50;

/// The times at which steps end.
#[derive(Clone, Default)]
struct Clock(Arc<Mutex<Vec<Instant>>>);

impl Hook for Clock {
    fn name(&self) -> &str {
        "Clock"
    }

    fn after_run(&mut self, _cx: &mut HookContext<'_>) -> Result<()> {
        self.0.lock().expect("no panic").push(Instant::now());
        Ok(())
    }
}

impl Clock {
    /// Mean seconds of a step behind the first ones.
    fn mean(&self) -> f64 {
        let times = self.0.lock().expect("no panic");
        let steady = &times[WARM_UP.min(times.len() - 2)..];
        (steady[steady.len() - 1] - steady[0]).as_secs_f64() / (steady.len() - 1) as f64
    }
}

fn timed(estimator: &Estimator, data: Dataset, steps: u64) -> Result<f64> {
    let clock = Clock::default();
    estimator.train(TrainSpec::new(data).steps(steps).hook(clock.clone()))?;
    Ok(clock.mean())
}

fn iris(folder: &Path) -> Result<Estimator> {
    let columns: Columns = (0..4).map(|i| numeric_column(format!("f{i}"))).collect();
    DnnClassifier::new([10, 10], columns).n_classes(3).model_dir(folder).build()
}

fn iris_rows() -> Result<Dataset> {
    let mut rows = vec![("y".to_string(), integers("y", &[150], 3)?)];
    for i in 0..4 {
        rows.push((format!("f{i}"), uniform(&format!("f{i}"), &[150])?));
    }
    Ok(Dataset::from_arrays(rows).label("y").shuffle(1_000, 7).repeat_forever().batch(32))
}

fn cnn_model(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = MaxPool2d::new(2).apply(&Conv2d::new(20, 5).relu().apply(&cx.feature("x")));
    let net = MaxPool2d::new(2).apply(&Conv2d::new(40, 5).relu().apply(&net));
    let net = Dense::new(256).relu().apply(&Flatten::new().apply(&net));
    let net = Dense::new(256).relu().apply(&Dropout::new(0.5).apply(&net));
    let logits = Dense::new(10).apply(&Dropout::new(0.5).apply(&net));
    let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
    Ok(EstimatorSpec::new(cx).loss(&loss).optimizer(Optimizer::new(Adam::default(), 0.002)))
}

fn cnn(folder: &Path) -> Result<f64> {
    let n = 12_800;
    let rows = [("x", uniform("x", &[n, 28, 28, 1])?), ("y", integers("y", &[n], 10)?)];
    let data = Dataset::from_arrays(rows).label("y").shuffle(10_000, 7).repeat_forever().batch(128);
    timed(&Estimator::new(cnn_model).model_dir(folder).build()?, data, 300)
}

/// Read from the CSV file.
fn census(folder: &Path, files: &Path) -> Result<f64> {
    let estimator = DnnLinearCombinedClassifier::new()
        .linear_feature_columns(census::wide())
        .dnn_feature_columns(census::deep(false))
        .dnn_hidden_units([100, 50])
        .label_vocabulary(["<=50K", ">50K"])
        .model_dir(folder)
        .build()?;
    let rows = Csv::new(files.join("adult_train.csv")).label("income").dataset();
    timed(&estimator, rows.shuffle(10_000, 7).repeat_forever().batch(256), 1_000)
}

/// Eight fields of a million buckets.
fn ctr(folder: &Path, files: &Path) -> Result<f64> {
    let hashed = |i| categorical_column_with_hash_bucket(format!("c{i}"), 1_000_000).dtype(DType::I64);
    let mut columns: Vec<FeatureColumn> = (0..8).map(|i| embedding_column(hashed(i), 32).into()).collect();
    columns.push(numeric_column("x").shape([13]).into());
    let config = RunConfig::new().save_checkpoints(Every::Never);
    let estimator = DnnClassifier::new([256, 128], columns).config(config).model_dir(folder).build()?;
    let rows = Dataset::from_npz(files.join("ctr.npz")).label("y");
    timed(&estimator, rows.repeat_forever().batch(512), 300)
}

/// A whole process: one step of training in a new folder.
fn start(folder: &Path) -> Result<f64> {
    let failed = |error| Error::config(format!("cannot start this program again: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let start = Instant::now();
    let status = std::process::Command::new(program).arg("one-step").arg(folder).status().map_err(failed)?;
    assert!(status.success(), "{status}");
    Ok(start.elapsed().as_secs_f64())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [workload, files] = &arguments[..] else {
        // `cargo bench` without arguments runs every bench.
        println!("programs: for benches/compare/run.sh, which gives a workload and a folder");
        return Ok(());
    };
    let files = Path::new(files);
    let folder = files.join(format!("model-{}", std::process::id()));
    let seconds = match workload.as_str() {
        "files" => return census::write_csv("train", &files.join("adult_train.csv")),
        "one-step" => iris(files)?.train(TrainSpec::new(iris_rows()?).steps(1)).map(|_| 0.0)?,
        "iris" => timed(&iris(&folder)?, iris_rows()?, 20_000)?,
        "cnn" => cnn(&folder)?,
        "census" => census(&folder, files)?,
        "ctr" => ctr(&folder, files)?,
        "start" => start(&folder)?,
        other => return Err(Error::config(format!("no workload `{other}`"))),
    };
    if workload != "one-step" {
        println!("{workload} = {seconds}");
        let _ = std::fs::remove_dir_all(folder);
    }
    Ok(())
}
