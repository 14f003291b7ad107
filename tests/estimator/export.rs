//! Exports: what our own reader finds in them, and what a failed one leaves. That TensorFlow loads
//! them is checked by `oracles/live/export.py`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use estimand::ExportOutput;
use estimand::data::datasets;
use estimand::export::{BestExporter, ExportSpec, FinalExporter, LatestExporter, Receiver, ServingInputReceiver};
use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use estimand::tensor::Feature;

use crate::models::{Folder, line, linear};

/// The files of a folder and its subfolders, with their bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(all.insert(path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap())),
            }
        }
    }
    all
}

pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn signatures(export: &Path) -> Result<Vec<String>> {
    Ok(SavedModel::open(export)?.signatures().map(|(name, _)| name.to_string()).collect())
}

/// A wide & deep model of census rows with a vocabulary file, and its columns.
fn census(folder: &Path) -> Result<(Estimator, Columns, Dataset)> {
    let rows = datasets::load("adult", "train[:500]")?.dataset();
    let file = folder.join("vocabularies/education.txt");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, "Bachelors\nHS-grad\n11th\nMasters\n").unwrap();
    let education = categorical_column_with_vocabulary_file("education", &file).n_oov_buckets(2);
    let occupation = categorical_column_with_hash_bucket("occupation", 30);
    let age = bucketized_column(&numeric_column("age"), [25.0, 40.0, 60.0]);
    let wide = columns![&education, &occupation, age, crossed_column(["education", "occupation"], 50)];
    let deep = columns![numeric_column("hours-per-week"), embedding_column(education, 4), indicator_column(occupation)];
    let columns: Columns = [&wide[..], &deep[..]].concat().into();
    let model = DnnLinearCombinedClassifier::new()
        .linear_feature_columns(wide)
        .dnn_feature_columns(deep)
        .dnn_hidden_units([8])
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder.join("model"))
        .build()?;
    model.train(rows.repeat(2).batch(50))?;
    Ok((model, columns, rows))
}

