//! MNIST with `Experiment`, `learn_runner` and `HParams`: the whole program of the article
//! "TensorFlow Higher-Level APIs" (Estimator, Experiment and Dataset together).
//!
//! `cargo run --release --example experiment_mnist -- FOLDER [--model_dir=DIR]`, where FOLDER (or
//! `--data_dir=FOLDER`, or `$ESTIMAND_DATA/mnist`) holds the four IDX files. Without them it is an
//! error.
//!
//! What differs from the article: there is no `IteratorInitializerHook`, because a `Dataset` needs
//! no initialisation; all 60,000 training images are used (the article's reader sets 5,000 aside);
//! the files are not downloaded; the model folder is a temporary one unless it is named.

use std::path::PathBuf;

use estimand::console::{self, Level};
use estimand::data::datasets::Folder;
use estimand::data::image::to_unit;
use estimand::learn_runner::{self, Options};
use estimand::nn::metric;
use estimand::prelude::*;
use estimand::{Experiment, OptimizeLoss, OptimizerSummary};

const BATCH_SIZE: usize = 128;

/// The program's arguments.
struct Flags {
    model_dir: PathBuf,
    data: Folder,
}

impl Flags {
    fn read() -> Result<Flags> {
        let mut model_dir = std::env::temp_dir().join(format!("estimand-experiment-mnist-{}", std::process::id()));
        let mut data_dir = None;
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                Some(("--model_dir", folder)) => model_dir = folder.into(),
                Some(("--data_dir", folder)) => data_dir = Some(PathBuf::from(folder)),
                None if !argument.starts_with('-') && data_dir.is_none() => data_dir = Some(argument.into()),
                _ => {
                    return Err(Error::config(format!("unknown argument `{argument}`"))
                        .help("arguments are FOLDER, --data_dir=FOLDER and --model_dir=FOLDER"));
                }
            }
        }
        let data = match data_dir {
            Some(folder) => Folder::new(folder),
            None => Folder::from_env().map_err(|e| e.help("set it, or name the folder of MNIST's four IDX files"))?,
        };
        Ok(Flags { model_dir, data })
    }
}

/// Runs the training experiment.
fn run_experiment() -> Result<()> {
    let flags = Flags::read()?;
    let params = HParams::new()
        .set("learning_rate", 0.002)
        .set("n_classes", 10)
        .set("train_steps", 5_000)
        .set("min_eval_frequency", 100);
    let run_config = RunConfig::new().model_dir(&flags.model_dir).tf_random_seed(1);
    let options = Options::new().run_config(run_config).schedule("train_and_evaluate").hparams(params);
    let result = learn_runner::run(|config, params| experiment_fn(config, params, &flags.data), options)?;
    let metrics = result.metrics.ok_or_else(|| Error::internal("nothing was evaluated"))?;
    println!("\n{metrics}\n");
    println!("steps = {}", metrics.global_step());
    println!("accuracy = {:.4}", metrics["Accuracy"]);
    Ok(())
}

/// Makes an experiment to train and evaluate the model.
fn experiment_fn<'a>(run_config: RunConfig, params: HParams, data: &'a Folder) -> Result<Experiment<'a>> {
    let (train_steps, frequency) = (params.usize("train_steps")?, params.usize("min_eval_frequency")?);
    let run_config = run_config.save_checkpoints(Every::Steps(frequency as u64));
    let estimator = get_estimator(run_config, params)?;
    Ok(Experiment::new(estimator, get_train_inputs(data), get_test_inputs(data))
        .train_steps(train_steps as u64)
        .min_eval_frequency(frequency as u64)
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

/// Returns the function of the training data: shuffled and without end.
fn get_train_inputs(data: &Folder) -> impl Fn(&InputFnContext<'_>) -> Result<Dataset> + '_ {
    move |_| {
        let rows = data.load("mnist", "train")?.dataset().repeat_forever().shuffle(10_000, 7);
        Ok(rows.batch(BATCH_SIZE).map_feature("image", to_unit))
    }
}

/// Returns the function of the test data.
fn get_test_inputs(data: &Folder) -> impl Fn(&InputFnContext<'_>) -> Result<Dataset> + '_ {
    move |_| Ok(data.load("mnist", "test")?.dataset().batch(BATCH_SIZE).map_feature("image", to_unit))
}

fn main() -> Result<()> {
    console::verbosity(Level::Info);
    run_experiment()
}
