//! Models that Keras 2 and Keras 3 wrote down: read here, they compute what they compute there, and
//! are written as they were.

use estimand::keras::{
    CallInputs, Compile, Functional, Input, KerasTensor, KerasVersion, Model, Sequential, SharedLayer, model_from_json,
};
use estimand::nn::config::{CustomObjects, Json};
use estimand::nn::{
    Add, Bidirectional, Concat, Discretization, Gru, GruCell, Lambda, LstmCell, MultiHeadAttention, RandomContrast,
    Rnn, SeparableConv1d, SpatialDropout1d, StackedRnnCells, ThresholdedRelu,
};
use estimand::prelude::*;
use estimand_fixture::cases;

fn read(text: &str) -> Result<Model> {
    model_from_json(text, &CustomObjects::new())
}

fn array(found: &estimand_fixture::Array) -> Array {
    let dtype = if found.dtype == "i64" { DType::I64 } else { DType::F32 };
    Array::from_bytes(dtype, &found.dims[..], &found.to_ne_bytes()).unwrap()
}

/// The connections of a model: names, calls, inputs, outputs, and those of models inside.
fn connections(json: &Json) -> Json {
    let config = &json["config"];
    let layers = config["layers"].as_array().into_iter().flatten();
    // Operations that make masks are no layers.
    let layers =
        layers.filter(|layer| !layer["module"].as_str().is_some_and(|module| module.starts_with("keras.src.ops")));
    let layer = |layer: &Json| {
        let mut calls = layer["inbound_nodes"].clone();
        calls.as_array_mut().into_iter().flatten().for_each(|call| {
            if call.is_object() {
                call["kwargs"] = call["kwargs"]["initial_state"].clone();
            }
            // `Bidirectional` of Keras 2 lists arguments that were not given.
            let arguments = call.as_array_mut().into_iter().flatten().filter_map(|value| value[3].as_object_mut());
            arguments.for_each(|arguments| arguments.retain(|_, value| !value.is_null()));
        });
        serde_json::json!([layer["class_name"], layer["config"]["name"], calls, connections(layer)])
    };
    let layers: Vec<Json> = layers.map(layer).collect();
    // Newer versions of Keras 3 write the only output of a model without a list around it.
    let ends = |key: &str| match &config[key] {
        ends if ends[0].is_string() => serde_json::json!([ends]),
        ends => ends.clone(),
    };
    serde_json::json!([config["name"], layers, ends("input_layers"), ends("output_layers")])
}

fn check(fixture: &str, version: KerasVersion) -> Result<()> {
    let (mut n_read, mut n_refused) = (0, 0);
    for case in cases(fixture) {
        let text: String = case.setting("json");
        if let Some(words) = case.option::<String>("refused") {
            let error = read(&text).map(|model| model.summary()).unwrap_err().to_string();
            assert!(error.contains(&words) && error.contains("at $.config.layers["), "{}: {error}", case.name());
            n_refused += 1;
            continue;
        }
        let mut model = read(&text).map_err(|error| error.context(format!("in case `{}`", case.name())))?;
        let arrays = |prefix: &str| case.with_prefix(prefix).map(|(_, found)| array(&found)).collect::<Vec<Array>>();
        model.set_weights(&arrays("weight:"))?;
        let compare = |model: &mut Model| -> Result<()> {
            let found = model.predict_all(arrays("in:"))?;
            let expected = arrays("out:");
            assert_eq!(found.len(), expected.len(), "{}", case.name());
            for (found, expected) in found.iter().zip(&expected) {
                assert_eq!(found.dims(), expected.dims(), "{}", case.name());
                let pairs = found.as_slice::<f32>()?.iter().zip(expected.as_slice::<f32>()?);
                let worst = pairs.map(|(a, b)| (a - b).abs() / b.abs().max(1.0)).fold(0.0, f32::max);
                assert!(worst < 2e-6, "{}: {worst}", case.name());
            }
            Ok(())
        };
        compare(&mut model)?;
        if case.name() == "calls that say nothing of training" {
            assert!(text.contains("\"training\": true") && text.contains("\"training\": false"), "{text}");
            let ours = model.to_json_for(version)?.to_string();
            assert!(!ours.contains("\"training\""), "dropouts follow the model: {ours}");
        }
        // What was read is written as Keras writes it, but for what Keras adds about building.
        let ours = model.to_json_for(version)?;
        let theirs: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(connections(&ours), connections(&theirs), "{}", case.name());
        for version in [KerasVersion::Keras2, KerasVersion::Keras3] {
            let mut again = read(&model.to_json_for(version)?.to_string())?;
            assert_eq!(again.to_json_for(version)?, model.to_json_for(version)?);
            again.set_weights(&arrays("weight:"))?;
            compare(&mut again)?;
        }
        n_read += 1;
    }
    assert!(n_read >= 18 && n_refused == 1, "{n_read} models read, {n_refused} refused");
    Ok(())
}

