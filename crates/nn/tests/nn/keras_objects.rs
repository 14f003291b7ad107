//! Losses, metrics, optimizers and schedules that Keras 2 and Keras 3 wrote down: read here, they
//! compute what they compute there.

use std::collections::BTreeMap;

use estimand_engine::{Eval, Session};
use estimand_graph::{Gradient, Graph, Initializer, Tensor};
use estimand_nn::config::{CustomObjects, Field, Node};
use estimand_nn::testing::metric_array;
use estimand_nn::{loss, metric, optimizer};
use estimand_tensor::{Array, DType, Result};
use estimand_update::Schedule;

use crate::fixture::{Case, assert_close, cases};

fn constant(g: &Graph, case: &Case, key: &str) -> Option<Tensor> {
    case.find(key).map(|array| g.constant(array.clone()))
}

/// Labels and predictions.
fn inputs(g: &Graph, case: &Case) -> [Tensor; 2] {
    ["labels", "predictions"].map(|key| constant(g, case, key).unwrap())
}

fn check_loss(case: &Case, document: &str) -> Result<()> {
    let loss = loss::from_json(document, &CustomObjects::new())?;
    let g = Graph::new();
    let [labels, predictions] = inputs(&g, case);
    let value = match constant(&g, case, "weights") {
        Some(weights) => loss.apply_weighted(&labels, &predictions, &weights),
        None => loss.apply(&labels, &predictions),
    };
    assert_close(document, &value.eval()?, case.array("out"));
    let json = loss.to_json()?;
    assert_eq!(loss::from_json(&json.to_string(), &CustomObjects::new())?.to_json()?, json);
    Ok(())
}

fn check_metric(case: &Case, document: &str) -> Result<()> {
    let metric = metric::from_json(document, &CustomObjects::new())?;
    let g = Graph::new();
    let [labels, predictions] = inputs(&g, case);
    let weights = constant(&g, case, "weights");
    let value = metric_array(&metric.apply(&labels, &predictions, weights.as_ref()), &[vec![]])?;
    assert_close(document, &value, case.array("out"));
    let json = metric.to_json()?;
    assert_eq!(metric::from_json(&json.to_string(), &CustomObjects::new())?.to_json()?, json);
    Ok(())
}

fn check_optimizer(case: &Case, document: &str) -> Result<()> {
    let optimizer = optimizer::from_json(document, &CustomObjects::new())?;
    let g = Graph::new();
    let (mut pairs, mut places) = (Vec::new(), Vec::new());
    for (number, start) in case.with_prefix("w:") {
        let w = g.variable(&format!("w{number}"), start.dims(), Initializer::Value(start.clone()));
        let gradient = g.placeholder(&format!("g{number}"), DType::F32, start.dims());
        places.push((number, gradient.clone(), start.dims()));
        pairs.push((Gradient::Dense(gradient), w));
    }
    let train = optimizer.apply_gradients(pairs);
    let mut session = Session::new(&g)?;
    for step in 0..case.array("g:0").dims()[0] {
        let feed = |(number, place, dims): &(&str, Tensor, &[usize])| -> Result<(Tensor, Array)> {
            let all = case.array(&format!("g:{number}")).rows(step..step + 1)?;
            Ok((place.clone(), Array::from_vec(*dims, all.as_slice::<f32>()?.to_vec())?))
        };
        let feeds = places.iter().map(feed).collect::<Result<Vec<_>>>()?;
        session.run(&[&train], &feeds.iter().map(|(place, array)| (place, array.clone())).collect::<Vec<_>>())?;
    }
    for (number, expected) in case.with_prefix("out:") {
        assert_close(document, &session.value(&format!("w{number}"))?, expected);
    }
    let json = optimizer::to_json(&optimizer)?;
    assert_eq!(optimizer::to_json(&optimizer::from_json(&json.to_string(), &CustomObjects::new())?)?, json);
    Ok(())
}

fn check_schedule(case: &Case, document: &str) -> Result<()> {
    let document: estimand_nn::config::Json = serde_json::from_str(document).unwrap();
    let schedule = Schedule::read(&Node::root(&document, &CustomObjects::new()))?;
    let steps = case.array("steps").as_slice::<i64>()?;
    let rates: Vec<f32> = steps.iter().map(|&step| schedule.rate(step as u64) as f32).collect();
    assert_close(&document.to_string(), &Array::from_vec([rates.len()], rates)?, case.array("out"));
    Ok(())
}

/// Checks a fixture. Returns the number of cases of each kind.
fn check(fixture: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for case in cases(fixture) {
        let document: String = case.settings.setting("json");
        let result = match case.name() {
            "loss" => check_loss(&case, &document),
            "metric" => check_metric(&case, &document),
            "optimizer" => check_optimizer(&case, &document),
            "schedule" => check_schedule(&case, &document),
            _ => {
                let error = optimizer::from_json(&document, &CustomObjects::new()).unwrap_err().to_string();
                assert!(error.contains("at $.config"), "{error}");
                Ok(())
            }
        };
        result.unwrap_or_else(|error| panic!("{fixture}, {document}: {error}"));
        *counts.entry(case.name().to_string()).or_default() += 1;
    }
    counts
}

#[test]
fn objects_of_keras_2_are_read() {
    let counts = [("loss", 37), ("metric", 39), ("optimizer", 32), ("schedule", 9)];
    assert_eq!(check("object_configs_keras2"), counts.map(|(name, n)| (name.to_string(), n)).into());
}

#[test]
fn objects_of_keras_3_are_read() {
    let counts = [("loss", 37), ("metric", 38), ("optimizer", 17), ("refused", 1), ("schedule", 9)];
    for fixture in ["object_configs_keras3", "object_configs_keras3_15"] {
        assert_eq!(check(fixture), counts.map(|(name, n)| (name.to_string(), n)).into());
    }
}
