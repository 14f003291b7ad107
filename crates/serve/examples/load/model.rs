//! The models that are served, and a body that asks for them.

use std::path::{Path, PathBuf};

use estimand::export::{ExportSpec, Receiver};
use estimand::prelude::*;

pub const WORDS: [&str; 4] = ["job", "city", "school", "state"];
pub const NUMBERS: [&str; 4] = ["age", "hours", "gain", "loss"];

fn rows(n: usize) -> Result<Dataset> {
    let mut columns = Vec::new();
    for (k, name) in WORDS.iter().enumerate() {
        let words: Vec<String> = (0..n).map(|i| format!("{name}-{}", i * (k + 3) % 17)).collect();
        columns.push((*name, Array::from_strings([n], &words)?));
    }
    for (k, name) in NUMBERS.iter().enumerate() {
        columns.push((*name, Array::from((0..n).map(|i| (i * (k + 7) % 90) as f32).collect::<Vec<f32>>())));
    }
    columns.push(("label", Array::from((0..n).map(|i| (i % 3 == 0) as i64).collect::<Vec<i64>>())));
    Ok(Dataset::from_arrays(columns).label("label"))
}

/// Trains the model. Words that are not in the vocabularies have ids of their own, or none.
fn trained(folder: &Path, data: &Dataset, n_unknown: usize) -> Result<Estimator> {
    let (mut wide, mut deep): (Vec<FeatureColumn>, Vec<FeatureColumn>) = (Vec::new(), Vec::new());
    for name in WORDS {
        let words: Vec<String> = (0..15).map(|i| format!("{name}-{i}")).collect();
        let column = categorical_column_with_vocabulary_list(name, words).n_oov_buckets(n_unknown);
        wide.push(column.clone().into());
        deep.push(embedding_column(column, 8).into());
    }
    for name in NUMBERS {
        wide.push(bucketized_column(&numeric_column(name), [10.0, 20.0, 40.0, 60.0]).into());
        deep.push(numeric_column(name).into());
    }
    let model = DnnLinearCombinedClassifier::new()
        .linear_feature_columns(wide)
        .dnn_feature_columns(deep)
        .dnn_hidden_units([100, 50])
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder)
        .build()?;
    model.train(data.repeat(2))?;
    Ok(model)
}

pub fn export(folder: &Path) -> Result<PathBuf> {
    let rows = rows(1_000)?;
    let data = rows.clone().batch(100);
    // With the statistics of the data, with which requests are compared.
    let spec = ExportSpec::new(Receiver::like(&data)?).statistics(&rows.statistics()?);
    trained(&folder.join("model"), &data, 2)?.export_saved_model(folder.join("export"), spec)
}

/// The model for onnxruntime. ONNX has no hashes, so unknown words have no ids, which is less work.
pub fn export_onnx(folder: &Path) -> Result<PathBuf> {
    let data = rows(1_000)?.batch(100);
    let spec = ExportSpec::new(Receiver::like(&data)?);
    trained(&folder.join("onnx-model"), &data, 0)?.export_onnx(folder.join("onnx"), spec)
}

/// A model that costs almost nothing: what is left is the server.
pub fn export_tiny(folder: &Path) -> Result<PathBuf> {
    let rows = [("x", Array::from([1f32, 2.0])), ("y", Array::from([2f32, 4.0]))];
    let data = Dataset::from_arrays(rows).label("y").batch(2);
    let model = LinearRegressor::new([numeric_column("x").into()]).model_dir(folder.join("tiny-model")).build()?;
    model.train(data.repeat(2))?;
    model.export_saved_model(folder.join("tiny"), Receiver::like(&data)?)
}

pub fn body(n: usize) -> String {
    let row = |i: usize| {
        let words = WORDS.iter().enumerate().map(|(k, name)| format!("\"{name}\": \"{name}-{}\"", i * (k + 5) % 17));
        let numbers = NUMBERS.iter().enumerate().map(|(k, name)| format!("\"{name}\": {}.5", i * (k + 3) % 90));
        format!("{{{}}}", words.chain(numbers).collect::<Vec<_>>().join(", "))
    };
    format!("{{\"instances\": [{}]}}", (0..n).map(row).collect::<Vec<_>>().join(", "))
}
