//! Layers that Keras 2 and Keras 3 wrote down: read here, they compute what they compute there.

use std::collections::BTreeSet;

use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_nn::config::CustomObjects;
use estimand_nn::{ALL_LAYERS, LayerInputs, layer};
use estimand_tensor::Result;

use crate::fixture::{assert_close, cases, rows};

/// Reads the layers of a fixture, sets their weights in order, and compares their results. Returns
/// their classes.
fn check(fixture: &str) -> Result<BTreeSet<String>> {
    let mut classes = BTreeSet::new();
    for case in cases(fixture) {
        let document: String = case.settings.setting("json");
        let layer = layer::from_json(&document, &CustomObjects::new())
            .unwrap_or_else(|error| panic!("{fixture}, {}: {error}", case.name()));
        let g = Graph::new();
        let inputs: Vec<_> = case.with_prefix("in:").map(|(_, value)| value.clone()).collect();
        let x: Vec<Tensor> = inputs.iter().enumerate().map(|(i, x)| rows(&g, &format!("x{i}"), x)).collect();
        let y = layer.apply(&LayerInputs::of(&x).training(false));
        let names: Vec<String> = g.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
        let mut session = Session::new(&g).unwrap_or_else(|error| panic!("{fixture}, {layer:?}: {error}"));
        let weights: Vec<_> = case.with_prefix("weight:").map(|(_, value)| value).collect();
        assert_eq!(names.len(), weights.len(), "{layer:?} has {names:?}");
        for (name, value) in names.iter().zip(weights) {
            session.set_value(name, value)?;
        }
        let feeds: Vec<_> = x.iter().zip(inputs).collect();
        let result = session.run(&[&y], &feeds)?.remove(0);
        assert_close(&format!("{fixture}, {layer:?}"), &result, case.array("out"));
        // What was read is written in our form, and that is read again.
        let json = layer.to_json()?;
        assert_eq!(layer::from_json(&json.to_string(), &CustomObjects::new())?.to_json()?, json);
        classes.insert(case.name().to_string());
    }
    Ok(classes)
}

/// The classes that `preprocessing_layers` reads.
fn of_preprocessing() -> BTreeSet<String> {
    cases("preprocessing_layers").iter().map(|case| case.name().to_string()).collect()
}

/// All classes but those that Keras 3 has no longer.
fn all_classes_but(gone: &[&str]) -> BTreeSet<String> {
    let class =
        |make: &fn() -> Box<dyn layer::Layer>| make().to_json().unwrap()["class_name"].as_str().unwrap().to_string();
    ALL_LAYERS.iter().map(class).filter(|class| !gone.contains(&class.as_str())).collect()
}

#[test]
fn layers_of_keras_2_are_read() -> Result<()> {
    let both = check("layer_configs_keras2")?.union(&of_preprocessing()).cloned().collect::<BTreeSet<_>>();
    assert_eq!(both, all_classes_but(&[]));
    Ok(())
}

#[test]
fn layers_of_keras_3_are_read() -> Result<()> {
    let expected: BTreeSet<String> =
        all_classes_but(&["ThresholdedReLU"]).difference(&of_preprocessing()).cloned().collect();
    assert_eq!(check("layer_configs_keras3")?, expected);
    Ok(())
}