/// Named features and Examples, both asked through our own reader, give the predictions of the
/// model. The bytes of two exports are the same, wherever they are.
#[test]
fn an_export_answers_as_the_model_does() -> Result<()> {
    let folder = Folder::new();
    let (model, columns, rows) = census(folder.path())?;
    let used = ["age", "education", "occupation", "hours-per-week"];
    let data = rows.map(move |batch| {
        let mut used = used.iter();
        used.try_fold(estimand::tensor::Batch::new(), |kept, name| {
            kept.with_feature(name, batch.feature(name)?.clone())
        })
    });
    let receiver = || Receiver::like(&data)?.and_examples(columns.clone());
    let export = model.export_saved_model(folder.path().join("export"), receiver()?)?;
    assert_eq!(signatures(&export)?, ["classification", "predict", "regression", "serving_default"]);
    let base: u64 = export.file_name().unwrap().to_str().unwrap().parse().unwrap();
    assert!(base > 1_700_000_000, "a name is the time in seconds");

    let batch = data.batch(200).iter().next().unwrap()?;
    let expected = model.predictor(&batch)?.predict(&batch)?;
    let saved = SavedModel::open(&export)?;
    let feeds: Vec<(&str, Array)> = used
        .iter()
        .map(|name| match batch.feature(name).unwrap() {
            Feature::Dense(array) => (*name, array.clone()),
            Feature::Ragged(_) => panic!("rows are dense"),
        })
        .collect();
    let close = |found: &Array, expected: &[f32]| {
        let found = found.as_slice::<f32>().unwrap();
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?} {expected:?}");
    };
    for name in ["serving_default", "predict"] {
        let answers = saved.signature(name)?.run(&feeds)?;
        close(&answers["logits"], expected.f32("logits")?);
        assert_eq!(
            answers["classes"].strings()?.collect::<Vec<_>>(),
            expected.array("classes")?.strings()?.collect::<Vec<_>>()
        );
    }
    // The same rows as Examples. A numeric column takes floats from an Example.
    let floats = data.map(|batch| {
        let float = |name: &str| match batch.feature(name)? {
            Feature::Dense(array) => Ok(Array::from(array.to_f64_vec()?.iter().map(|v| *v as f32).collect::<Vec<_>>())),
            Feature::Ragged(_) => Err(Error::shape("rows are dense")),
        };
        let (age, hours) = (float("age")?, float("hours-per-week")?);
        batch.with_feature("age", age)?.with_feature("hours-per-week", hours)
    });
    let path = folder.path().join("rows.tfrecord");
    floats.take(200).write_tfrecord(&path)?;
    let mut reader = estimand_wire::record::RecordReader::new(fs::File::open(&path).unwrap());
    let mut records: Vec<Vec<u8>> = Vec::new();
    while let Some(record) = reader.read().unwrap() {
        records.push(record.to_vec());
    }
    let examples = Array::from_strings([records.len()], &records)?;
    let answers = saved.signature("classification")?.run(&[("inputs", examples.clone())])?;
    close(&answers["scores"], expected.f32("probabilities")?);
    let answers = saved.signature("regression")?.run(&[("inputs", examples)])?;
    close(&answers["outputs"], expected.f32("logistic")?);

    let again = model.export_saved_model(folder.path().join("elsewhere/deep"), receiver()?)?;
    assert!(files(&export) == files(&again), "the same model gives the same bytes");
    let found: Vec<String> = files(&export).keys().map(|path| path.display().to_string()).collect();
    let expected = [
        "assets/education.txt",
        "assets.extra/estimand.json",
        "saved_model.pb",
        "variables/variables.data-00000-of-00001",
        "variables/variables.index",
    ];
    assert_eq!(found, expected);
    let message = &files(&export)[Path::new("saved_model.pb")];
    let place = folder.path().to_str().unwrap().as_bytes();
    assert!(!message.windows(place.len()).any(|part| part == place), "a path of this machine is in the export");
    Ok(())
}

/// Case 115: TensorFlow's set over Examples. Case 116: over raw features a default too.
#[test]
fn signatures_by_receiver() -> Result<()> {
    let folder = Folder::new();
    let data = line(8).batch(4);
    let x = || columns![numeric_column("x")];
    let regressor = LinearRegressor::new(x()).model_dir(folder.path().join("regressor")).build()?;
    regressor.train(data.repeat(3))?;
    let exports = folder.path().join("exports");
    let raw = regressor.export_saved_model(&exports, Receiver::like(&data)?)?;
    assert_eq!(signatures(&raw)?, ["predict", "serving_default"]);
    let parsing = regressor.export_saved_model(&exports, Receiver::columns(x())?)?;
    assert_eq!(signatures(&parsing)?, ["predict", "regression", "serving_default"]);
    let (_, predict) = SavedModel::open(&parsing)?.signatures().find(|(name, _)| *name == "predict").unwrap();
    assert_eq!(predict.inputs.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["examples"]);
    assert_eq!(names(&exports).len(), 2, "two exports within a second have two names");

    // A model function of one's own has a default of all predictions.
    let own = Estimator::new(linear).model_dir(folder.path().join("own")).build()?;
    own.train(data.repeat(3))?;
    let export = own.export_saved_model(&exports, Receiver::like(&data)?)?;
    assert_eq!(signatures(&export)?, ["serving_default"]);
    // It has no output over Examples, so that asking for them too adds nothing.
    let export = own.export_saved_model(&exports, Receiver::like(&data)?.and_examples(x())?)?;
    assert_eq!(signatures(&export)?, ["serving_default"]);
    // A single feature of strings is no list of Examples.
    let words =
        Dataset::from_arrays([("word", Array::from_strings([2], ["a", "b"])?), ("y", Array::from([1f32, 2.0]))]);
    let column = || columns![categorical_column_with_hash_bucket("word", 10)];
    let wordy = LinearRegressor::new(column()).model_dir(folder.path().join("wordy")).build()?;
    wordy.train(words.label("y").batch(2).repeat(3))?;
    let export = wordy.export_saved_model(&exports, ExportSpec::default())?;
    let answers =
        SavedModel::open(&export)?.signature("predict")?.run(&[("word", Array::from_strings([1], ["a"])?)])?;
    assert_eq!(answers["predictions"].dims(), [1, 1]);
    assert_eq!(signatures(&export)?, ["predict", "regression", "serving_default"]);
    // A receiver of one's own: the feature is computed from what a caller feeds.
    let tenths = Receiver::of(|graph| {
        let tenths = graph.placeholder("tenths", DType::F32, [Dim::BATCH]);
        Ok(ServingInputReceiver::new([("x".to_string(), &tenths / 10.0)], [("tenths".to_string(), tenths)]))
    });
    let export = own.export_saved_model(&exports, tenths)?;
    let answers =
        SavedModel::open(&export)?.signature("serving_default")?.run(&[("tenths", Array::from([5f32, 20.0]))])?;
    let y = answers["y"].as_slice::<f32>()?;
    assert!((y[1] / y[0] - 4.0).abs() < 1e-5, "{y:?}");
    Ok(())
}

