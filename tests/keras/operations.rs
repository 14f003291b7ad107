//! Operations between layers, values by name, and masks that meet, in the documents of both Keras.
//! The live check `keras_graphs` compares 150 such models with each Keras.

use estimand::keras::{Functional, Input, KerasVersion, Model, Sequential, model_from_json};
use estimand::nn::config::{CustomObjects, Json};
use estimand::nn::{Add, Concat, Embedding, GlobalAvgPool1d, GroupNorm, Lstm};
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

/// A model of one operation of `x`, as each Keras writes it: its name, its settings, and the
/// arguments after `x` of Keras 3 (of Keras 2, they are among the settings).
fn one(version: KerasVersion, sizes: &Json, dtype: &str, (name, settings, rest): (&str, Json, Json)) -> Json {
    let is_2 = version == KerasVersion::Keras2;
    let shape = if is_2 { "batch_input_shape" } else { "batch_shape" };
    let mut config = json!({"name": "a"});
    let mut arguments = vec![json!({
        "class_name": "__keras_tensor__", "config": {"shape": sizes, "dtype": dtype, "keras_history": ["x", 0, 0]},
    })];
    arguments.extend(rest.as_array().cloned().unwrap_or_default());
    let mut call = json!({"args": arguments, "kwargs": {}});
    if is_2 {
        config["function"] = name.into();
        call = json!(["x", 0, 0, settings]);
    } else {
        settings.as_object().unwrap().iter().for_each(|(key, value)| config[key] = value.clone());
    }
    let class = if is_2 { "TFOpLambda" } else { name };
    json!({"class_name": "Functional", "config": {
        "name": "m", "input_layers": [["x", 0, 0]], "output_layers": [["a", 0, 0]],
        "layers": [
            {"module": "keras.layers", "class_name": "InputLayer", "name": "x", "inbound_nodes": [],
             "config": {shape: sizes, "dtype": dtype, "name": "x"}},
            {"module": if is_2 { "keras.src.layers" } else { "keras.src.ops.numpy" }, "class_name": class, "name": "a",
             "config": config, "inbound_nodes": [call]},
        ],
    }})
}

/// The mean of 1, 2, 3 and 4 is 2.5. In Keras 3 that is so of whole numbers, too; in Keras 2 it is
/// 2.
#[test]
fn whole_numbers_follow_the_version() -> Result<()> {
    let x = Array::from_vec([1, 4], vec![1i32, 2, 3, 4])?;
    let sizes = json!([null, 4]);
    let old = one(KerasVersion::Keras2, &sizes, "int32", ("math.reduce_mean", json!({"axis": 1}), json!([])));
    let new = one(KerasVersion::Keras3, &sizes, "int32", ("Mean", json!({"axis": [1], "keepdims": false}), json!([])));
    assert_eq!(read(&old)?.predict(&x)?, Array::from([2i32]));
    assert_eq!(read(&new)?.predict(&x)?, Array::from([2.5f32]));
    for (document, other) in [(old, KerasVersion::Keras3), (new, KerasVersion::Keras2)] {
        let error = read(&document)?.to_json_for(other).unwrap_err().to_string();
        assert!(error.contains(&format!("the operation `a` of whole numbers computes something else in {other:?}")));
    }
    // 2 leaves whole numbers whole, 2.0 makes floats of them.
    let times = |number: Json| one(KerasVersion::Keras3, &sizes, "int32", ("Multiply", json!({}), json!([number])));
    let mut twice = read(&times(2.into()))?;
    assert_eq!(twice.predict(&x)?, Array::from_vec([1, 4], vec![2i32, 4, 6, 8])?);
    for version in BOTH {
        let written = twice.to_json_for(version)?["config"]["layers"][1]["inbound_nodes"].to_string();
        assert!(written.contains('2') && !written.contains("2.0"), "{written}");
    }
    let large = Array::from_vec([1, 4], vec![2_000_000_000i32, 0, 0, 1])?;
    let floats = Array::from_vec([1, 4], vec![4e9f32, 0.0, 0.0, 2.0])?;
    assert_eq!(read(&times(json!(2.0)))?.predict(&large)?, floats);
    let error = read(&times(json!(3_000_000_000i64))).unwrap_err().to_string();
    assert!(error.contains("has a value of i32 and the number 3000000000"), "{error}");
    Ok(())
}

