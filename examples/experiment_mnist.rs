//! MNIST with `Experiment`, `learn_runner` and `HParams`: the whole program of the article
//! "TensorFlow Higher-Level APIs" (Estimator, Experiment and Dataset together).
//!
//! `cargo run --release --example experiment_mnist -- FOLDER [--model_dir DIR]`, where FOLDER (or
//! `--data_dir FOLDER`, or `$ESTIMAND_DATA/mnist`) holds the four IDX files. Without them it is an
//! error.
//!
//! What differs from the article:
//! - files are not downloaded, there is no default folder, and FOLDER may be the first argument;
//! - flags begin with two dashes, and there are no name scopes around the inputs;
//! - the model folder is a temporary one unless it is named, instead of `./mnist_training`;
//! - a fixed `tf_random_seed`, so that each run gives the same numbers;
//! - layers are not slim's, so their variables are called `kernel` and `bias`, not `weights` and
//!   `biases`;
//! - the metrics are printed at the end.

use std::path::PathBuf;

use estimand::console::{self, Level};
use estimand::data::Placeholders;
use estimand::data::datasets::Folder;
use estimand::data::image::to_unit;
use estimand::hook::IteratorInitializerHook;
use estimand::learn_runner::{self, Options};
use estimand::nn::metric;
use estimand::prelude::*;
use estimand::{Experiment, InputFn, OptimizeLoss, OptimizerSummary};

const BATCH_SIZE: usize = 128;

const HELP: &str = "\
Trains a convolutional network on MNIST.

usage: experiment_mnist [FOLDER] [flags]

flags:
  --model_dir: Output directory for model and training stats. (default: a temporary folder)
  --data_dir: Directory of the data, with MNIST's four IDX files. The same as FOLDER. (default: $ESTIMAND_DATA)
  --help: show this help";

/// The program's flags.
struct Flags {
    model_dir: PathBuf,
    data_dir: Folder,
}

impl Flags {
    /// Reads `--name=value` and `--name value`, as `tf.app.flags` does; `None` if help was asked
    /// for.
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Option<Flags>> {
        let (mut model_dir, mut data_dir) = (None, None);
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value.to_string())),
                None => (argument.as_str(), None),
            };
            let flag = match name {
                "--help" | "-h" if value.is_none() => return Ok(None),
                "--model_dir" => &mut model_dir,
                "--data_dir" => &mut data_dir,
                folder if !folder.starts_with('-') && value.is_none() && data_dir.is_none() => {
                    data_dir = Some(folder.into());
                    continue;
                }
                _ => return Err(Error::config(format!("unknown argument `{argument}`")).help("--help lists the flags")),
            };
            let value = value.or_else(|| arguments.next()).filter(|value| !value.is_empty());
            let missing = || Error::config(format!("{name} has no value")).help("write its folder after it");
            *flag = Some(PathBuf::from(value.ok_or_else(missing)?));
        }
        let temporary = || std::env::temp_dir().join(format!("estimand-experiment-mnist-{}", std::process::id()));
        let data_dir = match data_dir {
            Some(folder) => Folder::new(folder),
            None => Folder::from_env().map_err(|e| e.help("set it, or name the folder of MNIST's four IDX files"))?,
        };
        Ok(Some(Flags { model_dir: model_dir.unwrap_or_else(temporary), data_dir }))
    }
}

/// Runs the training experiment.
fn run_experiment(flags: &Flags) -> Result<()> {
    let params = HParams::new()
        .set("learning_rate", 0.002)
        .set("n_classes", 10)
        .set("train_steps", 5_000)
        .set("min_eval_frequency", 100);
    let run_config = RunConfig::new().model_dir(&flags.model_dir).tf_random_seed(1);
    let options = Options::new().run_config(run_config).schedule("train_and_evaluate").hparams(params);
    let result = learn_runner::run(|config, params| experiment_fn(config, params, &flags.data_dir), options)?;
    let metrics = result.metrics.ok_or_else(|| Error::internal("nothing was evaluated"))?;
    println!("\n{metrics}\n");
    println!("steps = {}", metrics.global_step());
    println!("accuracy = {:.4}", metrics["Accuracy"]);
    Ok(())
}

/// Makes an experiment to train and evaluate the model.
fn experiment_fn<'a>(run_config: RunConfig, params: HParams, data_dir: &Folder) -> Result<Experiment<'a>> {
    let (train_steps, frequency) = (params.usize("train_steps")?, params.usize("min_eval_frequency")?);
    let run_config = run_config.save_checkpoints(Every::Steps(frequency as u64));
    let estimator = get_estimator(run_config, params)?;
    // The inputs, and the hooks that initialize their iterators.
    let mnist = read_data_sets(data_dir)?;
    let (train_input_fn, train_input_hook) = get_train_inputs(BATCH_SIZE, mnist.train);
    let (eval_input_fn, eval_input_hook) = get_test_inputs(BATCH_SIZE, mnist.test);
    Ok(Experiment::new(estimator, train_input_fn, eval_input_fn)
        .train_steps(train_steps as u64)
        .min_eval_frequency(frequency as u64)
        .train_hook(train_input_hook)
        .eval_hook(eval_input_hook)
        .eval_steps(None)) // the whole test set
}

