//! Steps and folders of TensorFlow's LinearSDCA.

use std::path::Path;

use estimand::graph::checkpoint::{BundleReader, BundleWriter, latest_checkpoint, write_text};
use estimand::prelude::*;
use estimand::premade::{LinearSdca, SdcaLoss};
use estimand_fixture::{Case, cases_of};

use super::{WEIGHTS, columns, rows, weights};
use crate::fixture::array;
use crate::models::Folder;

fn sdca_of(case: &Case) -> LinearSdca {
    LinearSdca::new("id")
        .num_loss_partitions(case.option("num_loss_partitions").unwrap_or(1))
        .num_table_shards(case.option("num_table_shards").unwrap_or(1))
        .symmetric_l1_regularization(case.option("symmetric_l1_regularization").unwrap_or(0.0))
        .symmetric_l2_regularization(case.option("symmetric_l2_regularization").unwrap_or(1.0))
}

/// The model of a case.
fn model_of(case: &Case, seed: u64, folder: &Path) -> Result<Estimator> {
    model_with(case, sdca_of(case), seed, folder)
}

fn model_with(case: &Case, sdca: LinearSdca, seed: u64, folder: &Path) -> Result<Estimator> {
    let (config, weighted) = (RunConfig::new().tf_random_seed(seed), case.setting::<bool>("weighted"));
    match case.setting::<String>("kind").as_str() {
        "classifier" => {
            let model = LinearClassifier::new(columns(case)).optimizer(sdca).config(config).model_dir(folder);
            if weighted { model.weight_column("weight").build() } else { model.build() }
        }
        _ => {
            let model = LinearRegressor::new(columns(case)).optimizer(sdca).config(config).model_dir(folder);
            if weighted { model.weight_column("weight").build() } else { model.build() }
        }
    }
}

fn weights_of(model: &Estimator) -> Vec<f64> {
    WEIGHTS.map(|name| weights(model, name).unwrap()).concat()
}

fn is_near(ours: &[f64], theirs: &[f64]) -> bool {
    ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| (ours - theirs).abs() <= 1e-6)
}

fn near(what: &str, ours: &[f64], theirs: &[f64]) {
    assert!(is_near(ours, theirs), "{what}: {ours:?} instead of {theirs:?}");
}

/// Rows one by one. Each step is a training of its own that resumes the one before.
#[test]
fn steps_are_those_of_tensorflow() -> Result<()> {
    let cases = cases_of("sdca_steps", "train");
    assert_eq!(cases.len(), 12);
    for case in &cases {
        let folder = Folder::new();
        let model = model_of(case, 3, folder.path())?;
        let data = rows(case, "y").repeat_forever().batch(1);
        let names: Vec<String> = case.setting("names");
        assert_eq!(names, WEIGHTS);
        let entries: Vec<String> = case.setting("entries");
        assert!(names.iter().all(|name| entries.contains(name)), "{entries:?}");
        let steps = case.array("steps");
        for (step, expected) in case.numbers::<f64>("steps").chunks(steps.dims[1]).enumerate() {
            model.train(TrainSpec::new(&data).max_steps(step as u64 + 1))?;
            near(&format!("{case}, step {step}"), &weights_of(&model), expected);
        }
    }
    Ok(())
}

/// A batch of two rows has two orders. Ours follows from the seed, TensorFlow's from chance.
#[test]
fn steps_of_two_rows_are_those_of_tensorflow() -> Result<()> {
    let cases = cases_of("sdca_steps", "pairs");
    assert_eq!(cases.len(), 4);
    for case in &cases {
        let found = case.numbers::<f64>("found");
        let found: Vec<&[f64]> = found.chunks(case.array("found").dims[1]).collect();
        let mut seen = vec![0; found.len()];
        for seed in 0..12 {
            let folder = Folder::new();
            let model = model_of(case, seed, folder.path())?;
            model.train(TrainSpec::new(rows(case, "y").repeat_forever().batch(2)).steps(1))?;
            let ours = weights_of(&model);
            let place = found.iter().position(|theirs| is_near(&ours, theirs));
            seen[place.unwrap_or_else(|| panic!("{case}: {ours:?} instead of {found:?}"))] += 1;
        }
        assert!(seen.iter().all(|n| *n > 0), "{case}: {seen:?}");
    }
    Ok(())
}

