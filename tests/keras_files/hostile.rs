//! Files and texts of a few hundred bytes that say huge sizes: an error, and no memory for them.

use estimand::data::zip;
use estimand::keras::{
    ByName, Compile, Limits, LoadModel, Sequential, load_model, load_model_with, model_from_json, model_to_estimator,
};
use estimand::nn::config::Json;
use estimand::prelude::*;
use estimand_hdf5::Writer;
use serde_json::json;

use crate::{Folder, objects, words};

fn config_of(layer: Json, width: u64) -> String {
    let input = json!({ "class_name": "InputLayer", "config": { "batch_shape": [null, width], "name": "x" } });
    json!({ "class_name": "Sequential", "config": { "name": "s", "layers": [input, layer] } }).to_string()
}

fn dense(units: u64) -> Json {
    json!({ "class_name": "Dense", "config": { "name": "dense", "units": units } })
}

/// A file with other layers than its weights have.
#[test]
fn sizes_are_compared_before_memory_is_taken() -> Result<()> {
    let folder = Folder::new("hostile");
    let (good, path) = (folder.0.join("good.keras"), folder.0.join("bad.keras"));
    Sequential::new().input([1000]).add(Dense::new(1)).build()?.save(&good)?;
    let bytes = std::fs::read(&good).unwrap();
    let members = zip::members(&bytes, &Limits::default())?;
    let parts: Vec<(&str, Vec<u8>)> = members.iter().map(|member| (member.name, member.unpack().unwrap())).collect();
    let lstm = json!({ "class_name": "LSTM", "config": { "name": "lstm", "units": 400_000_000u64 } });
    let cells = json!({ "class_name": "Embedding", "config": {
        "name": "e", "input_dim": 2_000_000_000u64, "output_dim": 1000,
        "embeddings_initializer": { "class_name": "Orthogonal", "config": {} } } });
    let cases = [
        // 4 TB of weights.
        (config_of(dense(1_000_000_000), 1000), "expected [1000, 1000000000]"),
        (config_of(dense(2_000_000_000), 2_000_000_000), "does not fit into the address space"),
        (config_of(dense(1_000_000_000_000), 2), "a number of at most 2147483647, found 1000000000000"),
        (
            config_of(cells, 1).replace("\"name\":\"x\"", "\"name\":\"x\",\"dtype\":\"int64\""),
            "there is no child `embedding`",
        ),
        (config_of(lstm, 3).replace("[null,3]", "[null,2,3]"), "lstm"),
    ];
    for (config, expected) in cases {
        let parts: Vec<(&str, &[u8])> = parts
            .iter()
            .map(|(name, bytes)| (*name, if *name == "config.json" { config.as_bytes() } else { &bytes[..] }))
            .collect();
        std::fs::write(&path, zip::write(&parts)?).unwrap();
        words(load_model(&path, &objects()).map(drop), &["bad.keras", expected]);
    }
    Ok(())
}

/// There are no values before somebody asks for them, and no abort when there is no memory.
#[test]
fn a_text_alone_takes_no_memory() -> Result<()> {
    let model = model_from_json(&config_of(dense(1 << 28), 1 << 30), &objects())?;
    assert_eq!(model.count_params(), (1 << 58) + (1 << 28));
    words(model.get_weights().map(drop), &["not enough memory"]);
    words(model.get_weights().map(drop), &["not enough memory"]);
    let mut model = model_from_json(&config_of(dense(1 << 28), 1 << 30), &objects())?;
    words(model.predict(Array::zeros(DType::F32, [1, 1])?).map(drop), &["in predict of model `s`"]);
    Ok(())
}

/// Weights of ids that no term has.
#[test]
fn weights_of_ids_are_counted() {
    for (key, n) in [("max_tokens", 2_000_000_000u64), ("num_oov_indices", 1 << 30)] {
        let mut lookup = json!({ "class_name": "StringLookup", "config": {
            "name": "l", "vocabulary": ["a"], "idf_weights": [1.0], "output_mode": "tf_idf" } });
        lookup["config"][key] = n.into();
        lookup["config"]["pad_to_max_tokens"] = (key == "max_tokens").into();
        let text = config_of(lookup, 1).replace("\"name\":\"x\"", "\"name\":\"x\",\"dtype\":\"string\"");
        words(model_from_json(&text, &objects()).map(drop), &["ids, each with a weight", "lower max_tokens"]);
    }
}

