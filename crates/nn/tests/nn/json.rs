//! Layers as JSON: every layer with every option goes there and back, and bad documents get errors
//! that name the place.

use std::collections::BTreeSet;
use std::sync::Arc;

use estimand_graph::{Graph, Initializer, Tensor};
use estimand_nn::config::{CustomObjects, Json};
use estimand_nn::layer::{self, Config, LayerCall};
use estimand_nn::*;
use estimand_tensor::{DType, Result};
use estimand_update::{Constraint, MaxNorm};

use crate::all_options::{dtype, shape, with_all_options};

fn again(layer: &dyn Layer) -> Result<Box<dyn Layer>> {
    layer::from_json(&layer.to_json()?.to_string(), &CustomObjects::new())
}

/// The nodes and variables that a layer makes: two layers with the same text are the same.
fn text(layer: &dyn Layer) -> Result<String> {
    let g = Graph::new();
    let dtype = dtype(layer);
    let n = if layer.n_inputs().contains(&1) { 1 } else { 2 };
    let x: Vec<Tensor> = (0..n).map(|i| g.placeholder(&format!("x{i}"), dtype, shape(layer.kind()))).collect();
    let y = layer.apply(&x);
    let loss = match y.dtype() {
        DType::Str => g.regularization_loss(),
        _ => y.cast(DType::F32).sum() + g.regularization_loss(),
    };
    g.check()?;
    let body = g.body();
    let variables: Vec<String> = body.variables().iter().map(|(_, spec)| format!("{spec:?}")).collect();
    Ok(format!("{g}\n{}\n{:?}", variables.join("\n"), loss.shape()))
}

#[test]
fn every_layer_goes_to_json_and_back() -> Result<()> {
    for make in ALL_LAYERS {
        let layer = make();
        let back = again(&*layer)?;
        assert_eq!(back.to_json()?, layer.to_json()?, "{layer:?}");
        assert_eq!(text(&*back)?, text(&*layer)?, "{layer:?}");
    }
    Ok(())
}

#[test]
fn layers_from_json_give_all_their_states() -> Result<()> {
    let layer = again(&Lstm::new(3).return_state(true))?;
    let g = Graph::new();
    let x = g.placeholder("x", DType::F32, [2, 4, 5]);
    let results = Shared::new(layer).apply_all(&x);
    assert_eq!(results.len(), 3, "the output, the hidden and the cell state");
    Ok(())
}

/// Fields that have one value only: what Estimand does not have.
const FIXED: [&str; 16] = [
    "query_shape",
    "key_shape",
    "value_shape",
    "dtype",
    "data_format",
    "stateful",
    "activity_regularizer",
    "attention_axes",
    "groups",
    "output_padding",
    "sparse",
    "encoding",
    "vocabulary_dtype",
    "ragged",
    // Boundaries take the place of a number of bins, whose precision Keras's `adapt` reads.
    "num_bins",
    "epsilon",
];

#[test]
fn every_option_goes_to_json_and_back() -> Result<()> {
    // The fields of each class that some layer above has set to another value than the default.
    let mut changed: BTreeSet<(String, String)> = BTreeSet::new();
    let default_of = |class: &Json| {
        let all = ALL_LAYERS.iter().map(|make| make().to_json().unwrap());
        all.into_iter().find(|json| json["class_name"] == *class).unwrap()
    };
    for layer in with_all_options() {
        let (json, back) = (layer.to_json()?, again(&*layer)?);
        assert_eq!(back.to_json()?, json, "{layer:?}");
        assert_eq!(text(&*back)?, text(&*layer)?, "{layer:?}");
        let default = default_of(&json["class_name"]);
        for (key, value) in json["config"].as_object().unwrap() {
            if default["config"].get(key) != Some(value) {
                changed.insert((json["class_name"].to_string(), key.clone()));
            }
        }
    }
    let mut forgotten = Vec::new();
    for default in ALL_LAYERS.iter().map(|make| make().to_json().unwrap()) {
        let class = default["class_name"].to_string();
        for key in default["config"].as_object().unwrap().keys().filter(|key| !FIXED.contains(&key.as_str())) {
            if !changed.contains(&(class.clone(), key.clone())) {
                forgotten.push(format!("{key} of {class}"));
            }
        }
    }
    assert!(forgotten.is_empty(), "no layer above sets {forgotten:?}");
    Ok(())
}

/// The same boxed layers build the same graph on any thread.
#[test]
fn layers_cross_threads() -> Result<()> {
    let layers: Arc<Vec<Box<dyn Layer>>> = Arc::new(with_all_options());
    let texts = |layers: &[Box<dyn Layer>]| layers.iter().map(|layer| text(&**layer)).collect::<Result<Vec<String>>>();
    let there = std::thread::spawn({
        let layers = layers.clone();
        move || texts(&layers).map_err(|e| e.to_string())
    });
    assert_eq!(there.join().unwrap().unwrap(), texts(&layers)?);
    // A layer that was read can be nested.
    let read = layer::from_json(&Dense::new(3).to_json()?.to_string(), &CustomObjects::new())?;
    let nested = TimeDistributed::new(read);
    assert_eq!(nested.to_json()?, TimeDistributed::new(Dense::new(3)).to_json()?);
    Ok(())
}

/// A constraint of the user: nothing above a limit.
#[derive(Debug)]
struct Below(f32);

impl Constraint for Below {
    fn name(&self) -> &'static str {
        "Below"
    }

    fn project(&self, _dims: &[usize], weights: &mut [f32]) {
        weights.iter_mut().for_each(|w| *w = w.min(self.0));
    }
}

/// A layer of the user that nobody has described.
#[derive(Debug)]
struct Opaque(Config);

