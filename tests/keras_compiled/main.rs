//! Compiled models in the files of Keras: a model that Keras has trained and saved goes on here as
//! it does there, and what we save goes on, too. `oracles/live/keras_files.py` lets Keras go on
//! with ours.

mod damage;
mod folder;
mod unknown;

use std::path::{Path, PathBuf};

use estimand::data::zip;
use estimand::keras::{
    BackupAndRestore, Compile, Fit, Input, KerasVersion, LoadModel, Model, SaveModel, Sequential, TrainStep, Trained,
    load_model, load_model_with,
};
use estimand::nn::config::CustomObjects;
use estimand::prelude::*;
use estimand::tensor::Limits;
use estimand_fixture::{Case, cases};
use estimand_hdf5::File;
use folder::Folder;

const VERSIONS: [KerasVersion; 2] = [KerasVersion::Keras2, KerasVersion::Keras3];

fn objects() -> CustomObjects {
    CustomObjects::new()
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/fixtures/keras_files").join(name)
}

fn file(case: &Case) -> PathBuf {
    fixture(&case.setting::<String>("file"))
}

fn all() -> Vec<Case> {
    ["keras_compiled_keras2", "keras_compiled_keras3", "keras_compiled_keras3_15"].into_iter().flat_map(cases).collect()
}

fn array(case: &Case, key: &str) -> Array {
    let found = case.array(key);
    let dtype = if key.ends_with(":1") && key.starts_with('y') { DType::I64 } else { DType::F32 };
    Array::from_bytes(dtype, &found.dims[..], &found.to_ne_bytes()).unwrap()
}

fn words(result: Result<()>, expected: &[&str]) {
    let error = result.unwrap_err().to_string();
    assert!(expected.iter().all(|word| error.contains(word)), "expected {expected:?}: {error}");
}

fn close(found: f64, expected: f64, place: &str) {
    assert!((found - expected).abs() <= 1e-5 * expected.abs().max(1.0), "{place}: {found}, expected {expected}");
}

/// Trains on one batch of a case and compares what is logged.
fn step(model: &mut Model, case: &Case, i: usize, place: &str) -> Result<()> {
    let x = array(case, &format!("x:{i}"));
    let y: Vec<Array> = (0..model.output_names().len()).map(|j| array(case, &format!("y:{i}:{j}"))).collect();
    let logs = match case.setting("is_weighted") {
        true => model.train_on_batch(([x], y, &array(case, &format!("w:{i}"))))?,
        false => model.train_on_batch(([x], y))?,
    };
    let names: Vec<String> = case.setting(&format!("names:{i}"));
    // Keras 2 puts the name of the output before that of a metric each time it opens a file.
    let names: Vec<String> = names.iter().map(|name| name.replace("right_right_", "right_")).collect();
    let expected = array(case, &format!("logs:{i}"));
    let mut keys: Vec<&str> = logs.keys().map(String::as_str).collect();
    let mut wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    keys.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(keys, wanted, "{place}");
    for (name, value) in names.iter().zip(expected.as_slice::<f32>()?) {
        // Keras 3.6 shows the losses of several outputs times their weights, 3.15 does not.
        let is_weighted = place.contains("keras3") && !place.contains("keras3_15");
        let weight = match (name.as_str(), is_weighted) {
            ("left_loss", true) => 0.5,
            ("right_loss", true) => 2.0,
            _ => 1.0,
        };
        close(logs[name.as_str()] * weight, f64::from(*value), &format!("{place}, batch {i}, {name}"));
    }
    Ok(())
}

/// Compares the weights with those of Keras at the end.
fn end(model: &Model, case: &Case, place: &str) -> Result<()> {
    for (i, (name, found)) in model.weight_names().zip(model.get_weights()?).enumerate() {
        let expected = array(case, &format!("after:{i}"));
        assert_eq!(found.dims(), expected.dims());
        for (a, b) in found.as_slice::<f32>()?.iter().zip(expected.as_slice::<f32>()?) {
            close(f64::from(*a), f64::from(*b), &format!("{place}, {name}"));
        }
    }
    Ok(())
}

const N_BATCHES: usize = 3;

