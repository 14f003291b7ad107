//! Masks against Keras's: how layers use them, and which masks their results carry.

use std::collections::BTreeSet;

use estimand_engine::Session;
use estimand_graph::{Graph, Tensor};
use estimand_nn::config::CustomObjects;
use estimand_nn::{LayerInputs, layer};
use estimand_tensor::Result;

use crate::fixture::{assert_close, cases, rows};

#[test]
fn masks_are_used_and_carried_as_in_keras() -> Result<()> {
    let mut carried = BTreeSet::new();
    for case in cases("masks") {
        let document: String = case.settings.setting("json");
        let layer = layer::from_json(&document, &CustomObjects::new())?;
        let g = Graph::new();
        let place = |prefix: &str, i: usize| {
            let value = case.find(&format!("{prefix}:{i}"))?;
            Some((rows(&g, &format!("{prefix}{i}"), value), value.clone()))
        };
        let inputs: Vec<_> = (0..).map_while(|i| place("in", i)).collect();
        let masks: Vec<_> = (0..inputs.len()).map(|i| place("mask", i)).collect();
        let x: Vec<Tensor> = inputs.iter().map(|(x, _)| x.clone()).collect();
        let carries = masks.iter().map(|mask| mask.as_ref().map(|(mask, _)| mask.clone())).collect();
        let given = LayerInputs::of(&x).carried_masks(carries).training(case.settings.setting("training"));
        let y = layer.apply(&given);
        let mask = layer.compute_mask(&given);
        assert_eq!(mask.is_some(), case.find("out_mask").is_some(), "{document}");
        let names: Vec<String> = g.body().variables().iter().map(|(_, spec)| spec.name.clone()).collect();
        let mut session = Session::new(&g).map_err(|error| error.context(document.clone()))?;
        for (i, name) in names.iter().enumerate() {
            session.set_value(name, case.array(&format!("weight:{i}")))?;
        }
        let fetches: Vec<&Tensor> = [&y].into_iter().chain(&mask).collect();
        let feeds: Vec<_> = inputs.iter().chain(masks.iter().flatten()).map(|(x, value)| (x, value.clone())).collect();
        // Placeholders that nothing reads are not fed.
        let is_read = |x: &Tensor| g.body().nodes().iter().any(|node| node.inputs.contains(&x.value()));
        let is_fetched = |x: &Tensor| fetches.iter().any(|fetch| fetch.value() == x.value());
        let feeds: Vec<_> = feeds.into_iter().filter(|(x, _)| is_read(x) || is_fetched(x)).collect();
        let results = session.run(&fetches, &feeds).map_err(|error| error.context(document.clone()))?;
        assert_close(&document, &results[0], case.array("out"));
        if let Some(mask) = results.get(1) {
            carried.insert(case.name().to_string());
            assert_eq!(mask, case.array("out_mask"), "{document}");
        }
    }
    assert!(carried.len() > 20, "{carried:?}");
    Ok(())
}