/// Puts the checkpoint of a case into a folder, its entries changed.
fn put(case: &Case, folder: &Path, change: impl Fn(&str, Array) -> Option<(String, Array)>) -> Result<()> {
    let kind: String = case.setting("kind");
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../oracles/fixtures/sdca_tf_{kind}"));
    let step: u64 = case.setting("step");
    rewrite(&stored, &folder.join(format!("model.ckpt-{step}")), change)?;
    write_text(folder.join("checkpoint"), &format!("model_checkpoint_path: \"model.ckpt-{step}\"\n"))
}

/// Writes a checkpoint with changed entries.
fn rewrite(from: &Path, to: &Path, change: impl Fn(&str, Array) -> Option<(String, Array)>) -> Result<()> {
    let reader = BundleReader::open(from)?;
    let entries: Vec<(&str, Array)> =
        reader.names().map(|name| Ok((name, reader.read(name)?))).collect::<Result<_>>()?;
    let mut writer = BundleWriter::create(to)?;
    let mut changed: Vec<(String, Array)> =
        entries.into_iter().filter_map(|(name, value)| change(name, value)).collect();
    changed.sort_by(|a, b| a.0.cmp(&b.0));
    for (name, value) in changed {
        writer.add(&name, &value)?;
    }
    writer.finish()
}

fn unchanged(name: &str, value: Array) -> Option<(String, Array)> {
    Some((name.to_string(), value))
}

#[test]
fn a_folder_of_tensorflow_goes_on() -> Result<()> {
    let cases = cases_of("sdca_steps", "folder");
    assert_eq!(cases.len(), 2);
    for case in &cases {
        let folder = Folder::new();
        put(case, folder.path(), unchanged)?;
        let model = model_of(case, 3, folder.path())?;
        let n = case.array("steps").dims[1];
        for (i, expected) in case.numbers::<f64>("steps").chunks(n).enumerate() {
            if i > 0 {
                let data = rows(case, "y").repeat_forever().batch(1);
                model.train(TrainSpec::new(&data).max_steps(case.setting::<u64>("step") + i as u64))?;
            }
            near(&format!("{case}, {i}"), &weights_of(&model), expected);
        }
        // TensorFlow finds all of its entries in our checkpoint.
        let ours: Vec<String> = model.variable_names()?;
        assert_eq!(ours, case.setting::<Vec<String>>("entries"));
    }
    Ok(())
}

/// Ours, as TensorFlow reads it: without the entries that only Estimand has.
#[test]
fn a_folder_goes_on_by_the_entries_of_tensorflow_alone() -> Result<()> {
    let all = &cases_of("sdca", "data")[2];
    let n = all.array("x").dims[0];
    for n_shards in [1, 3] {
        let sdca = LinearSdca::new("id").num_table_shards(n_shards).symmetric_l1_regularization(0.5);
        let data = rows(all, "class").repeat_forever().batch(n);
        let trained = |folder: &Folder, steps| -> Result<Estimator> {
            let model = super::model(all, SdcaLoss::Logistic, &sdca, true, folder.path())?;
            model.train(TrainSpec::new(&data).steps(steps))?;
            Ok(model)
        };
        let (whole, stripped) = (Folder::new(), Folder::new());
        trained(&whole, 5)?;
        let from = latest_checkpoint(whole.path())?.unwrap();
        let keep =
            |name: &str, value| unchanged(name, value).filter(|_| !name.starts_with("_estimand/hook/linear_sdca"));
        rewrite(&from, &stripped.path().join("model.ckpt-5"), keep)?;
        write_text(stripped.path().join("checkpoint"), "model_checkpoint_path: \"model.ckpt-5\"\n")?;
        let whole = weights_of(&trained(&whole, 5)?);
        let progress = sdca.progress().unwrap();
        let stripped = weights_of(&trained(&stripped, 5)?);
        let again = sdca.progress().unwrap();
        assert!(whole.iter().zip(&stripped).all(|(a, b)| (a - b).abs() < 1e-5), "{whole:?} {stripped:?}");
        assert_eq!((again.examples_seen, progress.examples_seen), (n, n));
        assert!((again.duality_gap - progress.duality_gap).abs() < 1e-5, "{again:?} {progress:?}");
    }
    Ok(())
}

