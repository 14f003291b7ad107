//! Damaged files: states of optimizers, arguments of `compile`, bytes.

use std::path::Path;

use estimand::data::zip;
use estimand::keras::{Compile, LoadModel, load_model, load_model_with};
use estimand::nn::config::Json;
use estimand::prelude::*;
use estimand::tensor::Limits;
use estimand_hdf5::{Node, Writer};

use crate::{Folder, fixture, objects, rows, small, weights_of, words};

/// Writes a file again with changed members.
fn changed(path: &Path, to: &Path, change: impl Fn(&str, Vec<u8>) -> Vec<u8>) {
    let bytes = std::fs::read(path).unwrap();
    let members = zip::members(&bytes, &Limits::default()).unwrap();
    let parts: Vec<(&str, Vec<u8>)> =
        members.iter().map(|member| (member.name, change(member.name, member.unpack().unwrap()))).collect();
    let parts: Vec<(&str, &[u8])> = parts.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    std::fs::write(to, zip::write(&parts).unwrap()).unwrap();
}

/// Writes the weights of a file again. A function changes the datasets; what it leaves out is not
/// written.
fn with_datasets(path: &Path, to: &Path, change: impl Fn(&str, Array) -> Vec<(String, Array)>) {
    let file = weights_of(path);
    let (mut writer, mut groups) = (Writer::new(), vec![String::new()]);
    while let Some(group) = groups.pop() {
        for name in file.root().group(&group).unwrap().names() {
            let path = format!("{group}/{name}").trim_start_matches('/').to_string();
            match file.root().get(&path).unwrap() {
                Node::Group(_) => groups.push(path),
                Node::Dataset(dataset) => {
                    for (path, array) in change(&path, dataset.read().unwrap()) {
                        writer.dataset(&path, &array).unwrap();
                    }
                }
            }
        }
    }
    let bytes = writer.to_bytes().unwrap();
    changed(path, to, |name, old| if name == "model.weights.h5" { bytes.clone() } else { old });
}

#[test]
fn damaged_states_are_refused() -> Result<()> {
    let folder = Folder::new("states");
    let (path, other) = (folder.0.join("good.keras"), folder.0.join("bad.keras"));
    let (x, y) = rows(4);
    let mut model = small()?;
    model.compile(Compile::new("adam", "mse"))?;
    model.train_on_batch((&x, &y))?;
    model.save(&path)?;
    type Change = Box<dyn Fn(&str, Array) -> Vec<(String, Array)>>;
    let replaced = |at: &'static str, value: Array| -> Change {
        let at = format!("optimizer/vars/{at}");
        Box::new(move |path, old| vec![(path.to_string(), if path == at { value.clone() } else { old })])
    };
    let left_out = |at: &'static str| -> Change {
        Box::new(move |path, old| match path.starts_with(at) {
            true => Vec::new(),
            false => vec![(path.to_string(), old)],
        })
    };
    let moved: Change = Box::new(|path, old| {
        let to = if path == "optimizer/vars/3" { "optimizer/vars/x" } else { path };
        vec![(to.to_string(), old)]
    });
    let twice: Change = Box::new(|path, old| match path {
        "optimizer/vars/9" => vec![(path.to_string(), old.clone()), ("optimizer/vars/10".to_string(), old)],
        _ => vec![(path.to_string(), old)],
    });
    let vector = |n: usize| Array::from_vec([n], vec![1f32; n]).unwrap();
    let cases: Vec<(Change, &[&str])> = vec![
        (replaced("2", vector(3)), &["its shape is [3]; expected [2, 2]", "vars/2, `m` of the weight `dense/kernel`"]),
        (replaced("5", vector(7)), &["its shape is [7]; expected [2]", "`v` of the weight `dense/bias`"]),
        (replaced("1", vector(1)), &["its shape is [1]; expected []", "the learning rate"]),
        (replaced("1", Array::scalar(f32::NAN)), &["the learning rate"]),
        (replaced("1", Array::scalar(-1f32)), &["the learning rate"]),
        (replaced("0", vector(2)), &["its shape is [2]; expected []", "in the number of updates"]),
        (replaced("0", Array::scalar(-4i32)), &["the number of updates is -4; expected at least 0"]),
        (replaced("4", Array::from_strings([2], ["a", "b"])?), &["`m` of the weight `dense/bias`"]),
        (left_out("optimizer/vars/9"), &["the file has 9 variables of the optimizer Adam; expected 10 for 4 trained"]),
        (left_out("optimizer/vars/0"), &["optimizer/vars"]),
        (left_out("optimizer"), &["the file has no state of its optimizer"]),
        (moved, &["optimizer/vars/3"]),
        (twice, &["the file has 11 variables of the optimizer Adam; expected 10"]),
    ];
    for (change, expected) in cases {
        with_datasets(&path, &other, change);
        let expected: Vec<&str> = expected.iter().copied().chain(["bad.keras", "compile(false)"]).collect();
        words(load_model(&other, &objects()).map(drop), &expected);
        words(load_model_with(&other, &objects(), LoadModel::new().compile(true)).map(drop), &expected);
        let mut loaded = load_model_with(&other, &objects(), LoadModel::new().compile(false))?;
        assert_eq!(loaded.predict(x.clone())?, model.predict(x.clone())?);
    }
    // An optimizer that has made no update has no slots, as Keras writes it.
    with_datasets(&path, &other, |path, old| {
        let is_slot = path.strip_prefix("optimizer/vars/").is_some_and(|i| !["0", "1"].contains(&i));
        if is_slot { Vec::new() } else { vec![(path.to_string(), old)] }
    });
    assert_eq!(load_model(&other, &objects())?.n_steps(), 1);
    Ok(())
}

