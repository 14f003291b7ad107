//! Every layer in its simplest form, and again with all its options. Each is a prediction.

use std::path::Path;

use estimand::nn::{ALL_LAYERS, Layer};
use estimand::prelude::*;

#[path = "../../../nn/tests/nn/all_options.rs"]
mod all_options;

/// Whether ONNX cannot express a layer: hashes, and texts that are split into words.
fn is_refused(layer: &dyn Layer) -> bool {
    let kinds = ["hashed_crossing", "hashing", "text_vectorization"];
    let n_oov = layer.to_json().ok().and_then(|json| json["config"]["num_oov_indices"].as_i64());
    kinds.contains(&layer.kind()) || n_oov.is_some_and(|n| n > 1)
}

pub fn model(folder: &Path) -> Result<Estimator> {
    let config = RunConfig::new().tf_random_seed(1);
    Estimator::new(layers).config(config).model_dir(folder.join("model")).build()
}

fn layers(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let (x, words) = (cx.feature("pixels").reshape([-1, 256]), cx.feature("texts"));
    let mut spec = EstimatorSpec::new(cx);
    let mut losses = Vec::new();
    let all = ALL_LAYERS.iter().map(|make| make()).chain(all_options::with_all_options());
    for (i, layer) in all.enumerate().filter(|(_, layer)| !is_refused(&**layer)) {
        let result = applied(cx, &*layer, i, &x, &words);
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

fn applied(cx: &ModelFnContext<'_>, layer: &dyn Layer, i: usize, x: &Tensor, words: &Tensor) -> Tensor {
    let shape = all_options::shape(layer.kind());
    let sizes: Vec<usize> = shape.dims().iter().filter_map(|d| d.known()).collect();
    let n: usize = sizes.iter().product();
    let dims: Vec<i64> = [-1].into_iter().chain(sizes.iter().map(|&n| n as i64)).collect();
    let part = |first: usize| x.slice(&[0, first.min(256 - n)], &[-1, n as i64]).reshape(&dims[..]);
    let given = |first: usize| match all_options::dtype(layer) {
        DType::I64 => ids(&part(first)),
        DType::Str => words.clone(),
        _ => part(first),
    };
    let inputs: Vec<Tensor> = match layer.n_inputs().contains(&1) {
        true => vec![given(0)],
        false => vec![given(0), given(100)],
    };
    let _scope = cx.graph().scope(&format!("layer_{i}"));
    layer.apply(&LayerInputs::of(&inputs).training(cx.mode() == Mode::Train))
}

/// Ids from 0 to 4 that do not depend on rounding.
fn ids(x: &Tensor) -> Tensor {
    let above = [-1.0, -0.3, 0.3, 1.0].map(|bound| x.greater(bound).cast(DType::I64));
    above.iter().skip(1).fold(above[0].clone(), |sum, one| sum + one)
}