/// A change of the entries of a checkpoint.
type Change<'a> = &'a dyn Fn(&str, Array) -> Option<(String, Array)>;

/// Damaged tables, and settings that the folder does not fit.
#[test]
fn a_damaged_folder_of_tensorflow_is_refused() -> Result<()> {
    let case = &cases_of("sdca_steps", "folder")[0];
    let (keys, values) = ("ShardedMutableHashTable-1-of-2-keys", "ShardedMutableHashTable-1-of-2-values");
    let refused_of = |data: Dataset, sdca: LinearSdca, change: Change<'_>| -> Result<String> {
        let folder = Folder::new();
        put(case, folder.path(), change)?;
        let model = model_with(case, sdca, 3, folder.path())?;
        Ok(model.train(TrainSpec::new(data.repeat_forever().batch(1)).steps(6)).unwrap_err().to_string())
    };
    let refused = |sdca: LinearSdca, change: Change<'_>| refused_of(rows(case, "y"), sdca, change);
    let with = |of: &'static str, put: Array| {
        move |name: &str, value| Some((name.to_string(), if name == of { put.clone() } else { value }))
    };
    let sdca = || sdca_of(case);
    let zeros = |dims: [usize; 2]| Array::from_vec(dims, vec![0f32; dims[0] * dims[1]]).unwrap();
    let error = refused(sdca(), &with(values, zeros([16, 3])))?;
    assert!(error.contains("is [16, 2] and") && error.contains("[16, 3]"), "{error}");
    let error = refused(sdca(), &with(keys, Array::from_vec([16, 2], vec![7i64; 32])?))?;
    assert!(error.contains("an example is in") && error.contains("twice"), "{error}");
    let error = refused(sdca(), &with(keys, zeros([16, 2])))?;
    assert!(error.contains("f32"), "{error}");
    let bias = "linear/linear_model/bias_weights_unshrunk";
    let error = refused(sdca(), &with(bias, Array::from([f32::NAN])))?;
    assert!(error.contains("bias_weights_unshrunk` is NaN"), "{error}");
    let error = refused(sdca(), &with(bias, Array::from([1f32, 2.0])))?;
    assert!(error.contains("has 2 weights; expected 1"), "{error}");
    let without = |of: &'static str| move |name: &str, value| unchanged(name, value).filter(|_| name != of);
    for missing in [values, bias] {
        let error = refused(sdca(), &without(missing))?;
        assert!(error.contains(missing), "{error}");
    }
    for n in ["0", "x", "99999999999999999999999"] {
        let renamed = |name: &str, value| Some((name.replace("1-of-2-keys", &format!("1-of-{n}-keys")), value));
        let error = refused(sdca(), &renamed)?;
        assert!(error.contains("is not one of 1 to 65536 parts"), "{error}");
    }
    let error = refused(sdca().loss(SdcaLoss::Hinge), &unchanged)?;
    assert!(error.contains("TensorFlow's, which has no hinge_loss"), "{error}");
    let feature = |name: &'static str| (name, array(&case.array(name)));
    let ids = Array::from_strings([6], (0..6).map(|i| format!("row {i}")))?;
    let others: Vec<f32> = case.numbers::<f32>("y").into_iter().map(|y| 1.0 - y).collect();
    let features = [("id", ids), feature("x"), feature("bin"), feature("weight"), ("y", Array::from(others))];
    let error = refused_of(Dataset::from_arrays(features).label("y"), sdca(), &unchanged)?;
    assert!(error.contains("the example came before with the dual variable"), "{error}");
    Ok(())
}