#[test]
fn training_goes_on_as_in_keras() -> Result<()> {
    let folder = Folder::new("on");
    let (mut n, mut n_written) = (0, 0);
    for case in all().iter().filter(|case| case.setting("goes_on")) {
        let place = case.setting::<String>("file");
        let mut model = load_model_with(file(case), &objects(), LoadModel::new().compile(true))?;
        close(model.learning_rate()?, case.setting("rate"), &place);
        // Before the first step, and after it, the model can be written and goes on.
        for i in 0..N_BATCHES {
            for version in VERSIONS.into_iter().filter(|_| i < 2) {
                let path = folder.0.join("again.keras");
                let is_legacy = case.name().starts_with("legacy");
                let saved = model.save_with(&path, SaveModel::new().version(version).include_optimizer(true));
                if is_legacy && version == KerasVersion::Keras3 {
                    words(saved, &["Keras 3 has no legacy optimizer", "Optimizer::keras("]);
                    continue;
                }
                saved?;
                let legacy = folder.0.join("again.h5");
                let mut paths = vec![path];
                if version == KerasVersion::Keras2 {
                    model.save_with(&legacy, SaveModel::new().version(version).include_optimizer(true))?;
                    paths.push(legacy);
                }
                for path in &paths {
                    let mut again = load_model_with(path, &objects(), LoadModel::new().compile(true))?;
                    assert_eq!(again.n_steps(), model.n_steps());
                    let place = format!("{place}, {version:?}, {}", path.display());
                    for i in i..N_BATCHES {
                        step(&mut again, case, i, &place)?;
                    }
                    end(&again, case, &place)?;
                    n_written += 1;
                }
            }
            step(&mut model, case, i, &place)?;
        }
        end(&model, case, &place)?;
        n += 1;
    }
    assert_eq!((n, n_written), (81, 472));
    Ok(())
}

fn small() -> Result<Model> {
    Sequential::new().input(Input::new([2]).name("x")).add(Dense::new(2).tanh()).add(Dense::new(1)).build()
}

fn rows(n: usize) -> (Array, Array) {
    let x = Array::from_vec([n, 2], (0..2 * n).map(|i| (i % 7) as f32 / 7.0).collect()).unwrap();
    (x, Array::from_vec([n, 1], (0..n).map(|i| (i % 3) as f32).collect()).unwrap())
}

/// `fit` in two parts, with a file between them, ends with the same bits as one `fit`.
#[test]
fn a_file_between_two_fits_changes_nothing() -> Result<()> {
    let folder = Folder::new("fits");
    let (x, y) = rows(10);
    let fit = |from: usize, to: usize| Fit::new((&x, &y)).batch_size(4).initial_epoch(from).epochs(to).verbose(0);
    let rate = Schedule::Polynomial { initial: 0.1, decay_steps: 20, end: 0.01, power: 2.0, cycle: false };
    let compile = || Compile::new(Optimizer::keras(Adam::default().amsgrad(true), rate.clone()), "mse").metric("mae");
    for version in VERSIONS {
        let mut whole = small()?;
        whole.compile(compile())?;
        let history = whole.fit(fit(0, 4))?;
        let mut first = small()?;
        first.compile(compile())?;
        first.fit(fit(0, 2))?;
        let path = folder.0.join("half.keras");
        first.save_for(&path, version)?;
        let mut second = load_model(&path, &objects())?;
        assert_eq!(second.n_steps(), 6);
        assert_eq!(second.learning_rate()?, first.learning_rate()?);
        // An evaluation before the first step does not touch the state.
        second.evaluate((&x, &y))?;
        let rest = second.fit(fit(2, 4))?;
        assert_eq!(rest["loss"], history["loss"][2..]);
        assert_eq!(rest["mae"], history["mae"][2..]);
        assert_eq!(second.get_weights()?, whole.get_weights()?);
        // Another compile drops the state, as in Keras.
        second.compile(Compile::new("adam", "mse"))?;
        second.save_for(&path, version)?;
        let numbers = optimizer_numbers(&path);
        assert!(numbers.iter().all(|n| *n == 0.0 || (*n - 0.001).abs() < 1e-9), "{numbers:?}");
    }
    Ok(())
}

