//! Opens the files of Keras for `oracles/live/keras_files.py`, predicts with their models, and
//! writes them again.
//!
//! ```text
//! keras_files_exchange FOLDER
//! ```
//!
//! `cases.json` in the folder lists models: a name, the version of Keras, and the array `x`. Each
//! is in `NAME.keras` and `NAME.h5`, and its weights in `NAME.weights.h5`. Of a network of
//! `keras.applications` there are weights, and of some the whole network.
//!
//! Of a model that `adapt` has taught there is only `NAME.keras`, and of one with several `inputs`
//! (`oracles/live/keras_graphs.py`).
//!
//! A compiled model is trained on `batches`. After the first `n` of them it is written, and then it
//! goes on; its losses are the result. What is written here has both forms: `NAME_ours.keras` and
//! `NAME_ours.h5`. The case `own` asks for models that are compiled here, and `layers` for a model
//! of each layer.

use std::path::Path;

use estimand::keras::applications::{self, Application, Pooling};
use estimand::keras::{
    Compile, KerasVersion, LoadModel, LossChoice, MetricChoice, Model, SaveModel, Sequential, load_model,
    load_model_with, model_from_json,
};
use estimand::nn::config::CustomObjects;
use estimand::nn::{loss, metric};
use estimand::prelude::*;
use serde_json::{Value, json};

mod layers;

fn array(value: &Value) -> Result<Array> {
    if let Some(texts) = value["texts"].as_array() {
        let dims: Vec<usize> = array_of_sizes(value);
        return Array::from_strings(dims, texts.iter().map(|text| text.as_str().unwrap_or_default()));
    }
    let numbers = |key: &str| value[key].as_array().cloned().unwrap_or_default();
    let dims = array_of_sizes(value);
    if value["dtype"] == "int64" {
        return Array::from_vec(dims, numbers("values").iter().map(|x| x.as_i64().unwrap_or(0)).collect());
    }
    if value["dtype"] == "int32" {
        return Array::from_vec(dims, numbers("values").iter().map(|x| x.as_i64().unwrap_or(0) as i32).collect());
    }
    Array::from_vec(dims, numbers("values").iter().map(|x| x.as_f64().unwrap_or(0.0) as f32).collect())
}

fn array_of_sizes(value: &Value) -> Vec<usize> {
    value["sizes"].as_array().into_iter().flatten().map(|n| n.as_u64().unwrap_or(0) as usize).collect()
}

/// A network of `keras.applications`, in the form that the check has made.
fn network(name: &str) -> Result<Model> {
    match name {
        "mobile_net_v2" => {
            let network = applications::mobile_net_v2().input_shape([96, 96, 3]);
            network.include_top(false).pooling(Pooling::Avg).build()
        }
        "resnet50" => with_logits(applications::resnet50().input_shape([64, 64, 3])),
        "vgg16" => applications::vgg16().input_shape([33, 32, 3]).classes(5).build(),
        "inception_v3" => with_logits(applications::inception_v3().input_shape([75, 90, 3])),
        "efficient_net_b0" => {
            let network = applications::efficient_net_b0().input_shape([65, 64, 3]);
            network.classes(7).classifier_activation(Activation::Linear).build()
        }
        "xception" => with_logits(applications::xception().input_shape([71, 75, 3])),
        "dense_net121" => {
            let network = applications::dense_net121().input_shape([64, 70, 3]);
            network.include_top(false).pooling(Pooling::Max).build()
        }
        other => Err(Error::config(format!("there is no network `{other}`"))),
    }
}

/// A network with a top of 5 classes without a softmax, which would hide differences.
fn with_logits(network: Application) -> Result<Model> {
    network.classes(5).classifier_activation(Activation::Linear).build()
}

fn plain(array: &Array) -> Result<Value> {
    let dtype = array.dtype().to_string();
    if array.dtype() == DType::Str {
        let texts: Vec<_> = array.strings()?.map(String::from_utf8_lossy).collect();
        return Ok(json!({ "dtype": dtype, "sizes": array.dims(), "texts": texts }));
    }
    Ok(json!({ "dtype": dtype, "sizes": array.dims(), "values": array.to_f64_vec()? }))
}

