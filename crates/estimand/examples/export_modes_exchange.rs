//! Our side of training and evaluation graphs that TensorFlow runs (oracles/live/export_modes.py).
//!
//! `CASE ROWS.tfrecord FOLDER` trains a model for 5 steps and exports it with its three graphs to
//! `FOLDER/export`. Then it writes the metrics of the rows to `FOLDER/metrics.txt`, and trains 10
//! more steps, whose checkpoint TensorFlow reads.

use std::fmt::Write as _;
use std::path::Path;

use estimand::Input;
use estimand::export::{ExportAllSpec, Receiver, ServingInputReceiver, SupervisedReceiver};
use estimand::graph::Clip;
use estimand::head::{LogisticRegressionHead, MultiHead, MultiLabelHead, PoissonRegressionHead, SequentialHeadWrapper};
use estimand::nn::column::{make_parse_example_spec, weighted_categorical_column};
use estimand::nn::metric::ALL_METRICS;
use estimand::prelude::*;
use estimand::premade::{DnnEstimator, LinearEstimator};
use estimand::tensor::BatchSpec;
use estimand::update::{Adadelta, Adamax, MaxNorm, Nadam, NonNeg};

const JOBS: [&str; 5] = ["nurse", "cook", "clerk", "pilot", "K\u{f6}nig"];
const TAGS: [&str; 4] = ["a", "b", "c", "d"];
/// Rows of a batch. There are ten batches.
const BATCH: usize = 100;
const STEPS_BEFORE: u64 = 5;
const STEPS: u64 = 10;

fn spec(features: &[(&str, FeatureSpec)]) -> BatchSpec {
    features.iter().map(|(name, spec)| (name.to_string(), spec.clone())).collect()
}

fn rows(path: &str) -> Dataset {
    let features = spec(&[
        ("height", FeatureSpec::dense(DType::F32, [])),
        ("vec", FeatureSpec::dense(DType::F32, [3])),
        ("job", FeatureSpec::dense(DType::Str, [])),
        ("words", FeatureSpec::ragged(DType::Str)),
        ("ids", FeatureSpec::ragged(DType::I64)),
        ("tags", FeatureSpec::ragged(DType::Str)),
        ("weights", FeatureSpec::ragged(DType::F32)),
        ("binary", FeatureSpec::dense(DType::I64, [])),
        ("class", FeatureSpec::dense(DType::I64, [])),
        ("target", FeatureSpec::dense(DType::F32, [])),
        ("term", FeatureSpec::dense(DType::Str, [])),
        ("mask", FeatureSpec::dense(DType::I64, [3])),
        ("row_weight", FeatureSpec::dense(DType::F32, [])),
        ("steps", FeatureSpec::dense(DType::F32, [3])),
    ]);
    Dataset::from_tfrecord(path, features)
}

fn wide() -> Columns {
    let tags = categorical_column_with_vocabulary_list("tags", TAGS).default_value(0);
    columns![
        bucketized_column(&numeric_column("height"), [-1.0, 0.0, 0.5, 2.0]),
        categorical_column_with_vocabulary_list("job", JOBS).n_oov_buckets(3),
        categorical_column_with_hash_bucket("words", 50),
        categorical_column_with_identity("ids", 20).default_value(7),
        weighted_categorical_column(tags, "weights"),
        crossed_column(["job", "words"], 100),
        numeric_column("vec").shape([3]),
    ]
}

fn deep(folder: &Path) -> Result<Columns> {
    let file = folder.join("jobs.txt");
    std::fs::write(&file, JOBS.join("\n")).map_err(|e| Error::io(&file, "write", &e))?;
    Ok(columns![
        numeric_column("vec").shape([3]),
        indicator_column(categorical_column_with_vocabulary_file("job", &file)),
        embedding_column(categorical_column_with_hash_bucket("words", 50), 4),
    ])
}

/// A model of one tensor with every metric, limited weights, and clipped gradients.
fn all_metrics(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let x = cx.feature("vec");
    let w = cx.graph().variable("w", [3, 3], Initializer::Constant(0.25));
    let b = cx.graph().variable("b", [3], Initializer::Constant(0.125));
    cx.graph().constrain(&w, std::sync::Arc::new(MaxNorm::new(0.4)));
    cx.graph().constrain(&b, std::sync::Arc::new(NonNeg));
    let probabilities = (x.matmul(&w) + &b).softmax();
    let mut all = EstimatorSpec::new(cx).single_prediction(&probabilities);
    if cx.mode() == Mode::Predict {
        return Ok(all);
    }
    let classes = cx.label();
    let loss = (x.matmul(&w) + &b).sparse_softmax_cross_entropy(&classes).mean();
    let one_hot = classes.one_hot(3, DType::F32);
    let ids = probabilities.argmax(-1);
    for make in ALL_METRICS {
        let metric = make();
        let name = metric.name().to_string();
        let found = match name.as_str() {
            "accuracy" | "confusion_matrix" | "mean_iou" | "mean_per_class_accuracy" => {
                metric.apply(&classes, &ids, None)
            }
            "sparse_categorical_accuracy" | "sparse_top_k_categorical_accuracy" => {
                metric.apply(&classes, &probabilities, None)
            }
            _ => metric.apply(&one_hot, &probabilities, None),
        };
        all = all.metric(name, found);
    }
    // A name that no node can have.
    let all = all.metric("größe, %", estimand::nn::metric::mean(&probabilities.sum_axes(-1), None));
    let adam = Optimizer::new(Adam::default(), Schedule::from(0.05).warm_up(4)).clip(Clip::GlobalNorm(0.1));
    Ok(all.loss(&loss).optimizer(adam))
}

