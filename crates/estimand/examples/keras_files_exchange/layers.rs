//! Every layer in its simplest form, and again with all its options, each as a model in a file.

use std::path::Path;

use estimand::keras::{Functional, Input, KerasTensor, KerasVersion, Model};
use estimand::nn::{ALL_LAYERS, Layer};
use estimand::prelude::*;
use estimand::tensor::ErrorKind;
use serde_json::{Value, json};

use super::plain;

#[path = "../../../nn/tests/nn/all_options.rs"]
mod all_options;

/// Writes the models `layer_NUMBER.keras`. Of each: its file, what it is fed, what it computes; or
/// why it cannot be written for this version.
pub fn write(folder: &Path, version: KerasVersion) -> Result<Value> {
    let all = ALL_LAYERS.iter().map(|make| make()).chain(all_options::with_all_options());
    // A cell is no layer of a model.
    let layers = all.filter(|layer| !layer.kind().contains("_cell"));
    let cases = layers.enumerate().map(|(i, layer)| {
        let (kind, file) = (layer.kind(), format!("layer_{i}.keras"));
        case(layer, &folder.join(&file), version)
            .map(|(inputs, results)| json!({ "kind": kind, "file": file, "inputs": inputs, "results": results }))
            .or_else(|error| match error.kind() {
                ErrorKind::Unsupported => Ok(json!({ "kind": kind, "refused": error.to_string() })),
                _ => Err(error.context(format!("in the model of the layer `{kind}`"))),
            })
    });
    cases.collect()
}

fn case(layer: Box<dyn Layer>, path: &Path, version: KerasVersion) -> Result<(Vec<Value>, Vec<Value>)> {
    let (dtype, shape) = (all_options::dtype(&*layer), all_options::shape(layer.kind()));
    let sizes: Vec<usize> = shape.dims().iter().filter_map(|d| d.known()).collect();
    let dims: Vec<usize> = [2].into_iter().chain(sizes.iter().copied()).collect();
    let count = dims.iter().product::<usize>();
    // Keras 2 merges two values or more.
    let is_merge = matches!(layer.kind(), "add" | "average" | "concatenate" | "maximum" | "minimum" | "multiply");
    let n = if layer.n_inputs().contains(&1) && !is_merge { 1 } else { 2 };
    let inputs: Vec<KerasTensor> =
        (0..n).map(|i| Input::new(&sizes[..]).name(&format!("in_{i}")).dtype(dtype).tensor()).collect();
    let outputs = layer.on_all(&inputs);
    let mut model = Model::new(&inputs, &outputs)?.seed(3)?;
    let weights = model.get_weights()?.iter().map(|w| numbers(w.dims(), 0.05, 0.3)).collect::<Result<Vec<Array>>>()?;
    model.set_weights(&weights)?;
    let words = ["a", "Ad. e", "", "zz", "e"];
    let given = |_| match dtype {
        DType::I64 => Array::from_vec(&dims[..], (0..count).map(|i| i as i64 % 5).collect()),
        DType::Str => Array::from_strings(&dims[..], (0..count).map(|i| words[i % words.len()])),
        _ => numbers(&dims, -1.0, 2.0),
    };
    let inputs = (0..n).map(given).collect::<Result<Vec<Array>>>()?;
    model.save_for(path, version)?;
    let results = model.predict_all(inputs.clone())?;
    let all_plain = |arrays: &[Array]| arrays.iter().map(plain).collect::<Result<Vec<Value>>>();
    Ok((all_plain(&inputs)?, all_plain(&results)?))
}

/// Numbers from `low` to `low + width`, in no order.
fn numbers(dims: &[usize], low: f32, width: f32) -> Result<Array> {
    let count = dims.iter().product::<usize>();
    Array::from_vec(dims, (0..count).map(|i| low + width * (i as f32 * 0.618_034).fract()).collect())
}
