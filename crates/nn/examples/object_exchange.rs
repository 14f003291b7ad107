//! Writes losses, metrics, optimizers and schedules for `oracles/live/objects.py`: each as JSON,
//! with its result.
//!
//! ```text
//! object_exchange FOLDER
//! ```

use estimand_engine::{Eval, Session};
use estimand_graph::{Graph, Initializer, Optimizer};
use estimand_nn::config::{Field, Json};
use estimand_nn::metric::{ALL_METRICS, MetricValue};
use estimand_nn::testing::metric_array;
use estimand_nn::{Loss, optimizer};
use estimand_tensor::{Array, Error, Result};
use serde_json::json;

#[path = "../tests/nn/object_options.rs"]
mod object_options;

const STEPS: u64 = 8;

/// Rows of labels and predictions that a class takes.
fn inputs(class: &str) -> Result<[Array; 2]> {
    let rows = |values: [f32; 6]| Array::from_vec([2, 3], values.to_vec());
    let labels = rows([0.0, 1.0, 0.0, 1.0, 0.0, 0.0])?;
    let probabilities = rows([0.125, 0.5, 0.375, 0.25, 0.625, 0.125])?;
    Ok(match class {
        _ if class.starts_with("Sparse") => [Array::from([2i64, 0]), probabilities],
        "MeanIoU" | "ConfusionMatrix" | "MeanPerClassAccuracy" => [labels, rows([0.0, 1.0, 1.0, 1.0, 0.0, 1.0])?],
        _ => [labels, probabilities],
    })
}

/// An array as sizes and values.
fn plain(array: &Array) -> Result<Json> {
    Ok(json!({"sizes": array.dims(), "values": array.to_f64_vec()?}))
}

fn case(kind: &str, document: Json, inputs: &[Array], result: &Array) -> Result<Json> {
    let inputs = inputs.iter().map(plain).collect::<Result<Vec<Json>>>()?;
    Ok(json!({"kind": kind, "document": document, "inputs": inputs, "result": plain(result)?}))
}

fn loss(loss: &dyn Loss) -> Result<Json> {
    let document = loss.to_json()?;
    let (g, [labels, predictions]) = (Graph::new(), inputs(document["class_name"].as_str().unwrap_or(""))?);
    let weights = Array::from([1.5f32, 2.5]);
    let [l, p, w] = [&labels, &predictions, &weights].map(|array| g.constant(array.clone()));
    case("loss", document, &[labels, predictions, weights], &loss.apply_weighted(&l, &p, &w).eval()?)
}

fn metric(metric: &dyn MetricValue) -> Result<Json> {
    let document = metric.to_json()?;
    let (g, [labels, predictions]) = (Graph::new(), inputs(document["class_name"].as_str().unwrap_or(""))?);
    let [l, p] = [&labels, &predictions].map(|array| g.constant(array.clone()));
    case("metric", document, &[labels, predictions], &metric_array(&metric.apply(&l, &p, None), &[vec![]])?)
}

/// The weights after some steps; the gradient is the weights times `scale`.
fn training(optimizer: &Optimizer) -> Result<Json> {
    let (start, scale) = (Array::from([1.0f32, -2.0, 0.5]), Array::from([1.0f32, 0.5, 3.0]));
    let g = Graph::new();
    let w = g.variable("w", [3], Initializer::Value(start.clone()));
    let train = optimizer.minimize(&(w.square() * g.constant(scale.clone()) * 0.5).sum());
    let mut session = Session::new(&g)?;
    for _ in 0..STEPS {
        session.run(&[&train], &[])?;
    }
    case("optimizer", optimizer::to_json(optimizer)?, &[start, scale], &session.value("w")?)
}

/// Whether Keras has all that a document says.
fn is_of_keras(case: &Json) -> bool {
    let text = case["document"].to_string();
    let own = ["\"estimand\"", "\"lazy\"", "\"weighted_", "\"elements\"", "\"normalizer\":null"];
    own.iter().all(|own| !text.contains(own))
}

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or_else(|| Error::config("usage: object_exchange FOLDER"))?;
    let mut cases = Vec::new();
    for value in object_options::losses() {
        cases.push(loss(&*value)?);
    }
    for value in ALL_METRICS.iter().map(|make| make()).chain(object_options::metrics()) {
        cases.push(metric(&*value)?);
    }
    for value in object_options::optimizers() {
        cases.push(training(&value)?);
    }
    for schedule in object_options::schedules() {
        let rates: Vec<f64> = (0..3 * STEPS).map(|step| schedule.rate(step)).collect();
        cases.push(case("schedule", schedule.write()?, &[], &Array::from_vec([rates.len()], rates)?)?);
    }
    cases.retain(is_of_keras);
    let path = std::path::Path::new(&folder).join("objects.json");
    std::fs::write(&path, Json::Array(cases).to_string()).map_err(|e| Error::io(&path, "write", &e))
}
