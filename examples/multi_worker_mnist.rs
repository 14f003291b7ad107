//! `train_and_evaluate` with `TF_CONFIG` on one machine: the program "Multi-worker training with
//! Estimator" of the article "TensorFlow 2 Estimator".
//!
//! `cargo run --release --example multi_worker_mnist -- FOLDER [MODEL_FOLDER]`, where FOLDER (or
//! `$ESTIMAND_DATA/mnist`) holds the four IDX files. Without them it is an error.
//!
//! What differs from the article: this version trains in one process, so the cluster has one
//! worker, and there is no strategy to choose; if `TF_CONFIG` is not set, the program sets it so. A
//! second process whose `TF_CONFIG` says `evaluator` evaluates the checkpoints of the first one, if
//! both name the same MODEL_FOLDER, which is a temporary one by default, not `/tmp/multiworker`.
//! Only the images of a training are sharded. The files are not downloaded. Shuffling has a seed.
//! The first evaluation does not wait for 120 seconds. Training names its last step, where its data
//! ends, because the evaluator must know it. The learning rate is the article's, with which one
//! pass over the images learns little.

use std::path::PathBuf;

use estimand::Cluster;
use estimand::console::{self, Level};
use estimand::data::datasets::Folder;
use estimand::data::image::to_unit;
use estimand::prelude::*;

const BUFFER_SIZE: usize = 10_000;
const BATCH_SIZE: usize = 64;
const LEARNING_RATE: f64 = 1e-4;
const ONE_WORKER: &str = r#"{"cluster": {"worker": ["localhost:12345"]}, "task": {"type": "worker", "index": 0}}"#;

/// The images of a mode. In training each worker gets its own shard of them.
fn input_fn(folder: &Folder, cx: &InputFnContext<'_>) -> Result<Dataset> {
    let training = cx.mode == Mode::Train;
    let images = folder.load("mnist", if training { "train" } else { "test" })?.dataset();
    let images = if training { images.shard_by_worker() } else { images };
    Ok(images.map_feature("image", to_unit).cache().shuffle(BUFFER_SIZE, 7).batch(BATCH_SIZE))
}

fn model_fn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = Conv2d::new(32, 3).relu().apply(&cx.feature("image"));
    let net = Flatten::new().apply(&MaxPool2d::new(2).apply(&net));
    let net = Dense::new(64).relu().apply(&net);
    let logits = Dense::new(10).apply(&net);
    let spec = EstimatorSpec::new(cx).prediction("logits", &logits);
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = logits.sparse_softmax_cross_entropy(&cx.label()).sum() * (1.0 / BATCH_SIZE as f64);
    Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), LEARNING_RATE)))
}

fn main() -> Result<()> {
    console::verbosity(Level::Info);
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let images = match arguments.next() {
        Some(folder) => Folder::new(folder),
        None => Folder::from_env().map_err(|e| e.help("set it, or name the folder of MNIST's four IDX files"))?,
    };
    let new_folder = || std::env::temp_dir().join(format!("estimand-multiworker-{}", std::process::id()));
    let model_dir = arguments.next().unwrap_or_else(new_folder);
    let cluster = match std::env::var_os("TF_CONFIG") {
        Some(_) => Cluster::from_env()?,
        None => Cluster::parse(ONE_WORKER)?,
    };

    let config = RunConfig::new().cluster(cluster).tf_random_seed(1);
    let classifier = Estimator::new(model_fn).model_dir(&model_dir).config(config).build()?;
    // One pass over the images, with the short batch at its end.
    let n_steps = 60_000u64.div_ceil(BATCH_SIZE as u64);
    let trained = classifier.train_and_evaluate(
        TrainSpec::new(|cx: &InputFnContext<'_>| input_fn(&images, cx)).max_steps(n_steps),
        EvalSpec::new(|cx: &InputFnContext<'_>| input_fn(&images, cx)).steps(100).start_delay_secs(0.0),
    )?;
    println!("\n{trained}\n");
    // A second run with the folder of a first one has nothing left to train, and evaluates nothing.
    let Some(metrics) = trained.metrics() else { return Ok(()) };
    println!("steps = {}", metrics.global_step());
    println!("loss = {:.4}", metrics["loss"]);
    Ok(())
}