/// The best checkpoint, a chosen one, and the newest have different weights.
#[test]
fn the_checkpoint_that_was_asked_for() -> Result<()> {
    let folder = Folder::new();
    let config = RunConfig::new().tf_random_seed(1).save_checkpoints(Every::Steps(2));
    let model = Estimator::new(linear).config(config).model_dir(folder.path().join("model")).build()?;
    let data = line(8).batch(8);
    model.train(TrainSpec::new(data.repeat_forever()).max_steps(6))?;
    let weight = |spec: ExportSpec| -> Result<f32> {
        let export = model.export_saved_model(folder.path().join("exports"), spec)?;
        let answers = SavedModel::open(export)?.signature("serving_default")?.run(&[("x", Array::from([1f32]))])?;
        Ok(answers["y"].as_slice::<f32>()?[0])
    };
    let receiver = || Receiver::like(&data);
    let newest = weight(receiver()?.into())?;
    let earlier = weight(ExportSpec::new(receiver()?).checkpoint(folder.path().join("model/model.ckpt-2")))?;
    assert!(0.0 < earlier && earlier < newest && newest < 3.0, "{earlier} {newest}");
    let none = model.export_saved_model(folder.path().join("none"), ExportSpec::new(receiver()?).best());
    assert!(none.unwrap_err().to_string().contains("best"), "no evaluation has found a best one");
    Ok(())
}

/// Case 117.
#[test]
fn a_failed_export_leaves_nothing() -> Result<()> {
    let folder = Folder::new();
    let (base, data) = (folder.path().join("exports"), line(8).batch(4));
    let model = Estimator::new(linear).model_dir(folder.path().join("model")).build()?;
    let fails = |model: &Estimator, spec: ExportSpec, expected: &str| {
        let error = model.export_saved_model(&base, spec).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!base.exists() || names(&base).is_empty(), "{:?}", names(&base));
    };
    fails(&model, Receiver::like(&data)?.into(), "there is no checkpoint in");
    model.train(data.repeat(2))?;
    let spec = |receiver: Receiver| ExportSpec::new(receiver);
    fails(&model, spec(Receiver::like(&data)?).asset_extra("../x", folder.path()), "is not a path below assets.extra");
    let missing = folder.path().join("missing");
    fails(&model, spec(Receiver::like(&data)?).asset_extra("a/b", &missing), "cannot copy");
    fails(&model, spec(Receiver::raw(Default::default())), "has no tensors to feed");
    let other = Dataset::from_arrays([("z", Array::from([1f32]))]).batch(1);
    fails(&model, spec(Receiver::like(&other)?), "there is no feature `x`");

    // A model that has only scores needs Examples.
    let scores = Estimator::new(|cx: &ModelFnContext<'_>| {
        let x = cx.feature("x") * &cx.graph().variable("w", [], Initializer::Ones);
        let output = ExportOutput::Classification { scores: Some(x.reshape([-1, 1])), classes: None };
        Ok(EstimatorSpec::new(cx).prediction("x", &x).export_output("scores", output))
    });
    let scores = scores.model_dir(folder.path().join("scores")).build()?;
    fails(&scores, spec(Receiver::like(&data)?), "no output of the model fits the inputs");
    // A file where the folder should be.
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = model.export_saved_model(&file, Receiver::like(&data)?).unwrap_err().to_string();
    assert!(error.contains("file"), "{error}");
    let own = spec(Receiver::like(&data)?).asset_extra("estimand.json", "Cargo.toml");
    fails(&model, own, "would replace a file of the export");
    let export = model.export_saved_model(&base, spec(Receiver::like(&data)?).asset_extra("a/b", "Cargo.toml"))?;
    assert!(export.join("assets.extra/a/b").is_file());
    assert_eq!(names(&base).len(), 1);
    Ok(())
}

