//! Opens the files of Keras for `oracles/live/keras_files.py`, predicts with their models, and
//! writes them again.
//!
//! ```text
//! keras_files_exchange FOLDER
//! ```
//!
//! `cases.json` in the folder lists models: a name, the version of Keras, and the array `x`. Each
//! is in `NAME.keras`, and its weights in `NAME.weights.h5`; Keras 2 also writes `NAME.h5`. Of a
//! network of `keras.applications` there are only weights.

use std::path::Path;

use estimand::keras::applications::{self, Pooling};
use estimand::keras::{KerasVersion, Model, load_model, model_from_json};
use estimand::nn::config::CustomObjects;
use estimand::prelude::*;
use serde_json::{Value, json};

fn array(value: &Value) -> Result<Array> {
    let numbers = |key: &str| value[key].as_array().cloned().unwrap_or_default();
    let dims: Vec<usize> = numbers("sizes").iter().map(|n| n.as_u64().unwrap_or(0) as usize).collect();
    Array::from_vec(dims, numbers("values").iter().map(|x| x.as_f64().unwrap_or(0.0) as f32).collect())
}

/// A network of `keras.applications`, in the form that the check has made.
fn network(name: &str) -> Result<Model> {
    match name {
        "mobile_net_v2" => applications::mobile_net_v2().input_shape([96, 96, 3]).classes(10).build(),
        "resnet50" => {
            let network = applications::resnet50().input_shape([64, 64, 3]);
            network.include_top(false).pooling(Pooling::Avg).build()
        }
        "vgg16" => {
            let network = applications::vgg16().input_shape([48, 32, 3]);
            network.include_top(false).pooling(Pooling::Max).build()
        }
        "inception_v3" => {
            let network = applications::inception_v3().input_shape([75, 90, 3]);
            network.include_top(false).pooling(Pooling::Avg).build()
        }
        "efficient_net_b0" => applications::efficient_net_b0().input_shape([65, 64, 3]).classes(7).build(),
        "xception" => {
            let network = applications::xception().input_shape([71, 75, 3]);
            network.include_top(false).pooling(Pooling::Max).build()
        }
        "dense_net121" => {
            let network = applications::dense_net121().input_shape([64, 48, 3]);
            network.classes(4).classifier_activation(Activation::Linear).build()
        }
        other => Err(Error::config(format!("there is no network `{other}`"))),
    }
}

fn plain(array: &Array) -> Result<Value> {
    Ok(json!({ "sizes": array.dims(), "values": array.to_f64_vec()? }))
}

fn run(folder: &Path, case: &Value) -> Result<Value> {
    let name = case["name"].as_str().unwrap_or_default();
    if case["is_application"] == true {
        let mut model = network(name)?;
        model.load_weights(folder.join(case["file"].as_str().unwrap_or_default()))?;
        return Ok(json!([plain(&model.predict(array(&case["x"])?)?)?]));
    }
    let version = if case["version"] == 2 { KerasVersion::Keras2 } else { KerasVersion::Keras3 };
    let (path, x) = (|suffix: &str| folder.join(format!("{name}{suffix}")), array(&case["x"])?);
    let mut model = load_model(path(".keras"), &CustomObjects::new())?;
    let mut predictions = vec![model.predict(x.clone())?];
    let bare = || model_from_json(&model.to_json()?.to_string(), &CustomObjects::new());
    let mut others: Vec<Model> = Vec::new();
    for suffix in [".weights.h5", ".h5"].iter().filter(|suffix| path(suffix).exists()) {
        let mut other = bare()?;
        other.load_weights(path(suffix))?;
        others.push(other);
    }
    for other in &mut others {
        predictions.push(other.predict(x.clone())?);
    }
    model.save_for(path("_ours.keras"), version)?;
    model.save_weights_for(path("_ours.weights.h5"), version)?;
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
