//! Writes layers for `oracles/live/layers.py`: each as JSON, with an input, weights and the result.
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

/// An array as sizes and values.
fn plain(array: &Array) -> Result<Json> {
    Ok(json!({"sizes": array.dims(), "values": array.to_f64_vec()?}))
}

/// A layer with what it computes outside of training, from numbers that are spread over [-1, 1].
fn case(layer: &dyn Layer) -> Result<Json> {
    let g = Graph::new();
    let is_of_ids = layer.kind() == "embedding";
    let dims: Vec<usize> = all_options::shape(layer.kind()).dims().iter().map(|d| d.known().unwrap_or(2)).collect();
    let n = if layer.n_inputs().contains(&1) { 1 } else { 2 };
    let inputs = (0..n).map(|_| match is_of_ids {
        true => Array::from_vec(&dims[..], (0..dims.iter().product::<usize>()).map(|i| i as i64 % 5).collect()),
        false => spread(&dims),
    });
    let inputs = inputs.collect::<Result<Vec<Array>>>()?;
    let dtype = if is_of_ids { DType::I64 } else { DType::F32 };
    let x: Vec<Tensor> =
        (0..n).map(|i| g.placeholder(&format!("x{i}"), dtype, all_options::shape(layer.kind()))).collect();
    let y = layer.apply(&LayerInputs::of(&x).training(false));
    let mut session = Session::new(&g)?;
    let feeds: Vec<_> = x.iter().zip(inputs.clone()).collect();
    let result = session.run(&[&y], &feeds)?.remove(0);
    let names: Vec<String> = g.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
    let weights = names.iter().map(|name| plain(&session.value(name)?)).collect::<Result<Vec<Json>>>()?;
    Ok(json!({
        "layer": layer.to_json()?,
        "inputs": inputs.iter().map(plain).collect::<Result<Vec<Json>>>()?,
        "is_of_ids": is_of_ids,
        "weights": weights,
        "result": plain(&result)?,
    }))
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| Error::config("usage: layer_exchange FOLDER"))?;
    let layers = ALL_LAYERS.iter().map(|make| make()).chain(all_options::with_all_options());
    let cases = layers.map(|layer| case(&*layer)).collect::<Result<Vec<Json>>>()?;
    let path = std::path::Path::new(&folder).join("layers.json");
    std::fs::write(&path, Json::Array(cases).to_string()).map_err(|e| Error::io(&path, "write", &e))
}
