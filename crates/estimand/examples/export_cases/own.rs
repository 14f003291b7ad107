//! Model functions for `export_exchange`: images, sequences, attention, and every layer.

use estimand::nn::column::{sequence_categorical_column_with_hash_bucket, sequence_numeric_column};
use estimand::nn::{ALL_LAYERS, BatchNorm};
use estimand::prelude::*;

#[path = "../../../nn/tests/nn/all_options.rs"]
mod all_options;
#[path = "sequences.rs"]
mod shared;

use shared::adam;

/// The sizes of the feature `pixels`.
pub const PIXELS: [usize; 3] = [8, 8, 4];

pub type Model = fn(&ModelFnContext<'_>) -> Result<EstimatorSpec>;

/// The model function of a case, the columns of its features, and its label.
pub fn model(case: &str) -> Option<(Model, Columns, &'static str)> {
    let pixels = || columns![numeric_column("pixels").shape(PIXELS)];
    Some(match case {
        "cnn" => (cnn, pixels(), "class"),
        "lstm" => (lstm, sequences(), "binary"),
        "recurrent" => (recurrent, sequences(), "target"),
        "attention" => (attention, sequences(), "class"),
        "custom" => (custom, pixels(), "target"),
        "layers" => (layers, pixels(), "target"),
        _ => return None,
    })
}

/// Two sequences of the same length in every row.
fn sequences() -> Columns {
    let words = sequence_categorical_column_with_hash_bucket("words", 50);
    columns![embedding_column(words, 4), sequence_numeric_column("steps")]
}

fn cnn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = Conv2d::new(6, 3).relu().apply(&cx.feature("pixels"));
    let net = MaxPool2d::new(2).apply(&BatchNorm::new().apply(&net));
    let net = Dense::new(16).relu().apply(&Flatten::new().apply(&net));
    let logits = Dense::new(3).apply(&Dropout::new(0.4).apply(&net));
    MultiClassHead::new(3).spec(cx, &logits, adam())
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

/// A model with predictions of its own, from ops and not from layers.
fn custom(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let x = cx.feature("pixels").reshape([-1, 256]);
    let weights = cx.graph().variable("projection", [256, 4], Initializer::GlorotUniform);
    let projected = x.matmul(&weights).tanh();
    let (largest, places) = projected.top_k(2);
    let value = projected.square().sum_axes(1) + largest.max_axes(1);
    let spec = EstimatorSpec::new(cx)
        .prediction("predictions", &value)
        .prediction("projected", &projected)
        .prediction("places", &places.cast(DType::I64));
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = (&value - cx.label()).square().mean();
    Ok(spec.loss(&loss).optimizer(adam()))
}

/// Every layer in its simplest form, and again with all its options. Each is a prediction.
fn layers(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let x = cx.feature("pixels").reshape([-1, 256]);
    let mut spec = EstimatorSpec::new(cx);
    let mut losses = Vec::new();
    let all = ALL_LAYERS.iter().map(|make| make()).chain(all_options::with_all_options());
    for (i, layer) in all.enumerate() {
        let shape = all_options::shape(layer.kind());
        let sizes: Vec<usize> = shape.dims().iter().filter_map(|d| d.known()).collect();
        let n: usize = sizes.iter().product();
        let dims: Vec<i64> = [-1].into_iter().chain(sizes.iter().map(|&n| n as i64)).collect();
        let part = |first: usize| {
            let first = first.min(256 - n);
            x.slice(&[0, first], &[-1, n as i64]).reshape(&dims[..])
        };
        let given = |first: usize| match all_options::dtype(&*layer) {
            DType::I64 => ids(&part(first)),
            DType::Str => words(&part(first)),
            _ => part(first),
        };
        let inputs: Vec<Tensor> = match layer.n_inputs().contains(&1) {
            true => vec![given(0)],
            false => vec![given(0), given(100)],
        };
        let _scope = cx.graph().scope(&format!("layer_{i}"));
        let result = layer.apply(&LayerInputs::of(&inputs).training(cx.mode() == Mode::Train));
        let width: usize = result.shape().dims().iter().filter_map(|d| d.known()).product();
        let flat = result.reshape([-1, width as i64]);
        if flat.dtype() != DType::Str {
            losses.push(flat.cast(DType::F32).square().mean());
        }
        spec = spec.prediction(format!("{i:03}_{}", layer.kind()), &flat);
    }
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = losses.iter().skip(1).fold(losses[0].clone(), |sum, loss| sum + loss);
    Ok(spec.loss(&loss).optimizer(Optimizer::new(Sgd::default(), 0.001)))
}

/// Ids from 0 to 4 that do not depend on rounding.
fn ids(x: &Tensor) -> Tensor {
    let above = [-1.0, -0.3, 0.3, 1.0].map(|bound| x.greater(bound).cast(DType::I64));
    above.iter().skip(1).fold(above[0].clone(), |sum, one| sum + one)
}

/// Words and texts, one of five for each number.
fn words(x: &Tensor) -> Tensor {
    let texts = [("0", "a"), ("1", "Ad. e!"), ("2", ""), ("3", "zz"), ("4", "e d")];
    texts.iter().fold(ids(x).as_string(), |text, (number, word)| text.regex_replace(number, word))
}
