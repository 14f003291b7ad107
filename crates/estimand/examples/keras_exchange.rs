//! Trains models for `oracles/live/keras_models.py`: from its weights, on its batches.
//!
//! ```text
//! keras_exchange FOLDER
//! ```
//!
//! Reads `FOLDER/cases.json` and writes `FOLDER/results.json`: for each case the table of
//! `summary`, the names of layers, the history, the trained weights, an evaluation and a
//! prediction.

use std::path::Path;

use estimand::graph::Graph;
use estimand::keras::{Compile, Evaluate, Fit, Functional, Input, Model, Sequential};
use estimand::nn::config::CustomObjects;
use estimand::nn::{Concat, GlobalAvgPool1d, MultiHeadAttention, Regularizer, optimizer};
use estimand::prelude::*;
use serde_json::{Map, Value, json};

fn missing(what: &str) -> Error {
    Error::config(format!("cases.json has no {what}"))
}

fn array(plain: &Value) -> Result<Array> {
    let dims: Vec<usize> =
        plain["sizes"].as_array().into_iter().flatten().map(|n| n.as_u64().unwrap_or(0) as usize).collect();
    let values = plain["values"].as_array().ok_or_else(|| missing("values"))?;
    match plain["dtype"].as_str() {
        Some("int64") => Array::from_vec(dims, values.iter().map(|v| v.as_i64().unwrap_or(0)).collect()),
        _ => Array::from_vec(dims, values.iter().map(|v| v.as_f64().unwrap_or(f64::NAN) as f32).collect()),
    }
}

fn arrays(list: &Value) -> Result<Vec<Array>> {
    list.as_array().into_iter().flatten().map(array).collect()
}

fn plain(array: &Array) -> Result<Value> {
    Ok(json!({"sizes": array.dims(), "values": array.to_f64_vec()?}))
}

/// The same models as those of `oracles/live/keras_models.py`, with their losses and metrics.
fn model(name: &str, optimizer: Optimizer) -> Result<(Model, Compile)> {
    Ok(match name {
        "mlp" => {
            let hidden = Dense::new(16).relu().kernel_regularizer(Regularizer::l2(0.01));
            let model = Sequential::new().input([8]).add(hidden).add(Dense::new(3).softmax()).build()?;
            (model, Compile::new(optimizer, "sparse_categorical_crossentropy").metric("accuracy"))
        }
        "cnn" => {
            let model = Sequential::new()
                .input([8, 8, 2])
                .add(Conv2d::new(6, 3).same().use_bias(false))
                .add(BatchNorm::new())
                .add(Activation::Relu)
                .add(MaxPool2d::new(2))
                .add(Flatten::new())
                .add(Dense::new(4))
                .build()?;
            (model, Compile::new(optimizer, SparseSoftmaxCrossEntropy::new()).metric("acc"))
        }
        "lstm" => {
            let input = Input::new([Graph::ANY, 3.into()]).name("steps").tensor();
            let output = Dense::new(1).sigmoid().on(&Lstm::new(5).on(&input));
            let compile = Compile::new(optimizer, "binary_crossentropy").metric("accuracy").metric("AUC");
            (Model::new(&input, &output)?, compile)
        }
        "attention" => {
            let input = Input::new([6, 4]).name("steps").tensor();
            let seen = MultiHeadAttention::new(2, 3).on(&[&input, &input]);
            let output = Dense::new(3).softmax().on(&GlobalAvgPool1d::new().on(&seen));
            let compile = Compile::new(optimizer, "sparse_categorical_crossentropy").metric("accuracy");
            (Model::new(&input, &output)?, compile)
        }
        "masked" => {
            let model = Sequential::new()
                .input(Input::new([6]).name("words").dtype(DType::I64))
                .add(Embedding::new(9, 4).mask_zero(true))
                .add(Lstm::new(5).return_sequences(true))
                .add(Dense::new(6).tanh())
                .add(Dense::new(3).softmax())
                .build()?;
            (model, Compile::new(optimizer, "sparse_categorical_crossentropy").metric("accuracy"))
        }
        "two_inputs" => {
            let (a, b) = (Input::new([4]).name("a").tensor(), Input::new([6]).name("b").tensor());
            let (x, y) = (Dense::new(5).tanh().on(&a), Dense::new(5).relu().on(&b));
            let both = Concat::new().on(&[&x, &y]);
            let (score, klass) =
                (Dense::new(1).name("score").on(&both), Dense::new(3).softmax().name("klass").on(&both));
            let compile = Compile::new(optimizer, "mse")
                .loss_of("klass", "sparse_categorical_crossentropy")
                .loss_weight("klass", 0.5)
                .metric_of("score", "mae")
                .metric_of("klass", "accuracy");
            (Model::new(&[&a, &b], &[&score, &klass])?, compile)
        }
        _ => return Err(missing(name)),
    })
}

fn run(case: &Value) -> Result<Value> {
    let name = case["name"].as_str().ok_or_else(|| missing("name"))?;
    let document = case["optimizer"].as_str().ok_or_else(|| missing("optimizer"))?;
    let (mut model, compile) = model(name, optimizer::from_json(document, &CustomObjects::new())?)?;
    model.set_weights(&arrays(&case["weights"])?)?;
    model.compile(compile)?;
    let (x, y) = (arrays(&case["x"])?, arrays(&case["y"])?);
    let weights = array(&case["sample_weight"])?;
    let (epochs, batch_size) = (case["epochs"].as_u64().unwrap_or(1), case["batch_size"].as_u64().unwrap_or(1));
    let fit = Fit::new((x.clone(), y.clone(), &weights))
        .epochs(epochs as usize)
        .batch_size(batch_size as usize)
        .shuffle(false)
        .verbose(0)
        .validation_data((arrays(&case["val_x"])?, arrays(&case["val_y"])?));
    let history = model.fit(fit)?;
    let logs = model.evaluate(Evaluate::new((x.clone(), y)).batch_size(7))?;
    let predictions = model.predict_all(x)?.iter().map(plain).collect::<Result<Vec<_>>>()?;
    let trained = model.get_weights()?.iter().map(plain).collect::<Result<Vec<_>>>()?;
    Ok(json!({
        "summary": model.summary(),
        "layers": model.layers().iter().map(|layer| layer.name()).collect::<Vec<_>>(),
        "weight_names": model.weight_names().collect::<Vec<_>>(),
        "history": history.history.iter().map(|(name, values)| (name.clone(), json!(values))).collect::<Map<_, _>>(),
        "evaluation": logs.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>(),
        "predictions": predictions,
        "weights": trained,
    }))
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| Error::config("usage: keras_exchange FOLDER"))?;
    let folder = Path::new(&folder);
    let read = |e: std::io::Error| Error::config(format!("cannot exchange files: {e}"));
    let text = std::fs::read_to_string(folder.join("cases.json")).map_err(read)?;
    let cases: Value = serde_json::from_str(&text).map_err(|e| Error::config(format!("cases.json: {e}")))?;
    let results = cases.as_array().into_iter().flatten().map(run).collect::<Result<Vec<_>>>()?;
    std::fs::write(folder.join("results.json"), Value::from(results).to_string()).map_err(read)
}
