//! Layers that Keras 2 and Keras 3 wrote down: read here, they compute what they compute there.

use std::collections::BTreeSet;

use estimand_engine::Session;
use estimand_graph::{Graph, Initializer, Tensor};
use estimand_nn::config::{CustomObjects, Described, Field, Fields, Json};
use estimand_nn::layer::{Config, LayerCall};
use estimand_nn::{ALL_LAYERS, Activation, Layer, LayerInputs, Regularizer, layer};
use estimand_tensor::{Array, Result};
use serde_json::json;

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

/// The classes of a fixture that the test of preprocessing layers reads.
fn of_preprocessing(fixture: &str) -> BTreeSet<String> {
    cases(fixture).iter().map(|case| case.name().to_string()).collect()
}

/// All classes but those that Keras 3 has no longer.
fn all_classes_but(gone: &[&str]) -> BTreeSet<String> {
    let class = |make: &fn() -> Box<dyn Layer>| make().to_json().unwrap()["class_name"].as_str().unwrap().to_string();
    ALL_LAYERS.iter().map(class).filter(|class| !gone.contains(&class.as_str())).collect()
}

#[test]
fn layers_of_keras_2_are_read() -> Result<()> {
    let both = check("layer_configs_keras2")?
        .union(&of_preprocessing("preprocessing_layers"))
        .cloned()
        .collect::<BTreeSet<_>>();
    assert_eq!(both, all_classes_but(&[]));
    Ok(())
}

#[test]
fn layers_of_keras_3_are_read() -> Result<()> {
    let current = check("layer_configs_keras3_15")?;
    assert_eq!(check("layer_configs_keras3")?, current);
    let both: BTreeSet<String> = current.union(&of_preprocessing("preprocessing_layers_keras3_15")).cloned().collect();
    assert_eq!(both, all_classes_but(&["ThresholdedReLU"]));
    Ok(())
}

/// Options that Keras 3.13 and later write are read at their defaults, and refused by name
/// otherwise.
#[test]
fn new_options_of_keras_3_are_refused_by_name() {
    let all: Vec<_> =
        cases("layer_configs_keras3_15").into_iter().chain(cases("preprocessing_layers_keras3_15")).collect();
    for (class, key, value) in [
        ("Dense", "quantization_config", json!({"class_name": "Int8QuantizationConfig", "config": {}})),
        ("Embedding", "quantization_config", json!("int8")),
        ("BatchNormalization", "renorm", json!(true)),
        ("BatchNormalization", "renorm_clipping", json!({"rmax": 2})),
        ("MultiHeadAttention", "sliding_window", json!(3)),
        ("MultiHeadAttention", "use_gate", json!(true)),
        ("StringLookup", "oov_method", json!("farmhash")),
        ("IntegerLookup", "salt", json!([1, 2])),
        ("Resizing", "pad_to_aspect_ratio", json!(true)),
        ("Resizing", "antialias", json!(true)),
        ("RandomFlip", "data_format", json!("channels_first")),
    ] {
        let case = all.iter().find(|case| case.name() == class).unwrap();
        let mut document: Json = serde_json::from_str(&case.settings.setting::<String>("json")).unwrap();
        assert!(document["config"].get(key).is_some(), "Keras does not write {key} of {class}");
        document["config"][key] = value;
        let error = layer::from_json(&document.to_string(), &CustomObjects::new()).unwrap_err().to_string();
        assert!(error.contains(&format!("`{key}`")), "{class}: {error}");
    }
}

/// A function of Python is refused with the name of its layer; a layer of the user takes its place.
#[test]
fn a_lambda_is_refused_by_its_name() -> Result<()> {
    let document = json!({"class_name": "Lambda", "config": {"name": "halve", "function": ["4wAA", null, null]}});
    let error = layer::from_json(&document.to_string(), &CustomObjects::new()).unwrap_err().to_string();
    for words in ["the layer `halve` is a Lambda", "CustomObjects::layer", "at $"] {
        assert!(error.contains(words), "{error}");
    }
    let objects = CustomObjects::new().layer::<Halve>();
    let g = Graph::new();
    let x = rows(&g, "x", &Array::from(vec![3f32, -1.0]));
    let y = layer::from_json(&document.to_string(), &objects)?.apply(&x);
    let found = Session::new(&g)?.run(&[&y], &[(&x, Array::from(vec![3f32, -1.0]))])?.remove(0);
    assert_eq!(found.as_slice::<f32>()?, [1.5, -0.5]);
    Ok(())
}

/// What a user registered with Keras becomes what does the same here.
#[test]
fn objects_of_users_are_read_in_layers() -> Result<()> {
    let document = json!({"class_name": "Dense", "config": {
        "units": 2,
        "activation": {"class_name": "function", "config": "my_relu", "registered_name": "mine>my_relu"},
        "kernel_initializer": {"class_name": "mine>Sevens", "config": {"by": 7.0}},
        "kernel_regularizer": {"class_name": "Double", "config": {"l2": 0.1}},
    }});
    let error = layer::from_json(&document.to_string(), &CustomObjects::new()).unwrap_err().to_string();
    assert!(error.contains("`my_relu`") && error.contains("at $.config.activation"), "{error}");
    let objects = CustomObjects::new()
        .object("my_relu", |_| Ok(Activation::Relu))
        .object("Sevens", |config| f64::read(&config.field("by")?).map(Initializer::Constant))
        .object("Double", |config| f64::read(&config.field("l2")?).map(|l2| Regularizer::l2(2.0 * l2)));
    let config = layer::from_json(&document.to_string(), &objects)?.to_json()?["config"].clone();
    assert_eq!(config["activation"], "relu");
    assert_eq!(config["kernel_initializer"]["config"], json!({"value": 7.0}));
    assert_eq!(config["kernel_regularizer"]["config"], json!({"l2": 0.2}));
    Ok(())
}

#[test]
fn identity_is_the_linear_activation() -> Result<()> {
    let document = json!({"class_name": "Identity", "config": {"name": "same", "trainable": true, "dtype": "float32"}});
    let read = layer::from_json(&document.to_string(), &CustomObjects::new())?;
    assert_eq!(read.to_json()?["class_name"], "Identity");
    assert_eq!(read.to_json()?["config"], document["config"]);
    Ok(())
}

/// The layer of a user that stands for a `Lambda`.
#[derive(Clone, Debug)]
struct Halve(Config);

impl Layer for Halve {
    fn kind(&self) -> &'static str {
        "halve"
    }

    fn config(&self) -> &Config {
        &self.0
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        call.input() * 0.5
    }
}

impl Described for Halve {
    const CLASS: &'static str = "Lambda";

    fn template() -> Halve {
        Halve(Config::default())
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Halve {
        fields.ignored("function");
        Halve(self.0.fields(fields))
    }
}