#[test]
fn models_of_keras_2_are_read_and_written() -> Result<()> {
    check("keras_models_keras2", KerasVersion::Keras2)
}

#[test]
fn models_of_keras_3_are_read_and_written() -> Result<()> {
    check("keras_models_keras3", KerasVersion::Keras3)?;
    check("keras_models_keras3_15", KerasVersion::Keras3)
}

/// TF: Keras 3 writes `"training": false` for every `Dropout`, and trains it nevertheless. What was
/// said here is kept in both forms.
#[test]
fn training_of_a_call_is_kept_and_that_of_keras_3_says_nothing() -> Result<()> {
    let x = Input::new([400]).tensor();
    // Half of the values are dropped in training, the others doubled; the loss is 0 without that.
    let is_dropping = |text: &str| -> Result<bool> {
        let mut model = read(text)?;
        model.compile(Compile::new("sgd", "mse"))?;
        let ones = Array::from_vec([2, 400], vec![1f32; 800])?;
        Ok(model.train_on_batch((&ones, &ones))?["loss"] > 0.1)
    };
    // Something to train, which is 0.
    let zeros = Dense::new(400).name("zeros").kernel_initializer(Initializer::Zeros).on(&x);
    let with = |dropped: KerasTensor| Model::new(&x, &Add::new().on(&[&dropped, &zeros]));
    let plain = with(Dropout::new(0.5).on(&x))?;
    let text = plain.to_json()?.to_string();
    assert!(text.contains(r#""kwargs":{}"#));
    assert!(is_dropping(&text.replace(r#""kwargs":{}"#, r#""kwargs":{"training":false,"mask":null}"#))?);
    let fixed = with(Dropout::new(0.5).on(&CallInputs::of(&x).training(false)))?;
    for version in [KerasVersion::Keras2, KerasVersion::Keras3] {
        assert!(!is_dropping(&fixed.to_json_for(version)?.to_string())?);
    }
    Ok(())
}

/// Keras writes the states of stacked cells as lists inside of a list, which are read.
#[test]
fn states_of_stacked_cells_are_read() -> Result<()> {
    let stack = || Rnn::new(StackedRnnCells::new().cell(LstmCell::new(2)).cell(GruCell::new(3)));
    let states = [2, 2, 3].map(|units| Input::new([units]).tensor());
    let x = Input::new([4, 1]).name("x").tensor();
    let y = stack().on(&CallInputs::of(&x).initial_state(&states));
    let inputs = [&[x][..], &states].concat();
    let model = Model::new(&inputs, &y)?;
    let found = model.to_json().unwrap_err().to_string();
    assert!(found.contains("initial states of stacked cells"), "{found}");
    // What Keras 2 writes for such a call.
    let names = ["input_1", "input_2", "input_3"];
    let input = |name: &str, sizes: Json| {
        serde_json::json!({"class_name": "InputLayer", "name": name, "inbound_nodes": [],
        "config": {"name": name, "batch_input_shape": sizes, "dtype": "float32"}})
    };
    let value = |name: &str| serde_json::json!([name, 0, 0, {}]);
    let [a, b, c] = names;
    let rnn = stack().name("rnn").to_json()?;
    let layer = serde_json::json!({"class_name": "RNN", "name": "rnn", "config": rnn["config"],
        "inbound_nodes": [[value("x"), [value(a), value(b)], value(c)]]});
    let json = serde_json::json!({"class_name": "Functional", "config": {"name": "model",
        "layers": [input("x", serde_json::json!([null, 4, 1])), input(a, serde_json::json!([null, 2])),
            input(b, serde_json::json!([null, 2])), input(c, serde_json::json!([null, 3])), layer],
        "input_layers": [["x", 0, 0], [a, 0, 0], [b, 0, 0], [c, 0, 0]], "output_layers": [["rnn", 0, 0]]}});
    let mut read = read(&json.to_string())?;
    let mut model = model;
    read.set_weights(&model.get_weights()?)?;
    let given = || -> Result<Vec<Array>> {
        [4, 2, 2, 3]
            .iter()
            .map(|n| {
                Array::from_vec(
                    if *n == 4 { vec![1, 4, 1] } else { vec![1, *n] },
                    (0..*n).map(|i| i as f32 / 3.0).collect(),
                )
            })
            .collect()
    };
    assert_eq!(read.predict(given()?)?, model.predict(given()?)?);
    Ok(())
}

fn refusal(text: &str) -> String {
    read(text).map(|model| model.summary()).unwrap_err().to_string()
}

/// Damaged documents are refused with their place; none is a panic or a hang.
#[test]
fn damaged_documents_are_refused_with_their_place() -> Result<()> {
    let x = Input::new([4]).name("x").tensor();
    let both = Concat::new().on(&[&Dense::new(2).on(&x), &x]);
    let seen = MultiHeadAttention::new(1, 2).on(&[&both, &both]);
    assert!(seen.check().is_err());
    let model = Model::new(&x, &both)?;
    let good = model.to_json()?;
    let with = |change: &dyn Fn(&mut Json)| {
        let mut json = good.clone();
        change(&mut json);
        refusal(&json.to_string())
    };
    let own = |json: &mut Json| {
        let call = json["config"]["layers"][1]["inbound_nodes"][0].clone();
        let mut call = call;
        call["args"][0]["config"]["keras_history"][0] = "dense".into();
        json["config"]["layers"][1]["inbound_nodes"][0] = call;
    };
    for (change, words) in [
        (
            &(|json: &mut Json| json["class_name"] = "Subclassed".into()) as &dyn Fn(&mut Json),
            "there is no model `Subclassed`",
        ),
        (&|json| json["config"]["layers"][1]["class_name"] = "Denze".into(), "did you mean `Dense`"),
        (&|json| json["config"]["output_layers"][0] = "concatenat".into(), "did you mean `concatenate`"),
        (&|json| json["config"]["output_layers"][1] = 7.into(), "has 1 calls; number 7 is asked for"),
        (&|json| json["config"]["output_layers"][2] = 7.into(), "has 1 outputs; number 7 is asked for"),
        (&|json| json["config"]["input_layers"] = serde_json::json!([]), "needs at least one input"),
        (&|json| json["config"]["layers"][0]["config"]["batch_shape"][1] = (-4).into(), "expected a size or null"),
        (&|json| json["config"]["layers"][0]["config"]["dtype"] = "float8".into(), "there is no dtype `float8`"),
        (&|json| json["config"]["layers"][1]["name"] = "x".into(), "two layers have the same name"),
        (&own, "layer `dense` needs its own output"),
    ] {
        let error = with(change);
        assert!(error.contains(words), "expected {words}: {error}");
    }
    // Every value of the document replaced in turn by something else: an error or another model.
    let mut n_errors = 0;
    let text = good.to_string();
    for (place, _) in text.match_indices([':', ',', '[']) {
        for wrong in ["null", "-1", "\"x\"", "[]", "{}", "1e300"] {
            let damaged =
                format!("{}{wrong}{}", &text[..=place], &text[place + 1..].trim_start_matches(|c| !",]}".contains(c)));
            n_errors += usize::from(read(&damaged).is_err());
        }
    }
    assert!(n_errors > 100, "{n_errors}");
    Ok(())
}

#[test]
fn inputs_that_are_not_dense_are_refused() -> Result<()> {
    let good = Sequential::new().input([2]).add(Dense::new(1)).build()?.to_json()?;
    for key in ["sparse", "ragged", "optional"] {
        let mut json = good.clone();
        json["config"]["layers"][0]["config"][key] = false.into();
        read(&json.to_string())?;
        json["config"]["layers"][0]["config"][key] = true.into();
        let error = refusal(&json.to_string());
        let place = format!("at $.config.layers[0].config.{key}");
        assert!(error.contains(&format!("the input is {key}")) && error.contains(&place), "{error}");
    }
    Ok(())
}

#[test]
fn a_lambda_in_a_model_is_refused_by_its_name() -> Result<()> {
    let mut json = Sequential::new().input([2]).add(Dense::new(1).name("halve")).build()?.to_json()?;
    json["config"]["layers"][1]["class_name"] = "Lambda".into();
    let error = refusal(&json.to_string());
    for words in ["the layer `halve` is a Lambda", "CustomObjects::layer", "at $.config.layers[1]"] {
        assert!(error.contains(words), "{error}");
    }
    Ok(())
}

/// 0.2 x + 0.5 in Keras 2, x / 6 + 0.5 in Keras 3. A model is not written for the other version.
#[test]
fn hard_sigmoid_keeps_the_meaning_of_its_version() -> Result<()> {
    let (two, three) = (KerasVersion::Keras2, KerasVersion::Keras3);
    for (activation, version, other, expected) in
        [(Activation::HardSigmoid, two, three, 0.7f32), (Activation::HardSigmoidKeras3, three, two, 4.0 / 6.0)]
    {
        let gate = Dense::new(1).activation(activation).name("gate");
        let model = Sequential::new().input([1]).add(gate).build()?;
        let json = model.to_json_for(version)?;
        assert_eq!(json["config"]["layers"][1]["config"]["activation"], "hard_sigmoid");
        let mut again = read(&json.to_string())?;
        again.set_weights(&[Array::from_vec([1, 1], vec![1f32])?, Array::from(vec![0f32])])?;
        let found = again.predict(Array::from_vec([1, 1], vec![1f32])?)?.as_slice::<f32>()?[0];
        assert!((found - expected).abs() < 1e-6, "{version:?}: {found}");
        assert_eq!(again.to_json_for(version)?, json);
        let error = model.to_json_for(other).unwrap_err().to_string();
        assert!(
            error.contains("the layer `gate` has the activation") && error.contains(&format!("{other:?}")),
            "{error}"
        );
    }
    Ok(())
}

#[test]
fn options_of_keras_3_alone_are_not_written_for_keras_2() -> Result<()> {
    let model = |layer: RandomContrast| Sequential::new().input([4, 4, 3]).add(layer.name("contrast")).build();
    let ranged = model(RandomContrast::new(0.1).value_range(0.0, 1.0))?;
    let error = ranged.to_json_for(KerasVersion::Keras2).unwrap_err().to_string();
    assert!(
        error.contains("the layer `contrast` has the option `value_range`, which Keras 2 does not have"),
        "{error}"
    );
    let json = ranged.to_json()?;
    assert_eq!(json["config"]["layers"][1]["config"]["value_range"], serde_json::json!([0.0, 1.0]));
    assert_eq!(read(&json.to_string())?.to_json()?, json);
    model(RandomContrast::new(0.1))?.to_json_for(KerasVersion::Keras2).map(drop)
}

/// Found by Keras 3.15, which opens a model of every layer in the live check `keras_files@keras3`.
#[test]
fn what_keras_3_does_not_take_is_not_written_for_it() -> Result<()> {
    let layer = |layer: Box<dyn Layer>| -> Result<Json> {
        let x = Input::new([4, 6]).tensor();
        Ok(Model::new(&x, &layer.on(&x))?.to_json()?["config"]["layers"][1].clone())
    };
    for spared in [layer(Box::new(SpatialDropout1d::new(0.5)))?, layer(Box::new(Discretization::new([0.0])))?] {
        assert_eq!(spared["config"].get("trainable"), None, "{spared}");
    }
    // The query is also the value.
    let attention = layer(Box::new(MultiHeadAttention::new(2, 3)))?;
    assert_eq!(attention["inbound_nodes"][0]["args"].as_array().map(Vec::len), Some(2), "{attention}");
    let both = layer(Box::new(Bidirectional::new(Gru::new(2).go_backwards(true))))?;
    assert_eq!(both["config"]["backward_layer"]["config"]["go_backwards"], false, "{both}");
    let error = layer(Box::new(ThresholdedRelu::new(0.5).name("cut"))).unwrap_err().to_string();
    assert!(error.contains("the layer `cut` is a ThresholdedReLU, which Keras 3 does not have"), "{error}");
    let error = layer(Box::new(SeparableConv1d::new(2, 3).causal().name("heard"))).unwrap_err().to_string();
    assert!(error.contains("the layer `heard` is a SeparableConv1D with causal padding"), "{error}");
    Ok(())
}

/// A chain of 3,000 layers, and one document that lists it in reverse.
#[test]
fn deep_models_are_read_in_any_order() -> Result<()> {
    let model = |n: usize| {
        let x = Input::new([1]).tensor();
        Model::new(&x, &(0..n).fold(x.clone(), |value, _| estimand::nn::Relu::new().on(&value)))
    };
    let mut json = model(3_000)?.to_json()?;
    if let Some(layers) = json["config"]["layers"].as_array_mut() {
        layers.reverse();
    }
    assert_eq!(read(&json.to_string())?.layers().len(), 3_001);
    Ok(())
}

#[test]
fn what_cannot_be_written_is_said() -> Result<()> {
    let model = Sequential::new().input([2]).add(Lambda::new(|x| x[0].square()).name("mine")).build()?;
    let error = model.to_json().unwrap_err().to_string();
    assert!(error.contains("the layer `mine` is a function"), "{error}");
    let tower = SharedLayer::new(Dense::new(2));
    let (a, b) = (Input::new([3]).tensor(), Input::new([3]).tensor());
    let model = Model::new(&[&a, &b], &[tower.on(&a), tower.on(&b)])?;
    let json = model.to_json_for(KerasVersion::Keras2)?;
    assert_eq!(json["config"]["output_layers"], serde_json::json!([["dense", 0, 0], ["dense", 1, 0]]));
    Ok(())
}

/// Keras reads the flags of layers and not that of the model around them.
/// Keras 3.15 writes `"output_layers": ["dense", 0, 0]` for one output. With `[["dense", 0, 0]]`,
/// `model.output` is a list after loading, and `Dense(2)(model.output)` fails.
#[test]
fn a_single_end_is_written_as_each_version_writes_it() -> Result<()> {
    let x = Input::new([4]).name("x").tensor();
    let y = Dense::new(3).name("y").on(&x);
    let single = Model::new(&x, &y)?;
    let both = Model::new(&x, &[y.clone(), Dense::new(2).name("z").on(&y)])?;
    let ends = |model: &Model, version| -> Result<[Json; 2]> {
        let json = model.to_json_for(version)?;
        Ok(["input_layers", "output_layers"].map(|key| json["config"][key].clone()))
    };
    let (x, y, z) = (serde_json::json!(["x", 0, 0]), serde_json::json!(["y", 0, 0]), serde_json::json!(["z", 0, 0]));
    assert_eq!(ends(&single, KerasVersion::Keras3)?, [x.clone(), y.clone()]);
    assert_eq!(ends(&single, KerasVersion::Keras2)?, [&x, &y].map(|end| serde_json::json!([end])));
    assert_eq!(ends(&both, KerasVersion::Keras3)?, [x, serde_json::json!([y, z])]);
    Ok(())
}

#[test]
fn layers_of_frozen_models_are_written_frozen() -> Result<()> {
    let base = || Sequential::new().name("base").input([2]).add(Dense::new(2).name("a")).add(Dense::new(2).name("b"));
    let mut model = Sequential::new().input([2]).add_model(&base().build()?).add(Dense::new(1).name("top")).build()?;
    for version in [KerasVersion::Keras2, KerasVersion::Keras3] {
        for (frozen, expected) in
            [("base", [false, false, true]), ("base/a", [false, true, true]), ("top", [true, true, false])]
        {
            model.set_trainable(true)?;
            model.set_layer_trainable(frozen, false)?;
            let json = model.to_json_for(version)?;
            let layers = |json: &Json| json["config"]["layers"].as_array().unwrap().clone();
            let inner = layers(&json).into_iter().find(|layer| layer["config"]["name"] == "base").unwrap();
            let all = layers(&inner).into_iter().chain(layers(&json));
            let dense = all.filter(|layer| layer["class_name"] == "Dense");
            let flags: Vec<bool> = dense.map(|layer| layer["config"]["trainable"].as_bool().unwrap()).collect();
            assert_eq!(flags, expected, "{frozen}");
            let again = read(&json.to_string())?;
            assert_eq!(again.trainable_weights().collect::<Vec<_>>(), model.trainable_weights().collect::<Vec<_>>());
        }
    }
    Ok(())
}
