//! Layers that `adapt` of Keras has taught: their terms, weights of terms and boundaries are read
//! from `.keras` files, and ours are read back. The expected results are those of Keras
//! (oracles/gen/keras_learned.py).

use std::path::Path;

use estimand::data::zip;
use estimand::keras::{Compile, KerasVersion, load_model, model_from_json, model_to_estimator};
use estimand::prelude::*;
use estimand::tensor::Limits;
use estimand_fixture::{Case, cases};

use crate::{Folder, array, file, objects, words};

fn input(case: &Case) -> Result<Array> {
    let found = case.array("in:0");
    match found.dtype.as_str() {
        "string" => Array::from_strings(&found.dims[..], found.strings()),
        "i64" => Array::from_bytes(DType::I64, &found.dims[..], &found.to_ne_bytes()),
        _ => Array::from_bytes(DType::F32, &found.dims[..], &found.to_ne_bytes()),
    }
}

fn check(path: &Path, case: &Case) -> Result<()> {
    let model = load_model(path, &objects())?;
    let place = || format!("{} of case {}", path.display(), case.name());
    let mut model = model;
    let found = model.predict_all(input(case)?)?;
    for (i, found) in found.iter().enumerate() {
        let expected = case.array(&format!("out:{i}"));
        assert_eq!(found.dims(), expected.dims, "{}", place());
        let expected = Array::from_bytes(DType::F32, &expected.dims[..], &expected.to_ne_bytes())?.to_f64_vec()?;
        for (a, b) in found.to_f64_vec()?.into_iter().zip(expected) {
            assert!((a - b).abs() <= 2e-6 * b.abs().max(1.0), "{}: {a} and {b}", place());
        }
    }
    assert!(!case.has(&format!("out:{}", found.len())), "{}", place());
    Ok(())
}

#[test]
fn adapted_layers_are_read_and_ours_are_read_back() -> Result<()> {
    let folder = Folder::new("learned");
    let mut n = 0;
    for case in cases("keras_learned_keras2").iter().chain(&cases("keras_learned_keras3")) {
        check(&file(case), case)?;
        for version in [KerasVersion::Keras2, KerasVersion::Keras3] {
            let path = folder.0.join("again.keras");
            load_model(file(case), &objects())?.save_for(&path, version)?;
            check(&path, case)?;
        }
        n += 1;
    }
    assert_eq!(n, 26);
    Ok(())
}

/// A file of Keras with another text in the member of a vocabulary.
fn with_terms(name: &str, to: &Path, text: Option<&str>) {
    let cases = cases("keras_learned_keras3");
    let case = cases.iter().find(|case| case.name() == name).unwrap();
    let bytes = std::fs::read(file(case)).unwrap();
    let members = zip::members(&bytes, &Limits::default()).unwrap();
    let mut parts = Vec::new();
    for member in &members {
        match (member.name.starts_with("assets/"), text) {
            (true, None) => {}
            (true, Some(text)) => parts.push((member.name, text.as_bytes().to_vec())),
            (false, _) => parts.push((member.name, member.unpack().unwrap())),
        }
    }
    let parts: Vec<(&str, &[u8])> = parts.iter().map(|(name, bytes)| (*name, &bytes[..])).collect();
    std::fs::write(to, zip::write(&parts).unwrap()).unwrap();
}

#[test]
fn damaged_vocabularies_are_refused() -> Result<()> {
    let folder = Folder::new("vocabularies");
    let path = folder.0.join("damaged.keras");
    let member = "assets/layers/string_lookup/vocabulary.txt";
    let refused = |name: &str, text: Option<&str>, expected: &[&str]| {
        with_terms(name, &path, text);
        words(load_model(&path, &objects()).map(drop), expected);
    };
    refused("string", None, &["the vocabulary is not set"]);
    refused("string", Some("[UNK]\nred\nblue"), &["there are 3 terms", "says 6", member, "layer `string_lookup"]);
    refused("string", Some("[UNK]\nred\nblue\nred\na\nb"), &["the term `red` occurs twice", "in line 4", member]);
    refused("integer", Some("-1\n5\nseven\n8\n9\n"), &["`seven` is no integer", "in line 3"]);
    // Lines as Windows ends them, and an empty line at the end.
    with_terms("integer", &path, Some("-1\r\n5\r\n7\r\n900\r\n0\r\n-3\r\n"));
    let cases = cases("keras_learned_keras3");
    let case = cases.iter().find(|case| case.name() == "integer").unwrap();
    assert_eq!(load_model(&path, &objects())?.predict(input(case)?)?.as_slice::<i64>()?[..3], [1, 0, 5]);
    Ok(())
}

/// Keras 3 counts the rows of a `Normalization` in i32; here the count is i64, as in tf.keras.
#[test]
fn estimators_start_with_learned_numbers() -> Result<()> {
    let case = &cases("keras_weights_keras3").into_iter().find(|case| case.name() == "adapted").unwrap();
    let json = case.setting::<String>("json");
    let mut known = load_model(file(case), &objects())?;
    let mut model = model_from_json(&json, &objects())?;
    assert_ne!(known.get_weights()?, model.get_weights()?);
    assert!(known.get_weights()?.iter().any(|weight| weight.dtype() == DType::I64));
    model.compile(Compile::new("sgd", "mse"))?;
    let names: Vec<String> = model.weight_names().map(str::to_string).collect();
    let x = array(case, "in:0");
    let expected = known.predict(x.clone())?;
    let output = model.output_names()[0].clone();
    let settings = WarmStartSettings::new(file(case)).named_vars(names);
    let estimator = model_to_estimator(model)?.warm_start_from(settings).build()?;
    let data = Dataset::from_arrays([("x", x)]).batch(2);
    let mut found = Vec::new();
    for row in estimator.predict(&data) {
        found.extend_from_slice(row?.array(&output)?.as_slice::<f32>()?);
    }
    assert_eq!(found, expected.as_slice::<f32>()?);
    Ok(())
}