impl Layer for Opaque {
    fn kind(&self) -> &'static str {
        "opaque"
    }

    fn config(&self) -> &Config {
        &self.0
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        call.input().clone()
    }
}

#[test]
fn what_cannot_be_written_is_refused_by_name() {
    let refused = |layer: &dyn Layer| layer.to_json().unwrap_err().to_string();
    let text = refused(&TimeDistributed::new(Opaque(Config::default())));
    assert!(text.contains("the layer `opaque` cannot be written") && text.contains("Described"), "{text}");
    let text = refused(&Dense::new(2).kernel_constraint(Below(1.0)));
    assert!(text.contains("the constraint Below cannot be written") && text.contains("settings"), "{text}");
    let value = estimand_tensor::Array::from([1.0f32, 2.0]);
    let text = refused(&Dense::new(2).bias_initializer(Initializer::Value(value)));
    assert!(text.contains("an initial value of 2 numbers cannot be written"), "{text}");
    let text = refused(&GaussianNoise::new(f64::NAN));
    assert!(text.contains("JSON has no number NaN"), "{text}");
}

/// What is wrong with a document, and where.
#[test]
fn bad_documents_get_errors_that_name_the_place() {
    let dense = |config: &str| format!(r#"{{"class_name": "Dense", "config": {config}}}"#);
    let steps = |layer: &str| format!(r#"{{"class_name": "TimeDistributed", "config": {{"layer": {layer}}}}}"#);
    let deep = format!("{}1{}", steps("").trim_end_matches("}}").repeat(10_000), "}}".repeat(10_000));
    let cases: [(String, &[&str]); 18] = [
        (
            r#"{"class_name": "Dens", "config": {}}"#.into(),
            &["no layer `Dens`", "$.class_name", "did you mean `Dense`?"],
        ),
        (r#"{"config": {}}"#.into(), &["there is no `class_name`", "at $"]),
        (r#"{"class_name": "Dense"}"#.into(), &["there is no `config`", "at $"]),
        ("[1, 2]".into(), &["expected an object, found [1,2]", "at $"]),
        (dense("[]"), &["expected an object, found []", "at $.config"]),
        (dense("{}"), &["there is no `units`", "at $.config"]),
        (dense(r#"{"units": -1}"#), &["expected a whole number from 0, found -1", "at $.config.units"]),
        (dense(r#"{"units": 1e99}"#), &["expected a whole number from 0", "at $.config.units"]),
        (dense(r#"{"units": 2, "unit": 3}"#), &["there is no field `unit`", "at $.config", "did you mean `units`?"]),
        (dense(r#"{"units": 2, "dtype": "float16"}"#), &["found \"float16\"", "at $.config.dtype"]),
        (
            dense(r#"{"units": 2, "kernel_initializer": {"class_name": "HeNorml", "config": {}}}"#),
            &["no initializer `HeNorml`", "at $.config.kernel_initializer", "`HeNormal`"],
        ),
        (
            dense(r#"{"units": 2, "kernel_initializer": {"class_name": "Constant", "config": {"value": [1]}}}"#),
            &["expected a number, found [1]", "at $.config.kernel_initializer.config.value"],
        ),
        (dense(r#"{"units": 2, "activation": "rely"}"#), &["no activation `rely`", "at $.config.activation"]),
        (
            dense(r#"{"units": 2, "bias_constraint": {"class_name": "Below", "config": {}}}"#),
            &["no constraint `Below`", "at $.config.bias_constraint"],
        ),
        (
            steps(&steps(&dense(r#"{"units": true}"#))),
            &["expected a whole number from 0, found true", "at $.config.layer.config.layer.config.units"],
        ),
        (
            r#"{"class_name": "Embedding", "config": {"input_dim": 2, "output_dim": 2, "activity_regularizer": "l2"}}"#
                .into(),
            &["expected null", "at $.config.activity_regularizer"],
        ),
        (
            r#"{"class_name": "UpSampling2D", "config": {"interpolation": "bicubic"}}"#.into(),
            &["expected nearest or bilinear, found \"bicubic\"", "at $.config.interpolation"],
        ),
        (deep, &["nested more than 100 deep", "at $.config.layer.config.layer"]),
    ];
    for (document, parts) in cases {
        let error = layer::from_json(&document, &CustomObjects::new()).unwrap_err().to_string();
        for part in parts {
            assert!(error.contains(part), "{error}\nshould contain {part}");
        }
        assert!(error.len() < 400, "{error}");
    }
}

/// A document that lost or changed any part is read or refused, and nothing panics.
#[test]
fn damaged_documents_do_not_panic() -> Result<()> {
    let document = Bidirectional::new(Lstm::new(3).kernel_constraint(MaxNorm::new(2.0))).to_json()?.to_string();
    for i in 0..document.len() {
        for with in ["", "0", "\"", "[", "null", "-"] {
            let damaged = format!("{}{with}{}", &document[..i], &document[i + 1..]);
            let _ = layer::from_json(&damaged, &CustomObjects::new());
        }
    }
    Ok(())
}

/// A constraint of the user is read by the function that the user gives.
#[test]
fn constraints_of_the_user_are_read() -> Result<()> {
    let document = r#"{"class_name": "Dense", "config": {"units": 2, "bias_constraint": {"class_name": "Below", "config": {"limit": 2}}}}"#;
    let objects = CustomObjects::new().constraint("Below", |config| {
        let limit = config.field("limit")?;
        Ok(Arc::new(Below(limit.value().as_f64().ok_or_else(|| limit.expected("a number"))? as f32)))
    });
    let layer = layer::from_json(document, &objects)?;
    assert!(format!("{layer:?}").contains("Below(2.0)"), "{layer:?}");
    Ok(())
}
