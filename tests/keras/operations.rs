//! Operations between layers, values by name, and masks that meet, in the documents of both Keras.
//! The live check `keras_graphs` compares 130 such models with each Keras.

use estimand::keras::{Functional, Input, KerasVersion, Model, Sequential, model_from_json};
use estimand::nn::config::{CustomObjects, Json};
use estimand::nn::{Add, Embedding, GlobalAvgPool1d};
use estimand::prelude::*;
use serde_json::json;

const BOTH: [KerasVersion; 2] = [KerasVersion::Keras2, KerasVersion::Keras3];

fn read(json: &Json) -> Result<Model> {
    model_from_json(&json.to_string(), &CustomObjects::new())
}

/// A value of Keras 3.
fn tensor(layer: &str, shape: &[Option<usize>]) -> Json {
    json!({"class_name": "__keras_tensor__", "config": {"shape": shape, "dtype": "float32", "keras_history": [layer, 0, 0]}})
}

/// `inputs / 4 - 1`, then `[:, -1]`, as each Keras writes it.
fn arithmetic(version: KerasVersion) -> Json {
    let rows = [None, Some(2), Some(3)];
    let shape = if version == KerasVersion::Keras2 { "batch_input_shape" } else { "batch_shape" };
    let mut layers = vec![json!({
        "module": "keras.layers", "class_name": "InputLayer", "name": "x", "inbound_nodes": [],
        "config": {shape: rows, "dtype": "float32", "name": "x"},
    })];
    layers.extend(match version {
        KerasVersion::Keras2 => {
            let layer = |class: &str, name: &str, function: &str, call: Json| {
                json!({
                    "module": "keras.src.layers.core.tf_op_layer", "class_name": class, "name": name,
                    "config": {"name": name, "trainable": true, "dtype": "float32", "function": function},
                    "inbound_nodes": [call],
                })
            };
            let all = json!({"start": null, "stop": null, "step": null});
            vec![
                layer("TFOpLambda", "a", "math.truediv", json!(["x", 0, 0, {"y": 4.0, "name": null}])),
                layer("TFOpLambda", "b", "math.subtract", json!(["a", 0, 0, {"y": 1, "name": null}])),
                layer("SlicingOpLambda", "c", "__operators__.getitem", json!(["b", 0, 0, {"slice_spec": [all, -1]}])),
            ]
        }
        KerasVersion::Keras3 => {
            let layer = |class: &str, name: &str, arguments: Json| {
                json!({
                    "module": "keras.src.ops.numpy", "class_name": class, "name": name, "config": {"name": name},
                    "inbound_nodes": [{"args": arguments, "kwargs": {}}],
                })
            };
            let all = json!({"class_name": "__slice__", "config": {"start": null, "stop": null, "step": null}});
            vec![
                layer("TrueDivide", "a", json!([tensor("x", &rows), 4.0])),
                layer("Subtract", "b", json!([tensor("a", &rows), 1])),
                layer("GetItem", "c", json!([tensor("b", &rows), [all, -1]])),
            ]
        }
    });
    json!({
        "class_name": "Functional",
        "config": {"name": "m", "layers": layers, "input_layers": [["x", 0, 0]], "output_layers": [["c", 0, 0]]},
    })
}

/// Of the last step (4, 8, -2): 4 / 4 - 1 = 0, 8 / 4 - 1 = 1, -2 / 4 - 1 = -1.5.
#[test]
fn operations_are_read_and_written_in_both_forms() -> Result<()> {
    let x = Array::from_vec([1, 2, 3], vec![9f32, 9.0, 9.0, 4.0, 8.0, -2.0])?;
    for version in BOTH {
        let mut model = read(&arithmetic(version))?;
        assert_eq!(model.predict(&x)?, Array::from_vec([1, 3], vec![0f32, 1.0, -1.5])?);
        assert!(model.summary().contains("GetItem"), "{}", model.summary());
        for written in BOTH {
            let mut again = read(&model.to_json_for(written)?)?;
            assert_eq!(again.predict(&x)?, model.predict(&x)?, "{version:?} as {written:?}");
        }
    }
    Ok(())
}