/// Case 108: of four evaluations the newest two exports are kept; the best is exported while it
/// improves; the final one once. A restart does not forget the best.
#[test]
fn exporters_keep_the_newest_and_the_best() -> Result<()> {
    let folder = Folder::new();
    let data = line(8).batch(8);
    let config = RunConfig::new().tf_random_seed(1).save_checkpoints(Every::Steps(2));
    let model = Estimator::new(linear).config(config).model_dir(folder.path()).build()?;
    let run = |steps: u64| {
        let receiver = || Receiver::like(&data);
        // The loss falls, so the highest loss is that of the first evaluation.
        let spec = EvalSpec::new(&data)
            .every(Every::Steps(2))
            .highest_is_best("loss")
            .exporter(LatestExporter::new("latest", receiver()?).exports_to_keep(2))
            .exporter(BestExporter::new("best", receiver()?).exports_to_keep(3))
            .exporter(FinalExporter::new("final", receiver()?));
        model.train_and_evaluate(TrainSpec::new(data.repeat_forever()).max_steps(steps), spec)
    };
    let trained = run(6)?;
    let folder_of = |name: &str| folder.path().join("export").join(name);
    // Something else in the folder is left alone.
    fs::create_dir_all(folder_of("latest").join("123")).unwrap();
    assert_eq!(trained.exports.len(), 3 + 1 + 1);
    assert_eq!((names(&folder_of("best")).len(), names(&folder_of("final")).len()), (1, 1));
    run(8)?;
    let latest = names(&folder_of("latest"));
    assert_eq!((latest.len(), latest[0].as_str()), (3, "123"));
    assert_eq!((names(&folder_of("best")).len(), names(&folder_of("final")).len()), (1, 2));
    // The newest export is of the last step, and the best of the first evaluation.
    let weight = |export: &Path| -> Result<f32> {
        let answers = SavedModel::open(export)?.signature("serving_default")?.run(&[("x", Array::from([1f32]))])?;
        Ok(answers["y"].as_slice::<f32>()?[0])
    };
    let best = folder_of("best").join(&names(&folder_of("best"))[0]);
    assert!(weight(&best)? < weight(&folder_of("latest").join(&latest[1]))?);

    let refused = |exporter: LatestExporter, expected: &str| {
        let spec = EvalSpec::new(&data).exporter(exporter);
        let error = model.train_and_evaluate(TrainSpec::new(data.repeat_forever()).max_steps(9), spec).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    };
    refused(LatestExporter::new("x", Receiver::like(&data)?).exports_to_keep(0), "exports_to_keep is 0");
    let best = ExportSpec::new(Receiver::like(&data)?).best();
    refused(LatestExporter::new("x", best), "names a checkpoint\n".trim_end());
    Ok(())
}