/// Goes on with a model that Keras has trained.
fn train(path: &Path, written: &str, version: KerasVersion, case: &Value) -> Result<Value> {
    let mut model = load_model_with(path, &CustomObjects::new(), LoadModel::new().compile(true))?;
    let mut losses = Vec::new();
    for (i, batch) in case["batches"].as_array().into_iter().flatten().enumerate() {
        if case["n"] == i {
            model.save_with(format!("{written}.keras"), SaveModel::new().version(version).include_optimizer(true))?;
            model.save_for(format!("{written}.h5"), version)?;
        }
        losses.push(model.train_on_batch((&array(&batch["x"])?, &array(&batch["y"])?))?["loss"]);
    }
    Ok(json!([{ "losses": losses }]))
}

/// Losses and metrics of numbers.
fn of_numbers() -> Vec<(LossChoice, Vec<MetricChoice>)> {
    let names = ["mse", "mae", "mape", "msle", "huber", "huber_loss", "log_cosh", "logcosh", "cosine_similarity"];
    let mut all: Vec<(LossChoice, Vec<MetricChoice>)> = names.iter().map(|name| ((*name).into(), Vec::new())).collect();
    all.push((loss::Huber::new().delta(0.3).into(), vec!["mae".into(), "mse".into(), "log_cosh".into()]));
    all.push((loss::LogCosh::new().into(), vec![metric::RootMeanSquaredError::new().name("root").into()]));
    all.push((MeanSquaredError::new().into(), vec![metric::MeanAbsoluteError::new().into(), "kld".into()]));
    all.push(("poisson".into(), vec![metric::MeanLoss::new(loss::Poisson::new()).name("again").into()]));
    all
}

/// Losses and metrics of probabilities of two classes.
fn of_classes() -> Vec<(LossChoice, Vec<MetricChoice>)> {
    let auc = || MetricChoice::from(metric::Auc::new());
    let smooth = SigmoidCrossEntropy::new().from_probabilities().label_smoothing(0.1);
    vec![
        ("binary_crossentropy".into(), vec!["accuracy".into(), auc(), "bce".into()]),
        (smooth.into(), vec![metric::Precision::new().thresholds([0.4]).into(), metric::Recall::new().into()]),
        ("hinge".into(), vec![metric::BinaryAccuracy::new().into(), "binary_crossentropy".into()]),
    ]
}

/// Writes models that are compiled here; the results are their data and what they evaluate to.
fn own(folder: &Path, version: KerasVersion) -> Result<Value> {
    let x = Array::from_vec([6, 2], (0..12).map(|i| i as f32 / 7.0 - 0.8).collect())?;
    let numbers = Array::from_vec([6, 1], (0..6).map(|i| 0.2 + i as f32 / 5.0).collect())?;
    let classes = Array::from_vec([6, 1], vec![0f32, 1.0, 1.0, 0.0, 1.0, 0.0])?;
    let numbers = of_numbers().into_iter().map(|choice| (choice, &numbers));
    let mut results = Vec::new();
    for ((loss, metrics), y) in numbers.chain(of_classes().into_iter().map(|choice| (choice, &classes))) {
        let mut model = Sequential::new().input([2]).add(Dense::new(1).sigmoid()).build()?.seed(5)?;
        let compile = Compile::new(Optimizer::keras(Adam::default(), 0.01), loss);
        model.compile(metrics.into_iter().fold(compile, Compile::metric))?;
        let files = [".keras", ".h5"].map(|suffix| format!("own_{}{suffix}", results.len()));
        model.save_with(folder.join(&files[0]), SaveModel::new().version(version).include_optimizer(true))?;
        model.save_for(folder.join(&files[1]), version)?;
        let logs = model.test_on_batch((&x, y))?;
        let logs: serde_json::Map<String, Value> = logs.into_iter().map(|(name, value)| (name, value.into())).collect();
        results.push(json!({ "files": files, "x": plain(&x)?, "y": plain(y)?, "logs": logs }));
    }
    Ok(results.into())
}