/// Keras 3 cannot train with the state of a legacy file, so there it has none.
#[test]
fn legacy_files_for_keras_3_have_no_state() -> Result<()> {
    let folder = Folder::new("legacy");
    let path = folder.0.join("m.h5");
    let mut model = small()?;
    model.compile(Compile::new("adam", "mse"))?;
    let (x, y) = rows(4);
    model.train_on_batch((&x, &y))?;
    words(
        model.save_with(&path, SaveModel::new().include_optimizer(true)),
        &["Keras 3 cannot read the state of an optimizer in a .h5 file", "ends with .keras"],
    );
    assert!(!path.exists());
    model.save(&path)?;
    let again = load_model(&path, &objects())?;
    assert_eq!((again.n_steps(), again.learning_rate()?), (0, model.learning_rate()?));
    assert_eq!(again.get_weights()?, model.get_weights()?);
    model.save_with(&path, SaveModel::new().include_optimizer(false))?;
    words(load_model(&path, &objects())?.train_on_batch((&x, &y)).map(drop), &["has not been compiled"]);
    Ok(())
}

/// A rate that was set, a layer that was frozen, and a step of the user's own go on, too.
#[test]
fn changes_after_compile_are_kept() -> Result<()> {
    let folder = Folder::new("changes");
    let path = folder.0.join("m.keras");
    let (x, y) = rows(6);
    let own_step = |step: &TrainStep<'_>| {
        let loss = (&step.call(step.inputs())?[0] - &step.labels()[0]).square().mean();
        Ok(Trained::new(&step.optimizer().minimize(&loss)).log("loss", &loss))
    };
    for version in VERSIONS {
        for is_own in [false, true] {
            let mut model = small()?;
            model.compile(Compile::new(Optimizer::keras(RmsProp::default().momentum(0.5), 0.01), "mse"))?;
            if is_own {
                model.set_train_step(own_step);
            }
            model.train_on_batch((&x, &y))?;
            model.set_learning_rate(0.05)?;
            model.set_layer_trainable("dense", false)?;
            for _ in 0..2 {
                model.train_on_batch((&x, &y))?;
            }
            model.save_with(&path, SaveModel::new().version(version).include_optimizer(true))?;
            let mut again = load_model_with(&path, &objects(), LoadModel::new().compile(true))?;
            if is_own {
                again.set_train_step(own_step);
            }
            assert_eq!(again.learning_rate()?, f64::from(0.05f32));
            assert_eq!(again.n_steps(), 3);
            for _ in 0..3 {
                assert_eq!(again.train_on_batch((&x, &y))?, model.train_on_batch((&x, &y))?);
            }
            assert_eq!(again.get_weights()?, model.get_weights()?);
            // A seed begins anew.
            assert_eq!(again.seed(3)?.n_steps(), 0);
        }
    }
    Ok(())
}

/// A backup takes the place of what the file has restored.
#[test]
fn backups_of_loaded_models_go_on() -> Result<()> {
    let folder = Folder::new("backup");
    let (path, backups) = (folder.0.join("m.keras"), folder.0.join("backup"));
    let (x, y) = rows(8);
    let fit = |epochs: usize| Fit::new((&x, &y)).batch_size(4).epochs(epochs).verbose(0);
    let mut model = small()?;
    model.compile(Compile::new("adam", "mse"))?;
    model.fit(fit(2))?;
    model.save(&path)?;
    let mut whole = load_model(&path, &objects())?;
    whole.fit(fit(4))?;
    let backup = || BackupAndRestore::new(&backups).keep();
    load_model(&path, &objects())?.fit(fit(2).callback(backup()))?;
    let mut resumed = load_model(&path, &objects())?;
    let history = resumed.fit(fit(4).callback(backup()))?;
    assert_eq!(history.epoch, [2, 3]);
    assert_eq!(resumed.n_steps(), whole.n_steps());
    assert_eq!(resumed.get_weights()?, whole.get_weights()?);
    Ok(())
}

/// All numbers of the optimizer's variables in a file.
fn optimizer_numbers(path: &Path) -> Vec<f64> {
    let file = weights_of(path);
    let group = file.root().group("optimizer/vars").unwrap();
    let value = |name: &str| group.dataset(name).unwrap().read().unwrap().to_f64_vec().unwrap();
    group.names().flat_map(value).collect()
}

fn weights_of(path: &Path) -> File {
    let bytes = std::fs::read(path).unwrap();
    let members = zip::members(&bytes, &Limits::default()).unwrap();
    let member = members.iter().find(|member| member.name == "model.weights.h5").unwrap();
    File::from_bytes(member.unpack().unwrap(), &Limits::default()).unwrap()
}