/// A model of sequences of three steps, some of which do not exist.
fn sequential(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let logits = Dense::new(1).apply(&cx.feature("vec").expand_dims(-1));
    let head = SequentialHeadWrapper::new(RegressionHead::new()).sequence_length_mask("mask");
    head.spec(cx, &logits, Optimizer::new(Adam::default(), 0.1))
}

fn optimizer(name: &str) -> Result<Optimizer> {
    let decayed = Schedule::Exponential { initial: 0.1, decay_steps: 3, decay_rate: 0.7, staircase: true };
    Ok(match name {
        "momentum" => Optimizer::new(Sgd::default().momentum(0.9), 0.02),
        "nesterov" => Optimizer::new(Sgd::default().momentum(0.9).nesterov(true), 0.02),
        "centered" => Optimizer::new(RmsProp::default().momentum(0.5).centered(true), 0.002),
        "rmsprop_v1" => Optimizer::new(RmsProp::v1(), 0.002),
        "amsgrad" => Optimizer::new(Adam::default().amsgrad(true), 0.01),
        "weight_decay" => Optimizer::new(Adam::default().weight_decay(0.01), 0.01),
        "lazy" => Optimizer::new(Adam::default(), 0.01).lazy(),
        "regularized" => Optimizer::new(Ftrl::default().l1(0.001).l2(0.01), 0.05),
        "scheduled" => Optimizer::new(Sgd::default(), decayed).clip(Clip::Norm(0.5)),
        "Adadelta" => Optimizer::new(Adadelta::default(), 0.5),
        "Adamax" => Optimizer::new(Adamax::default(), 0.01),
        "Nadam" => Optimizer::new(Nadam::default(), 0.01),
        named => Optimizer::named(named, Some(0.01))?,
    })
}

/// The model of a case, its columns, and the labels that it trains with.
fn model(case: &str, folder: &Path) -> Result<(Estimator, Columns, Vec<&'static str>)> {
    let (config, model_dir) = (RunConfig::new().tf_random_seed(1), folder.join("model"));
    let (wide, deep) = (wide(), deep(folder)?);

    macro_rules! built {
        ($builder:expr, $columns:expr, $labels:expr) => {
            ($builder.config(config).model_dir(model_dir).build()?, $columns, $labels.to_vec())
        };
    }
    if let Some(name) = case.strip_prefix("optimizer_") {
        let dnn = DnnClassifier::new([8], deep.clone()).optimizer(optimizer(name)?);
        return Ok(built!(dnn, deep, ["binary"]));
    }
    let both = || [&wide.clone()[..], &deep.clone()[..]].concat().into();
    Ok(match case {
        "baseline" => built!(BaselineClassifier::new().n_classes(3), Columns::default(), ["class"]),
        "linear" | "analysis" => built!(LinearClassifier::new(wide.clone()), wide, ["binary"]),
        "linear_classes" => built!(LinearClassifier::new(wide.clone()).n_classes(3), wide, ["class"]),
        "linear_regressor" | "row_weights" => built!(LinearRegressor::new(wide.clone()), wide, ["target"]),
        "dnn" => built!(DnnClassifier::new([8, 4], deep.clone()), deep, ["binary"]),
        "dnn_classes" => built!(DnnClassifier::new([8, 4], deep.clone()).n_classes(3), deep, ["class"]),
        "dropout" => built!(DnnClassifier::new([8, 4], deep.clone()).dropout(0.5), deep, ["binary"]),
        "dnn_batch_norm" => built!(DnnRegressor::new([8, 4], deep.clone()).batch_norm(true), deep, ["target"]),
        "combined" => {
            let combined = DnnLinearCombinedClassifier::new().linear_feature_columns(wide.clone());
            built!(combined.dnn_feature_columns(deep.clone()).dnn_hidden_units([8]), both(), ["binary"])
        }
        "weighted" => {
            let head = BinaryClassHead::new().weight_column("class").thresholds([0.25, 0.5]).slice_by("job", ["nurse"]);
            built!(LinearEstimator::new(head, wide.clone()), wide, ["binary"])
        }
        "terms" => {
            let head = MultiClassHead::new(2).label_vocabulary(["low", "high"]);
            built!(LinearEstimator::new(head, wide.clone()), wide, ["term"])
        }
        "multi_label" => {
            let head = MultiLabelHead::new(1001).thresholds([0.5]).metrics_of_classes([5]);
            built!(DnnEstimator::new(head, [4], deep.clone()), deep, ["ids"])
        }
        "poisson" => built!(DnnEstimator::new(PoissonRegressionHead::new(), [4], deep.clone()), deep, ["class"]),
        "logistic" => built!(LinearEstimator::new(LogisticRegressionHead::new(), wide.clone()), wide, ["binary"]),
        "heads" => {
            let heads = MultiHead::new()
                .head(BinaryClassHead::new().name("binary"))
                .head(MultiClassHead::new(3).name("class"))
                .head(RegressionHead::new().name("target"));
            built!(DnnEstimator::new(heads, [8], deep.clone()), deep, ["binary", "class", "target"])
        }
        "sequential" => built!(Estimator::new(sequential), columns![numeric_column("vec").shape([3])], ["steps"]),
        "metrics" => built!(Estimator::new(all_metrics), columns![numeric_column("vec").shape([3])], ["class"]),
        _ => return Err(Error::config(format!("there is no case `{case}`"))),
    })
}