/// Each model calls the one inside of it ten times: thirty of them are 10^30 calls.
#[test]
fn models_inside_of_models_are_counted() {
    let mut inner = json!({ "class_name": "Dense", "name": "d0", "config": { "name": "d0", "units": 1 } });
    let call = |from: &str, at: usize| json!([[from, at, 0, {}]]);
    for depth in 0..12 {
        let name = inner["name"].as_str().unwrap_or_default().to_string();
        // TF: calls of models count from 1 in the form of Keras 2.
        let first = usize::from(depth > 0);
        inner["inbound_nodes"] =
            (0..10).map(|i| if i == 0 { call("x", 0) } else { call(&name, i - 1 + first) }).collect::<Vec<_>>().into();
        let input = json!({ "class_name": "InputLayer", "name": "x", "inbound_nodes": [],
                            "config": { "batch_input_shape": [null, 1], "name": "x" } });
        let this = format!("m{depth}");
        inner = json!({ "class_name": "Functional", "name": this, "config": {
            "name": this, "layers": [input, inner],
            "input_layers": [["x", 0, 0]], "output_layers": [[name, 9 + first, 0]] } });
    }
    words(model_from_json(&inner.to_string(), &objects()).map(drop), &["calls of layers", "100000"]);
}

/// Every reader of files takes the limits that its error names.
#[test]
fn limits_are_those_that_were_given() -> Result<()> {
    let folder = Folder::new("limits");
    let mut model = Sequential::new().input([1]).add(Dense::new(2).name("hidden")).build()?;
    let (limits, text) = (Limits { entries: 1, ..Limits::default() }, "the limit is 1 (`entries`)");
    for name in ["m.keras", "m.h5"] {
        let path = folder.0.join(name);
        model.save(&path)?;
        let load = |limits| load_model_with(&path, &objects(), LoadModel::new().limits(limits)).map(drop);
        load(Limits::default())?;
        words(load(limits), &[text, "Limits { entries: ..", name]);
        words(model.load_weights_within(&path, &limits), &[text, name]);
        let start = |limits| -> Result<()> {
            let mut model = Sequential::new().input([1]).add(Dense::new(2).name("hidden")).build()?;
            model.compile(Compile::new("sgd", "mse"))?;
            let settings = WarmStartSettings::new(&path).limits(limits);
            let estimator = model_to_estimator(model)?.warm_start_from(settings).build()?;
            let data = Dataset::from_arrays([("x", Array::from_vec([1, 1], vec![1f32])?)]).batch(1);
            estimator.predict(&data).try_for_each(|row| row.map(drop))
        };
        start(Limits::default())?;
        words(start(limits), &[text, name]);
    }
    let legacy = folder.0.join("m.h5");
    words(model.load_weights_by_name(&legacy, ByName::new().limits(limits)).map(drop), &[text, "m.h5"]);
    let checkpoint = folder.0.join("m");
    model.save_weights(&checkpoint)?;
    words(model.load_weights_within(&checkpoint, &limits), &[text]);
    let limits = Limits { text_bytes: 10, ..Limits::default() };
    let options = LoadModel::new().limits(limits);
    let loaded = load_model_with(folder.0.join("m.keras"), &objects(), options).map(drop);
    words(loaded, &["the limit is 10 (`text_bytes`)", "m.keras"]);
    Ok(())
}

/// Each name of a list leads to another list: 60,000 times 60,000 names are a file of 122 KB.
#[test]
fn names_of_weights_are_counted() -> Result<()> {
    let folder = Folder::new("names");
    let path = folder.0.join("m.h5");
    let load = |layers: &[String], weights: &[String]| -> Result<()> {
        let list = |names: &[String]| Array::from_strings([names.len()], names.iter().map(String::as_str));
        let mut writer = Writer::new();
        writer.fixed_attribute("/", "layer_names", &list(layers)?)?;
        for layer in layers {
            writer.group(layer)?;
            writer.fixed_attribute(layer, "weight_names", &list(weights)?)?;
        }
        std::fs::write(&path, writer.to_bytes()?).unwrap();
        Sequential::new().input([1]).add(Dense::new(2)).build()?.load_weights(&path)
    };
    let text = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    words(load(&text(&["a", "a"]), &text(&["w"])), &["m.h5", "`layer_names` of / has `a` twice"]);
    words(load(&text(&["a"]), &text(&["w", "v", "w"])), &["m.h5", "`weight_names` of /a has `w` twice"]);
    // 150 times 15,000 names of 64 bytes and their texts are 144 MB and more; the limit is 134 MB.
    let many = |n: usize| (0..n).map(|i| format!("{i:x}")).collect::<Vec<_>>();
    words(load(&many(150), &many(15_000)), &["m.h5", "the names of the weights need more than 134217728 bytes"]);
    Ok(())
}

/// A list of 2^23 empty lists is 25 MB of text, which is a packed file of 25 KB.
#[test]
fn values_of_a_text_are_counted() {
    let text = format!("[{}[]]", "[],".repeat(1 << 23));
    words(model_from_json(&text, &objects()).map(drop), &["the document has more than 8388608 values"]);
}
