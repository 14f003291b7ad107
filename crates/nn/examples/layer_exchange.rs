//! Writes layers for `oracles/live/layers.py`: each as JSON, with inputs, weights and results.
//!
//! ```text
//! layer_exchange FOLDER
//! ```

use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_nn::config::Json;
use estimand_nn::testing::spread;
use estimand_nn::*;
use estimand_tensor::{Array, DType, Error, Result};
use serde_json::json;

#[path = "../tests/nn/all_options.rs"]
mod all_options;

/// An array as dtype, sizes and values.
fn plain(array: &Array) -> Result<Json> {
    let values = match array.dtype() {
        DType::Str => json!(array.strings()?.map(String::from_utf8_lossy).collect::<Vec<_>>()),
        _ => json!(array.to_f64_vec()?),
    };
    Ok(json!({"dtype": array.dtype().to_string(), "sizes": array.dims(), "values": values}))
}

/// A layer with what it computes outside of training, from numbers that are spread over [-1, 1].
fn case(layer: Box<dyn Layer>) -> Result<Json> {
    let g = Graph::new();
    let dtype = all_options::dtype(&*layer);
    let dims: Vec<usize> = all_options::shape(layer.kind()).dims().iter().map(|d| d.known().unwrap_or(2)).collect();
    let n = if layer.n_inputs().contains(&1) { 1 } else { 2 };
    let count = dims.iter().product::<usize>();
    let words = ["a", "Ad. e", "", "zz", "e"];
    let inputs = (0..n).map(|_| match dtype {
        DType::I64 => Array::from_vec(&dims[..], (0..count).map(|i| i as i64 % 5).collect()),
        DType::Str => Array::from_strings(&dims[..], (0..count).map(|i| words[i % words.len()])),
        _ => spread(&dims),
    });
    let inputs = inputs.collect::<Result<Vec<Array>>>()?;
    let x: Vec<Tensor> =
        (0..n).map(|i| g.placeholder(&format!("x{i}"), dtype, all_options::shape(layer.kind()))).collect();
    let document = layer.to_json()?;
    let outputs = Shared::new(layer).apply_all(&LayerInputs::of(&x).training(false));
    let mut session = Session::new(&g)?;
    let feeds: Vec<_> = x.iter().zip(inputs.clone()).collect();
    let results = session.run(&outputs.iter().collect::<Vec<_>>(), &feeds)?;
    let names: Vec<String> = g.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
    let weights = names.iter().map(|name| plain(&session.value(name)?)).collect::<Result<Vec<Json>>>()?;
    Ok(json!({
        "layer": document,
        "inputs": inputs.iter().map(plain).collect::<Result<Vec<Json>>>()?,
        "weights": weights,
        "results": results.iter().map(plain).collect::<Result<Vec<Json>>>()?,
    }))
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| Error::config("usage: layer_exchange FOLDER"))?;
    let layers = ALL_LAYERS.iter().map(|make| make()).chain(all_options::with_all_options());
    let cases = layers.map(case).collect::<Result<Vec<Json>>>()?;
    let path = std::path::Path::new(&folder).join("layers.json");
    std::fs::write(&path, Json::Array(cases).to_string()).map_err(|e| Error::io(&path, "write", &e))
}
