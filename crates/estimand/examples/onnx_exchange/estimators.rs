//! Estimators: premade ones over every column that ONNX can express, and model functions.

use std::path::Path;

use estimand::graph::Combiner;
use estimand::nn::BatchNorm;
use estimand::nn::column::{
    sequence_categorical_column_with_vocabulary_list, sequence_numeric_column, shared_embeddings,
    weighted_categorical_column,
};
use estimand::prelude::*;

#[path = "../export_cases/sequences.rs"]
mod shared;

use shared::adam;

const JOBS: [&str; 5] = ["nurse", "cook", "clerk", "pilot", "K\u{f6}nig"];
const TAGS: [&str; 4] = ["a", "b", "c", "d"];

type ModelFn = fn(&ModelFnContext<'_>) -> Result<EstimatorSpec>;

/// The model of a case, and its labels.
pub fn model(case: &str, folder: &Path) -> Result<(Estimator, Vec<&'static str>)> {
    let (config, model_dir) = (RunConfig::new().tf_random_seed(1), folder.join("model"));
    macro_rules! built {
        ($builder:expr, $label:expr) => {
            ($builder.config(config).model_dir(model_dir).build()?, vec![$label])
        };
    }
    let own = |function: ModelFn| Estimator::new(function);
    Ok(match case {
        "iris" => {
            let names = ["sepal_length", "sepal_width", "petal_length", "petal_width"];
            let columns: Vec<FeatureColumn> = names.map(|name| numeric_column(name).into()).into();
            let classes = ["setosa", "versicolor", "virginica"];
            built!(DnnClassifier::new([16, 8], columns).n_classes(3).label_vocabulary(classes), "species")
        }
        "census" => {
            let combined = DnnLinearCombinedClassifier::new().linear_feature_columns(wide());
            built!(combined.dnn_feature_columns(deep(folder)?).dnn_hidden_units([8, 4]), "binary")
        }
        "census_regressor" => built!(DnnRegressor::new([8, 4], deep(folder)?).batch_norm(true), "target"),
        "linear" => built!(LinearClassifier::new(wide()).n_classes(3), "class"),
        "cnn" => built!(own(cnn), "class"),
        "lstm" => built!(own(lstm), "binary"),
        "recurrent" => built!(own(recurrent), "target"),
        "attention" => built!(own(attention), "class"),
        "ops" => built!(own(ops), "target"),
        _ => return Err(Error::config(format!("there is no case `{case}`"))),
    })
}

fn wide() -> Columns {
    let height = bucketized_column(&numeric_column("height"), [-1.0, 0.0, 0.5, 2.0]);
    let age = bucketized_column(&numeric_column("age").dtype(DType::I64), [18.0, 30.0, 65.0]);
    let tags = categorical_column_with_vocabulary_list("tags", TAGS).default_value(0);
    columns![
        height,
        age,
        categorical_column_with_vocabulary_list("job", JOBS).n_oov_buckets(1),
        categorical_column_with_identity("ids", 20).default_value(7),
        weighted_categorical_column(tags, "weights"),
        numeric_column("vec").shape([3]),
    ]
}

fn deep(folder: &Path) -> Result<Columns> {
    let file = folder.join("jobs.txt");
    std::fs::write(&file, JOBS.join("\n")).map_err(|e| Error::io(&file, "write", &e))?;
    let jobs = categorical_column_with_vocabulary_file("job", &file);
    let listed = || categorical_column_with_vocabulary_list("job", JOBS);
    let tags = || categorical_column_with_vocabulary_list("tags", TAGS);
    let years = categorical_column_with_vocabulary_list("age", [20i64, 30, 40, 50]);
    let looked_up: [FeatureColumn; 2] = [tags().into(), categorical_column_with_vocabulary_list("words", TAGS).into()];
    let shared = shared_embeddings(looked_up, 3);
    let mut all: Vec<FeatureColumn> = shared.columns().into_iter().map(FeatureColumn::from).collect();
    all.extend([
        numeric_column("height").normalizer(|x| (x - 0.5) / 2.0).into(),
        numeric_column("vec").shape([3]).into(),
        indicator_column(jobs).into(),
        embedding_column(listed(), 4).into(),
        embedding_column(weighted_categorical_column(tags(), "weights"), 2).combiner(Combiner::SqrtN).into(),
        embedding_column(tags(), 2).combiner(Combiner::Sum).into(),
        indicator_column(categorical_column_with_identity("ids", 20).default_value(7)).into(),
        indicator_column(years).into(),
    ]);
    Ok(all.into())
}

/// The CNN of MNIST, with batch normalization.
fn cnn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = Conv2d::new(8, 5).same().relu().apply(&cx.feature("pixels"));
    let net = MaxPool2d::new(2).apply(&BatchNorm::new().apply(&net));
    let net = Conv2d::new(4, 3).strides(2).same().relu().apply(&net);
    let net = Dense::new(16).relu().apply(&Flatten::new().apply(&net));
    let logits = Dense::new(3).apply(&Dropout::new(0.4).apply(&net));
    MultiClassHead::new(3).spec(cx, &logits, adam())
}

/// Two sequences of the same length in every row.
fn sequences() -> Columns {
    let words = sequence_categorical_column_with_vocabulary_list("words", TAGS);
    columns![embedding_column(words, 4), sequence_numeric_column("steps")]
}

fn lstm(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    shared::lstm(cx, sequences())
}

fn recurrent(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    shared::recurrent(cx, sequences())
}

fn attention(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    shared::attention(cx, sequences())
}

/// Ops that layers do not use, each a prediction.
fn ops(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let (x, n) = (cx.feature("x"), cx.feature("n"));
    let weights = cx.graph().variable("projection", [6, 4], Initializer::GlorotUniform);
    let projected = x.matmul(&weights).tanh();
    let (largest, places) = projected.top_k(2);
    let value = projected.square().sum_axes(1) + largest.max_axes(1);
    let small = &x * 1e-4;
    let spec = EstimatorSpec::new(cx)
        .prediction("predictions", &value)
        .prediction("projected", &projected)
        .prediction("places", &places.cast(DType::I64))
        .prediction("expm1", &small.expm1())
        .prediction("log1p", &small.log1p())
        .prediction("floor_div", &x.floor_div(0.7))
        .prediction("floor_mod", &x.floor_mod(-0.7))
        .prediction("floor_div_of_integers", &n.floor_div(-3))
        .prediction("floor_mod_of_integers", &n.floor_mod(-3))
        .prediction("div_no_nan", &x.div_no_nan(n.cast(DType::F32).expand_dims(1)))
        .prediction("one_hot", &n.one_hot(4, DType::F32))
        .prediction("cumsum", &x.cumsum(1))
        .prediction("relu6", &(&x * 4.0).relu6())
        .prediction("selu", &x.selu())
        .prediction("softplus", &x.softplus())
        .prediction("log_softmax", &x.log_softmax())
        .prediction("is_finite", &x.log().is_finite())
        .prediction("reversed", &x.reverse(&[1]))
        .prediction("round", &x.round())
        .prediction("sign", &x.sign())
        .prediction("rsqrt", &x.abs().rsqrt())
        .prediction("any", &x.greater(1.5).any_axes(1));
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = (&value - cx.label()).square().mean();
    Ok(spec.loss(&loss).optimizer(adam()))
}
