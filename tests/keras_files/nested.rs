//! Legacy files of models with models inside, which Keras 2 and Keras 3 have written: Keras lists
//! their weights by the flags of their layers, and calls them by other names than we do.

use estimand::keras::{
    ByName, Compile, KerasVersion, Model, Sequential, load_model, model_from_json, model_to_estimator,
};
use estimand::prelude::*;
use estimand_fixture::{Case, cases};
use estimand_hdf5::Writer;

use super::{Folder, check, file, objects, start, words};

fn all() -> Vec<Case> {
    let all: Vec<Case> = ["keras_nested_keras2", "keras_nested_keras3_15"].into_iter().flat_map(cases).collect();
    assert_eq!(all.len(), 21);
    all
}

fn is_model(case: &Case) -> bool {
    case.setting::<String>("holds") == "model"
}

/// The model without the weights of the file, with layers of other names.
fn renamed(case: &Case, names: &[(&str, &str)]) -> Result<Model> {
    let quoted = |name: &str| format!("\"{name}\"");
    let json = names.iter().fold(case.setting::<String>("json"), |json, (a, b)| json.replace(&quoted(a), &quoted(b)));
    model_from_json(&json, &objects())
}

#[test]
fn weights_are_where_keras_had_them() -> Result<()> {
    let folder = Folder::new("nested");
    for case in &all() {
        let new = || renamed(case, &[]);
        let mut read = new()?;
        read.load_weights(file(case))?;
        check(&mut read, case)?;
        let mut by_name = new()?;
        by_name.load_weights_by_name(file(case), ByName::new())?;
        check(&mut by_name, case)?;
        // Names tell where weights belong, whatever is frozen here.
        for trainable in [true, false] {
            let mut other = new()?;
            other.set_trainable(trainable)?;
            other.load_weights(file(case))?;
            check(&mut other, case)?;
        }
        if is_model(case) {
            check(&mut load_model(file(case), &objects())?, case)?;
        }
        for version in [KerasVersion::Keras2, KerasVersion::Keras3] {
            let path = folder.0.join("again.h5");
            read.save_for(&path, version)?;
            check(&mut load_model(&path, &objects())?, case)?;
        }
    }
    Ok(())
}

/// Keras goes by order alone. It is the same in a model with the same flags.
#[test]
fn weights_of_layers_with_other_names_are_in_keras_order() -> Result<()> {
    for case in all().iter().filter(|case| case.name() == "swapped") {
        let mut model = renamed(case, &[("one", "first"), ("two", "second")])?;
        model.load_weights(file(case))?;
        check(&mut model, case)?;
    }
    for case in all().iter().filter(|case| case.name() == "deep") {
        let names = [("p", "other_p"), ("b", "other_b"), ("c", "other_c"), ("base", "other_base")];
        let mut model = renamed(case, &names)?;
        model.load_weights(file(case))?;
        check(&mut model, case)?;
        let before = model.get_weights()?;
        model.set_trainable(true)?;
        let (file_name, text) = (file(case), "in another order than the model");
        words(
            model.load_weights(&file_name),
            &[text, "for layer `middle`", "the names that they have in the file", "p/gamma"],
        );
        assert_eq!(model.get_weights()?, before, "nothing changes");
    }
    Ok(())
}

/// A model that has the variables of the file by names that are those of the model.
#[test]
fn estimators_start_with_them_by_name() -> Result<()> {
    for case in all().iter().filter(|case| is_model(case)) {
        let mut model = renamed(case, &[])?;
        model.compile(Compile::new("sgd", "mse"))?;
        let names: Vec<String> = model.weight_names().map(str::to_string).collect();
        let settings = WarmStartSettings::new(file(case)).named_vars(names);
        let found = start(model, &settings, case)?;
        let expected = super::array(case, "out:0");
        for (a, b) in found.iter().zip(expected.as_slice::<f32>()?) {
            assert!((a - b).abs() <= 2e-6 * b.abs().max(1.0), "{}: {a} and {b}", file(case).display());
        }
    }
    Ok(())
}

/// Keras 3 calls the weights of a layer `b` of a `Sequential` `small/b/kernel`, in the group `b`. A
/// file without a configuration has no other name of the model.
#[test]
fn names_of_weights_alone_begin_with_the_layer() -> Result<()> {
    let folder = Folder::new("named");
    let mut writer = Writer::new();
    writer.group("b")?;
    writer.attribute("/", "layer_names", &Array::from_strings([1], ["b"])?)?;
    writer.attribute("b", "weight_names", &Array::from_strings([2], ["small/b/kernel", "small/b/bias"])?)?;
    writer.dataset("b/small/b/kernel", &Array::from_vec([1, 2], vec![3f32, 4.0])?)?;
    writer.dataset("b/small/b/bias", &Array::from([0f32, 1.0]))?;
    let path = folder.0.join("small.h5");
    std::fs::write(&path, writer.to_bytes()?).unwrap();
    let mut model = Sequential::new().input([1]).add(Dense::new(2).name("b")).build()?;
    model.compile(Compile::new("sgd", "mse"))?;
    let estimator = model_to_estimator(model)?.warm_start_from(WarmStartSettings::new(&path)).build()?;
    for row in estimator.predict(Dataset::from_arrays([("x", Array::from_vec([1, 1], vec![10f32])?)]).batch(1)) {
        assert_eq!(row?.array("b")?.as_slice::<f32>()?, [30.0, 41.0]);
    }
    Ok(())
}

/// In a file of weights alone, the weights of two models inside may have the same short name. Then
/// neither has it: the name does not tell which one is meant.
#[test]
fn short_names_that_two_weights_have_are_not_known() -> Result<()> {
    let folder = Folder::new("short");
    let mut writer = Writer::new();
    writer.attribute("/", "layer_names", &Array::from_strings([2], ["one", "two"])?)?;
    for (layer, number) in [("one", 1f32), ("two", 2.0)] {
        writer.group(layer)?;
        let names = Array::from_strings([2], ["conv/kernel:0".to_string(), format!("{layer}_only/kernel:0")])?;
        writer.attribute(layer, "weight_names", &names)?;
        for name in names.strings()? {
            let path = format!("{layer}/{}", std::str::from_utf8(name).unwrap());
            writer.dataset(&path, &Array::from_vec([1, 1], vec![number])?)?;
        }
    }
    let path = folder.0.join("towers.h5");
    std::fs::write(&path, writer.to_bytes()?).unwrap();
    let start = |from: &str| -> Result<f32> {
        let mut model = Sequential::new().input([1]).add(Dense::new(1).use_bias(false).name("d")).build()?;
        model.compile(Compile::new("sgd", "mse"))?;
        let kernel = model.weight_names().next().unwrap().to_string();
        let settings = WarmStartSettings::new(&path).named_vars([&kernel]).prev_var_name(&kernel, from);
        let estimator = model_to_estimator(model)?.warm_start_from(settings).build()?;
        let data = Dataset::from_arrays([("x", Array::from_vec([1, 1], vec![10f32])?)]).batch(1);
        let row = estimator.predict(&data).next().unwrap()?;
        Ok(row.array("d")?.as_slice::<f32>()?[0])
    };
    assert_eq!(start("two/conv/kernel")?, 20.0);
    assert_eq!(start("one_only/kernel")?, 10.0);
    words(start("conv/kernel").map(drop), &["towers.h5", "`conv/kernel`", "one/conv/kernel"]);
    Ok(())
}