#[test]
fn what_is_not_read_of_an_operation_is_refused_by_name() -> Result<()> {
    for (version, key, other) in
        [(KerasVersion::Keras2, "function", "math.cumsum"), (KerasVersion::Keras3, "class_name", "Cumsum")]
    {
        let mut document = arithmetic(version);
        let layer = &mut document["config"]["layers"][2];
        *if key == "function" { &mut layer["config"][key] } else { &mut layer[key] } = other.into();
        let error = read(&document).unwrap_err().to_string();
        for words in [other, "in layer `b`", "at $.config.layers[2]", "\n  help: make it a layer of your own"] {
            assert!(error.contains(words), "{error}");
        }
    }
    let mut document = arithmetic(KerasVersion::Keras3);
    document["config"]["layers"][2]["config"]["out"] = 3.into();
    let error = read(&document).unwrap_err().to_string();
    assert!(error.contains("the operation has the argument `out`, which is not read"), "{error}");
    for places in [json!([0]), json!([0, 5]), json!([{"class_name": "__slice__", "config": {"step": 0}}])] {
        let mut document = arithmetic(KerasVersion::Keras3);
        document["config"]["layers"][3]["inbound_nodes"][0]["args"][1] = places;
        assert!(read(&document).unwrap_err().to_string().contains("in layer `c`"));
    }
    Ok(())
}

/// Keras sorts values by their names: `a` is the first input.
#[test]
fn inputs_and_outputs_by_name_are_read() -> Result<()> {
    let (b, a) = (Input::new([1]).name("b").tensor(), Input::new([1]).name("a").tensor());
    let twice = Dense::new(1).use_bias(false).name("twice").on(&a);
    let mut document = Model::new(&[&b, &a], &[&b, &twice])?.to_json()?;
    document["config"]["input_layers"] = json!({"b": ["b", 0, 0], "a": ["a", 0, 0]});
    document["config"]["output_layers"] = json!({"z": ["b", 0, 0], "y": ["twice", 0, 0]});
    let mut model = read(&document)?;
    model.set_weights(&[Array::from_vec([1, 1], vec![2f32])?])?;
    let column = |x: f32| Array::from_vec([1, 1], vec![x]);
    assert_eq!(model.predict_all([column(3.0)?, column(5.0)?])?, [column(6.0)?, column(5.0)?]);
    Ok(())
}

/// The sum of an embedding, whose id 0 does not count, and of values without a mask. In Keras 2 the
/// sum has the mask of the embedding: the mean is that of the first step, 1 + 10 = 11. In
/// Keras 3 it has none: the mean of 11 and 0 + 20 is 15.5.
#[test]
fn masks_meet_as_in_the_version_of_the_file() -> Result<()> {
    let (ids, x) = (Input::new([2]).dtype(DType::I32).tensor(), Input::new([2, 1]).tensor());
    let sum = Add::new().on(&[&Embedding::new(2, 1).mask_zero(true).on(&ids), &x]);
    let model = Model::new(&[&ids, &x], &GlobalAvgPool1d::new().on(&sum))?;
    let old = model.to_json_for(KerasVersion::Keras2)?;
    let error = model.to_json().unwrap_err().to_string();
    assert!(error.contains("passes masks through a layer that passes on another mask in Keras3"), "{error}");
    let mut new = old.clone();
    new["keras_version"] = "3.15.1".into();
    for (document, expected) in [(old, 11f32), (new, 15.5)] {
        let mut model = read(&document)?;
        model.set_weights(&[Array::from_vec([2, 1], vec![0f32, 1.0])?])?;
        let fed = [Array::from_vec([1, 2], vec![1i32, 0])?, Array::from_vec([1, 2, 1], vec![10f32, 20.0])?];
        assert_eq!(model.predict(fed)?, Array::from_vec([1, 1], vec![expected])?);
    }
    Ok(())
}

/// Keras builds a model in `fit` with an input of f32, also of ids.
#[test]
fn ids_may_be_floats() -> Result<()> {
    let mut model = Sequential::new().input([2]).add(Embedding::new(3, 1)).build()?;
    model.set_weights(&[Array::from_vec([3, 1], vec![5f32, 6.0, 7.0])?])?;
    let found = model.predict(Array::from_vec([1, 2], vec![2f32, 0.0])?)?;
    assert_eq!(found, Array::from_vec([1, 2, 1], vec![7f32, 5.0])?);
    Ok(())
}
