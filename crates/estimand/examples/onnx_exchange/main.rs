//! Our side of ONNX models that onnxruntime runs (oracles/live/onnx.py).
//!
//! `CASE ROWS.json FOLDER` trains a model for a few steps on the rows, exports it to `FOLDER/onnx`,
//! writes its own predictions of the rows to `FOLDER/answers.json`, and prints the export. The case
//! `refused` prints the errors of models that cannot be exported.
//!
//! `ROWS.json` has features and labels by name: `{"sizes", "dtype", "values"}`. A feature with
//! `"ragged": true` is padded, as the model's input is.

mod estimators;
mod keras_models;
mod layers;
mod refused;

use std::path::{Path, PathBuf};

use estimand::export::{ExportSpec, Receiver};
use estimand::prelude::*;
use estimand::tensor::{Batch, Feature, Ragged};
use serde_json::{Map, Value, json};

/// The columns of the rows.
pub struct Rows {
    columns: Map<String, Value>,
}

impl Rows {
    fn read(path: &str) -> Result<Rows> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, "read", &e))?;
        let columns = serde_json::from_str(&text).map_err(|e| Error::data(e.to_string()))?;
        Ok(Rows { columns })
    }

    /// A column as an array.
    pub fn array(&self, name: &str) -> Result<Array> {
        let column = self.columns.get(name).ok_or_else(|| Error::data(format!("there is no column `{name}`")))?;
        let dims = column["sizes"].as_array().into_iter().flatten();
        let dims: Vec<usize> = dims.filter_map(Value::as_u64).map(|n| n as usize).collect();
        let values = column["values"].as_array().cloned().unwrap_or_default();
        match column["dtype"].as_str() {
            Some("string") => Array::from_strings(dims, values.iter().map(|v| v.as_str().unwrap_or_default())),
            Some("int64") => Array::from_vec(dims, values.iter().map(|v| v.as_i64().unwrap_or(0)).collect()),
            Some("int32") => Array::from_vec(dims, values.iter().map(|v| v.as_i64().unwrap_or(0) as i32).collect()),
            _ => Array::from_vec(dims, values.iter().map(|v| v.as_f64().unwrap_or(f64::NAN) as f32).collect()),
        }
    }

    fn feature(&self, name: &str) -> Result<Feature> {
        let array = self.array(name)?;
        match self.columns[name]["ragged"] == true {
            true => Ok(ragged(&array)?.into()),
            false => Ok(array.into()),
        }
    }

    /// All columns but these as features.
    fn features(&self, labels: &[&str]) -> Result<Batch> {
        let names = self.columns.keys().filter(|name| !labels.contains(&name.as_str()));
        names.into_iter().try_fold(Batch::new(), |batch, name| batch.with_feature(name, self.feature(name)?))
    }
}

/// Drops the values that stand for nothing.
fn ragged(array: &Array) -> Result<Ragged> {
    let width = array.dims()[1];
    let kept: Vec<usize> = match array.dtype() {
        DType::Str => array.strings()?.enumerate().filter(|(_, text)| !text.is_empty()).map(|(i, _)| i).collect(),
        DType::I64 => (0..array.len()).filter(|&i| array.as_slice::<i64>().is_ok_and(|v| v[i] != -1)).collect(),
        _ => (0..array.len()).filter(|&i| array.as_slice::<f32>().is_ok_and(|v| v[i] != 0.0)).collect(),
    };
    let splits = (0..=array.dims()[0]).map(|row| kept.iter().filter(|&&i| i < row * width).count() as i64);
    let splits: Vec<i64> = splits.collect();
    let values = match array.dtype() {
        DType::Str => {
            let all: Vec<&[u8]> = array.strings()?.collect();
            Array::from_strings([kept.len()], kept.iter().map(|&i| all[i]))?
        }
        DType::I64 => {
            Array::from(kept.iter().map(|&i| array.as_slice::<i64>().map(|v| v[i])).collect::<Result<Vec<_>>>()?)
        }
        _ => Array::from(kept.iter().map(|&i| array.as_slice::<f32>().map(|v| v[i])).collect::<Result<Vec<_>>>()?),
    };
    Ragged::new(values, splits)
}

fn plain(array: &Array) -> Result<Value> {
    Ok(match array.dtype() {
        DType::Str => {
            let texts: Vec<String> = array.strings()?.map(|text| String::from_utf8_lossy(text).into_owned()).collect();
            json!({ "sizes": array.dims(), "values": texts })
        }
        _ => json!({ "sizes": array.dims(), "values": array.to_f64_vec()? }),
    })
}

/// Writes the answers of the model, and prints its export.
pub fn answer(folder: &Path, export: &Path, answers: &[(String, Array)]) -> Result<()> {
    let all = answers.iter().map(|(name, array)| Ok((name.clone(), plain(array)?))).collect::<Result<Map<_, _>>>()?;
    let path = folder.join("answers.json");
    std::fs::write(&path, Value::Object(all).to_string()).map_err(|e| Error::io(&path, "write", &e))?;
    println!("export = {}", export.display());
    Ok(())
}

/// Trains an Estimator, exports it and predicts.
fn estimator(model: &Estimator, labels: &[&str], rows: &Rows, folder: &Path) -> Result<()> {
    let features = rows.features(labels)?;
    let data = labels.iter().try_fold(features.clone(), |batch, name| batch.with_feature(name, rows.feature(name)?))?;
    let data = labels.iter().fold(Dataset::from_batch(data), |data, label| data.label(label));
    model.train(TrainSpec::new(data.repeat_forever().batch(64)).max_steps(30))?;
    let features = Dataset::from_batch(features);
    let predicted = model.predict(features.batch(10_000)).dataset()?;
    let predicted = predicted.iter().next().unwrap_or_else(|| Err(Error::data("no rows")))?;
    let mut answers = Vec::new();
    for (name, feature) in predicted.features() {
        if let Feature::Dense(array) = feature {
            answers.push((name.to_string(), array.clone()));
        }
    }
    let export = model.export_onnx(folder.join("onnx"), ExportSpec::new(Receiver::like(&features)?))?;
    answer(folder, &export, &answers)
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, file, folder] = &arguments[..] else {
        return Err(Error::config("usage: onnx_exchange CASE ROWS.json FOLDER"));
    };
    let folder = PathBuf::from(folder);
    if case == "refused" {
        return refused::print(&folder);
    }
    let rows = Rows::read(file)?;
    if let Some(answers) = keras_models::run(case, &rows, &folder)? {
        let (export, answers) = answers;
        return answer(&folder, &export, &answers);
    }
    let (model, labels) = match case.as_str() {
        "layers" => (layers::model(&folder)?, vec!["target"]),
        _ => estimators::model(case, &folder)?,
    };
    estimator(&model, &labels, &rows, &folder)
}