#[test]
fn what_would_compute_something_else_is_refused() -> Result<()> {
    let sizes = json!([null, 4, 3]);
    let new = |name, settings, rest| {
        read(&one(KerasVersion::Keras3, &sizes, "float32", (name, settings, rest))).map(|model| model.summary())
    };
    let all = json!({"class_name": "__slice__", "config": {"start": null, "stop": null, "step": null}});
    let most = i64::MAX;
    for (found, words) in [
        (new("Softmax", json!({"axis": null}), json!([])), "no axis, so it would join the rows of a batch"),
        (new("Mean", json!({"axis": 1, "keepdims": 2}), json!([])), "expected true or false"),
        (new("GetItem", json!({}), json!([[all, 9, 0]])), "the index 9 is out of range for axis 1 of size 4"),
        (new("GetItem", json!({}), json!([[all, -5]])), "the index -5 is out of range for axis 1 of size 4"),
        (new("GetItem", json!({}), json!([[all, most]])), "is out of range for axis 1"),
        (new("GetItem", json!({}), json!([vec![Json::Null; 9]])), "axes"),
    ] {
        let error = found.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    // `tf.nn.relu([x])` stacks its list.
    let mut old = one(KerasVersion::Keras2, &sizes, "float32", ("nn.relu", json!({}), json!([])));
    let call = &mut old["config"]["layers"][1]["inbound_nodes"][0];
    *call = json!([call.clone()]);
    let error = read(&old).unwrap_err().to_string();
    assert!(error.contains("called with a list of values; expected one value"), "{error}");
    Ok(())
}

/// `keras.ops.maximum(x, float("-inf"))` changes nothing. JSON has no such number to write.
#[test]
fn operands_may_be_infinite() -> Result<()> {
    let document =
        one(KerasVersion::Keras3, &json!([null, 2]), "float32", ("Maximum", json!({}), json!(["-Infinity"])));
    let mut model = read(&document)?;
    let x = Array::from_vec([1, 2], vec![-3f32, 4.0])?;
    assert_eq!(model.predict(&x)?, x);
    let error = model.to_json().unwrap_err().to_string();
    assert!(error.contains("the operation `a` has a number that is not finite"), "{error}");
    Ok(())
}

/// Keras 3.6 refuses the name of an operation with settings. It is written where a new name would
/// matter.
#[test]
fn operations_with_settings_have_names_where_they_matter() -> Result<()> {
    let sizes = json!([null, 4, 3]);
    let mean = one(KerasVersion::Keras3, &sizes, "float32", ("Mean", json!({"axis": 1}), json!([])));
    let name = |document: &Json, i: usize| -> Result<Json> {
        let written = read(document)?.to_json()?;
        assert_eq!(written["config"]["layers"][i]["name"], "a");
        Ok(written["config"]["layers"][i]["config"]["name"].clone())
    };
    assert_eq!(name(&mean, 1)?, Json::Null);
    let mut two = mean.clone();
    two["config"]["output_layers"] = json!([["a", 0, 0], ["x", 0, 0]]);
    assert_eq!(name(&two, 1)?, "a");
    let mut beside = mean.clone();
    let text = beside.to_string().replace("\"x\"", "\"mean_1\"");
    beside = serde_json::from_str(&text).unwrap();
    assert_eq!(name(&beside, 1)?, "a");
    assert_eq!(name(&arithmetic(KerasVersion::Keras3), 1)?, "a");
    Ok(())
}

/// Of 1 and 3: (2 - 1) / (3 + 1) + 1 = 1.25 and (6 - 1) / (3 + 3) + 3 = 5 / 6 + 3.
#[test]
fn values_have_arithmetic() -> Result<()> {
    let x = Input::new([2]).name("x").tensor();
    let y = (&x * 2 - 1.0) / (3.0 + &x) - -&x;
    let mut model = Model::new(&x, &y)?;
    let rows = Array::from_vec([1, 2], vec![1f32, 3.0])?;
    let expected = Array::from_vec([1, 2], vec![1.25f32, 5.0 / 6.0 + 3.0])?;
    assert_eq!(model.predict(&rows)?, expected);
    for version in BOTH {
        let written = model.to_json_for(version)?;
        assert_eq!(read(&written)?.predict(&rows)?, expected, "{written}");
    }
    let wide = &x + Dense::new(3).on(&x);
    let error = wide.check().unwrap_err().to_string();
    assert!(error.contains(&format!("{}:{}", file!(), line!() - 2)), "{error}");
    Ok(())
}

/// Of sequences of unknown length: `list(range(n))[:3]`, `[-2:]`, `[1:3]` and `[-3:-1]` in Python.
#[test]
fn slices_stop_at_the_end_of_a_sequence() -> Result<()> {
    let slice = |start: Option<i64>, stop: Option<i64>| {
        let range =
            |start, stop| json!({"class_name": "__slice__", "config": {"start": start, "stop": stop, "step": null}});
        let parts: Json = vec![range(None::<i64>, None::<i64>), range(start, stop)].into();
        read(&one(KerasVersion::Keras3, &json!([null, null]), "float32", ("GetItem", json!({}), json!([parts]))))
    };
    for (start, stop, n, expected) in [
        (None, Some(3), 5, vec![0f32, 1.0, 2.0]),
        (None, Some(3), 2, vec![0.0, 1.0]),
        (Some(-2), None, 5, vec![3.0, 4.0]),
        (Some(-2), None, 1, vec![0.0]),
        (Some(1), Some(3), 5, vec![1.0, 2.0]),
        (Some(1), Some(3), 2, vec![1.0]),
        (Some(-3), Some(-1), 5, vec![2.0, 3.0]),
        (Some(-3), Some(-1), 2, vec![0.0]),
    ] {
        let row = Array::from_vec([1, n], (0..n).map(|i| i as f32).collect())?;
        let found = slice(start, stop)?.predict(&row)?;
        assert_eq!(found, Array::from_vec([1, expected.len()], expected)?, "{start:?}:{stop:?} of {n}");
    }
    Ok(())
}

/// Python's 1 is a flag that is set: the mean keeps its axis.
#[test]
fn flags_may_be_numbers() -> Result<()> {
    let sizes = json!([null, 4, 3]);
    for (version, name) in [(KerasVersion::Keras2, "math.reduce_mean"), (KerasVersion::Keras3, "Mean")] {
        let settings = json!({"axis": 1, "keepdims": 1});
        let mut model = read(&one(version, &sizes, "float32", (name, settings, json!([]))))?;
        let x = Array::from_vec([1, 4, 3], (0..12).map(|i| i as f32).collect())?;
        assert_eq!(model.predict(&x)?, Array::from_vec([1, 1, 3], vec![4.5f32, 5.5, 6.5])?);
    }
    Ok(())
}

/// A mask that the user has made: `LSTM(4)(Embedding(10, 3)(ids), mask=ids != 0)`. The embedding
/// makes none. With `mask_zero` it makes the same one, which Keras writes, too.
#[test]
fn a_mask_of_ones_own_is_refused() -> Result<()> {
    let ids = Input::new([5]).dtype(DType::I32).name("ids").tensor();
    let document = |mask_zero: bool, number: f64| -> Result<Json> {
        let words = Embedding::new(10, 3).mask_zero(mask_zero).name("words").on(&ids);
        let mut document = Model::new(&ids, &Lstm::new(4).name("read").on(&words))?.to_json()?;
        let layers = document["config"]["layers"].as_array_mut().unwrap();
        layers.push(json!({
            "module": "keras.src.ops.numpy", "class_name": "NotEqual", "name": "mask", "config": {"name": "mask"},
            "inbound_nodes": [{"args": [tensor("ids", &[None, Some(5)]), number], "kwargs": {}}],
        }));
        let call = layers.iter_mut().find(|layer| layer["name"] == "read").unwrap();
        call["inbound_nodes"][0]["kwargs"]["mask"] = tensor("mask", &[None, Some(5)]);
        Ok(document)
    };
    read(&document(true, 0.0)?)?;
    for (mask_zero, number) in [(false, 0.0), (true, 1.0)] {
        let error = read(&document(mask_zero, number)?).unwrap_err().to_string();
        assert!(error.contains("called with a mask that its value does not carry"), "{error}");
    }
    Ok(())
}

/// The operations with which Keras 3.6 and 3.15 make the mask of `Concatenate()([words, x])`.
#[test]
fn masks_that_are_joined_are_those_of_their_values() -> Result<()> {
    let (ids, x) = (Input::new([5]).dtype(DType::I32).name("ids").tensor(), Input::new([5, 3]).name("x").tensor());
    // A model with the masks of Keras 2 is not written for Keras 3: the mask comes afterwards.
    let words = Embedding::new(10, 3).name("words").on(&ids);
    let both = Concat::new().name("both").on(&[&words, &x]);
    let model = Model::new(&[&ids, &x], &Lstm::new(4).name("read").on(&both))?;
    let value = |name: &str| tensor(name, &[None, Some(5), Some(3)]);
    for (widened, more) in
        [("BroadcastTo", vec![]), ("LogicalOr", vec![("ZerosLike", "zeros", json!([value("words")]))])]
    {
        let mut wide = vec![value("steps")];
        wide.extend(more.iter().map(|(_, name, _)| value(name)));
        let mut made = vec![
            ("NotEqual", "counted", json!([value("ids"), 0])),
            ("ExpandDims", "steps", json!([value("counted")])),
            (widened, "wide", wide.into()),
            ("OnesLike", "ones", json!([value("x")])),
            ("Concatenate", "joined", json!([[value("wide"), value("ones")]])),
            ("Any", "mask", json!([value("joined")])),
        ];
        made.extend(more);
        let mut document = model.to_json()?;
        let layers = document["config"]["layers"].as_array_mut().unwrap();
        let words = layers.iter_mut().find(|layer| layer["name"] == "words").unwrap();
        words["config"]["mask_zero"] = true.into();
        layers.extend(made.into_iter().map(|(class, name, arguments)| {
            json!({"module": "keras.src.ops.numpy", "class_name": class, "name": name, "config": {},
                "inbound_nodes": [{"args": arguments, "kwargs": {}}]})
        }));
        let call = layers.iter_mut().find(|layer| layer["name"] == "read").unwrap();
        call["inbound_nodes"][0]["kwargs"]["mask"] = value("mask");
        read(&document)?;
    }
    Ok(())
}

/// The loss leaves out steps that the mask of an output leaves out. In Keras 3 this sum has no
/// mask.
#[test]
fn masks_of_outputs_count_when_a_model_is_written() -> Result<()> {
    let ids = Input::new([2]).dtype(DType::I32).tensor();
    let masked = Embedding::new(2, 1).mask_zero(true).on(&ids);
    let sum = Add::new().on(&[&masked, &Embedding::new(2, 1).on(&ids)]);
    let model = Model::new(&ids, &sum)?;
    model.to_json_for(KerasVersion::Keras2)?;
    let error = model.to_json().unwrap_err().to_string();
    assert!(error.contains("passes masks through a layer that passes on another mask in Keras3"), "{error}");
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

/// The embedding gives 1 and 3; normalized over both steps they are -1 and 1 (`epsilon` is 0),
/// times `gamma` 2 plus `beta` 5: 3 and 7. Keras 3 passes the mask on: the mean is that of the
/// first step, 3. The layer of tf.keras passes none on: 5.
#[test]
fn masks_pass_groups_as_in_the_version_of_the_file() -> Result<()> {
    let ids = Input::new([2]).dtype(DType::I32).tensor();
    let normalized = GroupNorm::new(1).epsilon(0.0).on(&Embedding::new(2, 1).mask_zero(true).on(&ids));
    let model = Model::new(&ids, &GlobalAvgPool1d::new().on(&normalized))?;
    let old = model.to_json_for(KerasVersion::Keras2)?;
    let error = model.to_json().unwrap_err().to_string();
    assert!(error.contains("passes masks through a layer that passes on another mask in Keras3"), "{error}");
    let mut new = old.clone();
    new["keras_version"] = "3.15.1".into();
    for (document, expected) in [(old, 5f32), (new, 3.0)] {
        let mut model = read(&document)?;
        let column = |numbers: &[f32]| Array::from_vec([numbers.len()], numbers.to_vec());
        model.set_weights(&[Array::from_vec([2, 1], vec![3f32, 1.0])?, column(&[2.0])?, column(&[5.0])?])?;
        let found = model.predict(Array::from_vec([1, 2], vec![1i32, 0])?)?;
        assert_eq!(found, Array::from_vec([1, 1], vec![expected])?);
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
