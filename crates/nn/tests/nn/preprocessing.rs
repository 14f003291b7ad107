//! Preprocessing layers against Keras's: read from the JSON that Keras wrote, they return the same
//! strings, ids, vectors and images, with the same gradients.

use estimand_engine::Session;
use estimand_graph::{Graph, Tensor, gradients};
use estimand_nn::config::{CustomObjects, Json};
use estimand_nn::{LayerInputs, layer};
use estimand_tensor::{Array, DType, Result};

use crate::fixture::{Case, cases, rows};

/// Results of pixels up to 255 are computed in another order.
fn assert_same(what: &str, actual: &Array, expected: &Array) {
    assert_eq!(actual.dims(), expected.dims(), "{what}");
    if expected.dtype() == DType::Str {
        return assert_eq!(actual, expected, "{what}");
    }
    let pairs = actual.to_f64_vec().unwrap().into_iter().zip(expected.to_f64_vec().unwrap());
    for (i, (a, e)) in pairs.enumerate() {
        assert!(
            (a - e).abs() <= 1e-5 * e.abs().max(10.0),
            "{what}: element {i} is {a}, Keras has {e}\n{actual:?}\n{expected:?}"
        );
    }
}

fn check(case: &Case, is_3: bool) -> Result<()> {
    let document: String = case.settings.setting("json");
    let layer =
        layer::from_json(&document, &CustomObjects::new()).unwrap_or_else(|error| panic!("{document}: {error}"));
    let g = Graph::new();
    let inputs: Vec<Array> = case.with_prefix("in:").map(|(_, value)| value.clone()).collect();
    let x: Vec<Tensor> = inputs.iter().enumerate().map(|(i, x)| rows(&g, &format!("x{i}"), x)).collect();
    let y = layer.apply(&LayerInputs::of(&x).training(case.settings.setting("training")));
    let mut fetches = vec![y.clone()];
    if let Some(coef) = case.find("coef") {
        let total = (&y * &g.constant(coef.clone())).sum();
        let found = gradients(&total, &[&x[0]]).remove(0);
        fetches.push(found.to_dense(x[0].shape()).unwrap_or_else(|| panic!("{document}: no gradient")));
    }
    let mut session = Session::new(&g).map_err(|error| error.context(document.clone()))?;
    let feeds: Vec<_> = x.iter().zip(inputs).collect();
    let results = session.run(&fetches.iter().collect::<Vec<_>>(), &feeds).map_err(|e| e.context(document.clone()))?;
    assert_same(&document, &results[0], case.array("out"));
    if let Some(gradient) = results.get(1) {
        assert_same(&format!("{document}, gradient"), gradient, case.array("grad:0"));
    }
    // What was read is written with Keras's values. Keras 3 writes other element types, and not
    // all fields.
    let (ours, theirs) = (layer.to_json()?, serde_json::from_str::<Json>(&document).unwrap());
    let is_of = |key: &str| !is_3 || (key != "dtype" && theirs["config"].get(key).is_some());
    for (key, value) in ours["config"].as_object().unwrap().iter().filter(|(key, _)| is_of(key)) {
        assert!(same(value, &theirs["config"][key]), "{key} of {document} is {value}");
    }
    Ok(())
}

/// Whether two values are equal; numbers by their size as f32, since 1 and 1.0 are two spellings.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        _ => a == b || a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| a as f32 == b as f32),
    }
}

/// The kinds of layers in the fixture.
pub fn kinds() -> Vec<&'static str> {
    let kind = |case: &Case| {
        let document: String = case.settings.setting("json");
        layer::from_json(&document, &CustomObjects::new()).unwrap().kind()
    };
    cases("preprocessing_layers").iter().map(kind).filter(|kind| *kind != "hashed_crossing").collect()
}

#[test]
fn preprocessing_layers_agree_with_keras() -> Result<()> {
    cases("preprocessing_layers").iter().try_for_each(|case| check(case, false))
}

#[test]
fn preprocessing_layers_agree_with_keras_3() -> Result<()> {
    cases("preprocessing_layers_keras3_15").iter().try_for_each(|case| check(case, true))
}