fn run(folder: &Path, case: &Value) -> Result<Value> {
    let name = case["name"].as_str().unwrap_or_default();
    if case["is_application"] == true {
        let mut model = network(name)?;
        model.load_weights(folder.join(case["file"].as_str().unwrap_or_default()))?;
        if case["is_written"] == true {
            let version = if case["version"] == 2 { KerasVersion::Keras2 } else { KerasVersion::Keras3 };
            for suffix in [".keras", ".h5"] {
                model.save_for(folder.join(format!("{name}_ours{suffix}")), version)?;
            }
        }
        let mut models = vec![model];
        for suffix in [".keras", ".h5"] {
            let whole = folder.join(format!("{name}{suffix}"));
            if whole.exists() {
                models.push(load_model(whole, &CustomObjects::new())?);
            }
        }
        let x = array(&case["x"])?;
        let results = models.iter_mut().map(|model| model.predict(x.clone()).and_then(|y| plain(&y)));
        return results.collect::<Result<Vec<Value>>>().map(Value::Array);
    }
    let version = if case["version"] == 2 { KerasVersion::Keras2 } else { KerasVersion::Keras3 };
    let path = |suffix: &str| folder.join(format!("{name}{suffix}"));
    if name == "own" {
        return own(folder, version);
    }
    if name == "layers" {
        return layers::write(folder, version);
    }
    if case["batches"].is_array() {
        return train(&path(".keras"), &path("_ours").to_string_lossy(), version, case);
    }
    if let Some(inputs) = case["inputs"].as_array() {
        let mut model = load_model(path(".keras"), &CustomObjects::new())?;
        model.save_for(path("_ours.keras"), version)?;
        model.save_for(path("_ours.h5"), version)?;
        let results = model.predict_all(inputs.iter().map(array).collect::<Result<Vec<Array>>>()?)?;
        return results.iter().map(plain).collect::<Result<Vec<Value>>>().map(Value::Array);
    }
    let x = array(&case["x"])?;
    let mut model = load_model(path(".keras"), &CustomObjects::new())?;
    if case["is_learned"] == true {
        model.save_for(path("_ours.keras"), version)?;
        model.save_weights_for(path("_ours.weights.h5"), version)?;
        return Ok(json!([plain(&model.predict(x)?)?]));
    }
    let mut predictions = vec![model.predict(x.clone())?];
    let bare = || model_from_json(&model.to_json()?.to_string(), &CustomObjects::new());
    let mut others: Vec<Model> = vec![load_model(path(".h5"), &CustomObjects::new())?];
    for suffix in [".weights.h5", ".h5"] {
        let mut other = bare()?;
        other.load_weights(path(suffix))?;
        others.push(other);
    }
    for other in &mut others {
        predictions.push(other.predict(x.clone())?);
    }
    model.save_for(path("_ours.keras"), version)?;
    model.save_for(path("_ours.h5"), version)?;
    model.save_weights_for(path("_ours.weights.h5"), version)?;
    model.save_weights(path("_ours_weights.h5"))?;
    Ok(predictions.iter().map(plain).collect::<Result<Vec<Value>>>()?.into())
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| Error::config("usage: keras_files_exchange FOLDER"))?;
    let folder = Path::new(&folder);
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|e| Error::io(&path, "read", &e))
    };
    let cases: Value = serde_json::from_str(&read("cases.json")?).map_err(|e| Error::config(e.to_string()))?;
    let mut results = Vec::new();
    for case in cases.as_array().into_iter().flatten() {
        results.push(run(folder, case).map_err(|e| e.context(format!("in model {}", case["name"])))?);
    }
    let path = folder.join("results.json");
    std::fs::write(&path, Value::Array(results).to_string()).map_err(|e| Error::io(&path, "write", &e))
}