// The model.

fn get_estimator(run_config: RunConfig, params: HParams) -> Result<Estimator> {
    Estimator::new(model_fn).params(params).config(run_config).build()
}

fn model_fn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let logits = architecture(cx)?;
    let predictions = logits.argmax(-1);
    let spec = EstimatorSpec::new(cx).single_prediction(&predictions);
    // Loss, training and metrics are not needed for predictions.
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let labels = cx.label();
    let loss = logits.sparse_softmax_cross_entropy(&labels).mean();
    let spec = spec.loss(&loss).metric("Accuracy", metric::accuracy(&labels, &predictions, None));
    if cx.mode() == Mode::Eval {
        return Ok(spec);
    }
    Ok(spec.train_op(&get_train_op(cx, &loss)?))
}

fn get_train_op(cx: &ModelFnContext<'_>, loss: &Tensor) -> Result<Tensor> {
    Ok(OptimizeLoss::named(loss, "Adam", cx.params().f64("learning_rate")?)
        .global_step(cx.global_step())
        .summaries(cx.summary(), OptimizerSummary::DEFAULT)
        .train_op())
}

/// Two convolutions with pooling, two dense layers with dropout.
fn architecture(cx: &ModelFnContext<'_>) -> Result<Tensor> {
    let _scope = cx.graph().scope("MnistConvNet");
    let net = Conv2d::new(20, 5).relu().name("conv1").apply(&cx.feature("image"));
    let net = MaxPool2d::new(2).apply(&net);
    let net = Conv2d::new(40, 5).relu().name("conv3").apply(&net);
    let net = MaxPool2d::new(2).apply(&net);
    let net = net.reshape([-1, 4 * 4 * 40]);
    let net = Dense::new(256).relu().name("fn5").apply(&net);
    let net = Dropout::new(0.5).apply(&net);
    let net = Dense::new(256).relu().name("fn6").apply(&net);
    let net = Dropout::new(0.5).apply(&net);
    Ok(Dense::new(cx.params().usize("n_classes")?).name("output").apply(&net))
}

// The inputs.

/// Images with numbers from 0 to 1, and their labels.
struct Rows {
    images: Array,
    labels: Array,
}

struct Mnist {
    train: Rows,
    test: Rows,
}

/// Reads MNIST. As in the article's reader, the first 5,000 training images are set aside.
fn read_data_sets(folder: &Folder) -> Result<Mnist> {
    let read = |split: &str, skipped: u64| {
        let rows = folder.load("mnist", split)?.dataset().skip(skipped).batch(60_000);
        let batch = rows.iter().next().ok_or_else(|| Error::data(format!("the split {split} has no rows")))??;
        let images = to_unit(batch.feature("image")?.dense()?)?;
        Ok(Rows { images, labels: batch.labels()["label"].dense()?.clone() })
    };
    Ok(Mnist { train: read("train", 5_000)?, test: read("test", 0)? })
}

/// Returns the input function of the training data, and the hook that initializes its iterator.
fn get_train_inputs<'a>(batch_size: usize, mnist: Rows) -> (impl InputFn + 'a, IteratorInitializerHook<'a>) {
    get_inputs(mnist, move |rows| rows.repeat_forever().shuffle(10_000, 7).batch(batch_size))
}

/// Returns the input function of the test data, and the hook that initializes its iterator.
fn get_test_inputs<'a>(batch_size: usize, mnist: Rows) -> (impl InputFn + 'a, IteratorInitializerHook<'a>) {
    get_inputs(mnist, move |rows| rows.batch(batch_size))
}

fn get_inputs<'a>(
    Rows { images, labels }: Rows,
    transform: impl Fn(Dataset) -> Dataset + 'a,
) -> (impl InputFn + 'a, IteratorInitializerHook<'a>) {
    let iterator_initializer_hook = IteratorInitializerHook::new();
    let iterator = iterator_initializer_hook.clone();
    let inputs = move |_: &InputFnContext<'_>| {
        let placeholders = Placeholders::like([("image", &images), ("label", &labels)]);
        let dataset = transform(placeholders.dataset().label("label"));
        // The feeds share the memory of the arrays.
        let feed_dict = [("image", images.clone()), ("label", labels.clone())];
        iterator.iterator_initializer_func(move |_| placeholders.feed(feed_dict.clone()));
        Ok(dataset)
    };
    (inputs, iterator_initializer_hook)
}

fn main() -> Result<()> {
    console::verbosity(Level::Debug);
    match Flags::read(std::env::args().skip(1))? {
        Some(flags) => run_experiment(&flags),
        None => {
            println!("{HELP}");
            Ok(())
        }
    }
}
