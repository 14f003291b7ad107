//! MNIST with a convolutional network: two convolutions with pooling, two dense layers with
//! dropout, Adam, 5,000 batches of 128.
//!
//! `cargo run --release --example mnist_cnn -- FOLDER`, where FOLDER (or `$ESTIMAND_DATA/mnist`)
//! holds the four IDX files. Without them it is an error.

use std::path::PathBuf;
use std::time::Instant;

use estimand::console::{self, Level};
use estimand::data::datasets::Folder;
use estimand::nn::metric;
use estimand::prelude::*;

fn model_fn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = Conv2d::new(20, 5).relu().apply(&cx.feature("image"));
    let net = MaxPool2d::new(2).apply(&net);
    let net = Conv2d::new(40, 5).relu().apply(&net);
    let net = MaxPool2d::new(2).apply(&net);
    let net = Flatten::new().apply(&net);
    let net = Dense::new(256).relu().apply(&net);
    let net = Dropout::new(0.5).apply(&net);
    let net = Dense::new(256).relu().apply(&net);
    let net = Dropout::new(0.5).apply(&net);
    let logits = Dense::new(10).apply(&net);

    let digits = logits.argmax(-1);
    let spec = EstimatorSpec::new(cx).prediction("digit", &digits).prediction("probabilities", &logits.softmax());
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let label = cx.label();
    let loss = logits.sparse_softmax_cross_entropy(&label).mean();
    Ok(spec
        .loss(&loss)
        .optimizer(Optimizer::new(Adam::default(), cx.params().f64("learning_rate")?))
        .metric("accuracy", metric::accuracy(&label, &digits, None)))
}

/// Returns batches of one split; training batches are shuffled and never end.
fn input(folder: &Folder, cx: &InputFnContext<'_>) -> Result<Dataset> {
    let training = cx.mode == Mode::Train;
    let rows = folder.load("mnist", if training { "train" } else { "test" })?.dataset();
    let rows = if training { rows.shuffle(60_000, 7).repeat_forever() } else { rows };
    Ok(rows.batch(128).map_feature("image", estimand::data::image::to_unit))
}

fn main() -> Result<()> {
    console::verbosity(Level::Info);
    let given = std::env::args().nth(1).map(PathBuf::from);
    let folder = match given {
        Some(path) => Folder::new(path),
        None => Folder::from_env().map_err(|e| e.help("set it, or name the folder of MNIST's four IDX files"))?,
    };

    let params = HParams::new().set("learning_rate", 0.002);
    let config = RunConfig::new().tf_random_seed(1).save_checkpoints(Every::Steps(1_000));
    let classifier = Estimator::new(model_fn).params(params).config(config).build()?;

    let start = Instant::now();
    let finished = classifier.train(TrainSpec::new(|cx: &InputFnContext<'_>| input(&folder, cx)).max_steps(5_000))?;
    println!("{finished}");
    println!("{:.1} s, {:.2} ms a step", start.elapsed().as_secs_f64(), start.elapsed().as_secs_f64() / 5.0);
    let metrics = classifier.evaluate(EvalSpec::new(|cx: &InputFnContext<'_>| input(&folder, cx)))?;
    println!("\n{metrics}\n");
    println!("accuracy = {:.4}", metrics["accuracy"]);
    Ok(())
}