/// Examples, or in their place the numbers that are parsed from them.
fn parsed_or_raw(features: BatchSpec) -> Receiver {
    Receiver::of(move |graph| {
        let examples = graph.placeholder("examples", DType::Str, [Dim::BATCH]);
        let parsed: Vec<(String, Input)> =
            examples.parse_example(&features).into_iter().map(|(name, parsed)| (name, parsed.into())).collect();
        let vec = parsed.iter().find_map(|(name, input)| match input {
            Input::Dense(tensor) if name == "vec" => Some((name.clone(), tensor.clone())),
            _ => None,
        });
        let receiver = ServingInputReceiver::new(parsed, [("examples".to_string(), examples)]);
        Ok(receiver.alternative("raw", vec))
    })
}

/// The metrics as lines of a name, a tab, and numbers.
fn shown(metrics: &estimand::Metrics) -> Result<String> {
    let mut text = String::new();
    for (name, value) in metrics.iter() {
        writeln!(text, "{name}\t{value:?}").map_err(|_| Error::internal("text"))?;
    }
    for (name, array) in metrics.arrays() {
        let numbers: Vec<String> = array.to_f64_vec()?.iter().map(|value| format!("{value:?}")).collect();
        writeln!(text, "{name}\t{}", numbers.join(" ")).map_err(|_| Error::internal("text"))?;
    }
    Ok(text)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, file, folder] = &arguments[..] else {
        return Err(Error::config("usage: export_modes_exchange CASE ROWS.tfrecord FOLDER"));
    };
    let folder = Path::new(folder);
    let (model, columns, labels) = model(case, folder)?;
    let mut data = labels.iter().fold(rows(file), |rows, label| rows.label(label));
    if case == "row_weights" {
        data = data.weights("row_weight");
    }
    let data = data.batch(BATCH);
    let label_spec = data.label_spec()?;
    let train = |steps: u64| model.train(TrainSpec::new(data.repeat_forever()).max_steps(steps)).map(|_| ());
    train(STEPS_BEFORE)?;

    // The features of the columns, and those that only a head reads.
    let mut features = make_parse_example_spec(columns.clone())?;
    features.extend(spec(&[
        ("class", FeatureSpec::dense(DType::I64, [])),
        ("job", FeatureSpec::dense(DType::Str, [])),
        ("mask", FeatureSpec::dense(DType::I64, [3])),
    ]));
    features.retain(|name, _| !label_spec.contains_key(name));
    let mut supervised = SupervisedReceiver::parsing(features.clone(), label_spec);
    if case == "row_weights" {
        supervised = supervised.weights("row_weight")?;
    }
    let eval = if case == "analysis" { supervised.clone().for_model_analysis()? } else { supervised.clone() };
    let predict = if case == "metrics" { parsed_or_raw(features) } else { Receiver::parsing(features) };
    let modes = ExportAllSpec::new().train(supervised).eval(eval).predict(predict);
    println!("{}", model.experimental_export_all_saved_models(folder.join("export"), modes)?.display());

    let text = shown(&model.evaluate(&data)?)?;
    let path = folder.join("metrics.txt");
    std::fs::write(&path, text).map_err(|e| Error::io(&path, "write", &e))?;
    train(STEPS_BEFORE + STEPS)
}