/// Arguments of `compile` that are none: the model is loaded, and not compiled.
#[test]
fn damaged_arguments_are_named() -> Result<()> {
    let folder = Folder::new("arguments");
    let (path, other) = (folder.0.join("good.keras"), folder.0.join("bad.keras"));
    let mut model = small()?;
    model.compile(Compile::new("adam", "mse").metric("mae"))?;
    model.save(&path)?;
    let cases: [(&str, &str, &[&str]); 16] = [
        ("loss", "null", &["$.loss"]),
        ("loss", "3", &["$.loss", "found 3"]),
        ("loss", r#""msee""#, &["there is no loss `msee`"]),
        ("loss", r#"["mse", "mae"]"#, &["2 entries; the model has 1 outputs", "$.loss"]),
        ("loss", r#"[null]"#, &["output `dense_1` has no loss"]),
        ("loss", r#"{"left": "mse"}"#, &["`left` is no output of the model", "dense_1"]),
        ("loss", r#"{"class_name": "Lost", "config": {}}"#, &["there is no loss `Lost`"]),
        ("loss_weights", r#"["a"]"#, &["$.loss_weights[0]"]),
        ("metrics", "3", &["$.metrics"]),
        ("metrics", r#"["maee"]"#, &["there is no metric `maee`", "$.metrics[0]"]),
        ("metrics", r#"[{"class_name": "MeanMetricWrapper", "config": {"fn": "mine"}}]"#, &["the mean of `mine`"]),
        ("weighted_metrics", r#"{"x": "mae"}"#, &["`x` is no output"]),
        ("optimizer", "null", &["$.optimizer"]),
        ("optimizer", r#""adm""#, &["did you mean `adam`?"]),
        ("optimizer", r#"{"class_name": "LossScaleOptimizer", "config": {}}"#, &["LossScaleOptimizer", "$.optimizer"]),
        ("optimizer", r#"{"class_name": "Adam", "config": {"beta_1": "x"}}"#, &["beta_1", "$.optimizer"]),
    ];
    for (key, value, expected) in cases {
        changed(&path, &other, |name, old| match name {
            "config.json" => {
                let mut config: Json = serde_json::from_slice(&old).unwrap();
                config["compile_config"][key] = serde_json::from_str(value).unwrap();
                config.to_string().into_bytes()
            }
            _ => old,
        });
        words(load_model_with(&other, &objects(), LoadModel::new().compile(true)).map(drop), expected);
        let mut loaded = load_model(&other, &objects())?;
        let (x, y) = rows(2);
        words(loaded.train_on_batch((&x, &y)).map(drop), expected);
    }
    let many = vec!["mae"; 20_000];
    changed(&path, &other, |name, old| match name {
        "config.json" => {
            let mut config: Json = serde_json::from_slice(&old).unwrap();
            config["compile_config"]["metrics"] = many.clone().into();
            config.to_string().into_bytes()
        }
        _ => old,
    });
    let must = load_model_with(&other, &objects(), LoadModel::new().compile(true));
    words(must.map(drop), &["20000 metrics of 1 outputs", "$.metrics"]);
    // The version of Keras is needed to understand them.
    changed(&path, &other, |name, old| if name == "metadata.json" { b"{".to_vec() } else { old });
    words(load_model(&other, &objects()).map(drop), &["not JSON", "bad.keras"]);
    load_model_with(&other, &objects(), LoadModel::new().compile(false))?;
    for value in ["null", "{}", "[]", "7"] {
        changed(&path, &other, |name, old| match name {
            "config.json" => {
                let mut config: Json = serde_json::from_slice(&old).unwrap();
                config["compile_config"] = serde_json::from_str(value).unwrap();
                config.to_string().into_bytes()
            }
            _ => old,
        });
        load_model(&other, &objects())?;
        let must = load_model_with(&other, &objects(), LoadModel::new().compile(true));
        words(must.map(drop), &["does not say how its model was compiled", "compile(false)"]);
    }
    Ok(())
}

/// Bytes of a legacy file changed in turn: an error or a model, never a panic.
#[test]
fn damaged_legacy_files_are_read_or_refused() {
    let folder = Folder::new("damage");
    let path = folder.0.join("model.h5");
    let good = std::fs::read(fixture("compiled_adam_keras2.h5")).unwrap();
    let mut n_errors = 0;
    for (i, step) in (0..good.len()).step_by(41).zip([1u8, 0x80, 0xff].into_iter().cycle()) {
        let mut damaged = good.clone();
        damaged[i] = damaged[i].wrapping_add(step);
        std::fs::write(&path, &damaged).unwrap();
        n_errors += usize::from(load_model(&path, &objects()).is_err());
    }
    assert!(n_errors > 50, "{n_errors}");
}

/// A legacy file whose optimizer has other variables: the model is loaded and not compiled.
#[test]
fn states_of_legacy_files_may_not_fit() -> Result<()> {
    let folder = Folder::new("legacy");
    let path = folder.0.join("model.h5");
    let good = std::fs::read(fixture("compiled_adam_keras2.h5")).unwrap();
    // An optimizer that has one slot more.
    let place = |text: &[u8]| good.windows(text.len()).position(|bytes| bytes == text).unwrap();
    let mut other = good.clone();
    let at = place(b"\"amsgrad\": false");
    other[at..at + 16].copy_from_slice(b"\"amsgrad\": true ");
    std::fs::write(&path, &other).unwrap();
    let expected = ["the file has 13 variables of the optimizer Adam; expected 19 for 6 trained weights"];
    words(load_model_with(&path, &objects(), LoadModel::new().compile(true)).map(drop), &expected);
    let (x, y) = rows(2);
    words(load_model(&path, &objects())?.train_on_batch((&x, &y)).map(drop), &expected);
    Ok(())
}
