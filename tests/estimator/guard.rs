//! What an export carries beside the graph, how it is checked, and what kills leave of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use estimand::adapt_once;
use estimand::data::{Csv, datasets};
use estimand::export::{BestExporter, ExportSpec, Receiver, verify};
use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;
use estimand_checkpoint::{BundleReader, BundleWriter};
use estimand_tensor::Sha256;
use serde_json::Value as Json;

use crate::export::names;
use crate::models::{Folder, line, linear};

fn document(export: &Path) -> Json {
    serde_json::from_slice(&fs::read(export.join("assets.extra/estimand.json")).unwrap()).unwrap()
}

/// Four people in a file, and a model of them.
fn people(folder: &Path, config: RunConfig) -> Result<(Estimator, PathBuf)> {
    let path = folder.join("people.csv");
    fs::write(&path, "age,job,town,rich\n25,cook,Rome,0\n38,clerk,Oslo,0\n61,judge,Rome,1\n52,cook,Bonn,1\n").unwrap();
    let data = Csv::new(&path).dataset().label("rich");
    let adapted = adapt_once(folder.join("model"), &data)?;
    let age = adapted.bucketized(&numeric_column("age"), 2)?;
    let job = adapted.vocabulary("job", 2)?.n_oov_buckets(1);
    let town = categorical_column_with_hash_bucket("town", 5);
    let model = LinearClassifier::new(columns![age, job, town]).config(config).model_dir(folder.join("model"));
    let model = model.build()?;
    model.train(data.batch(3).repeat(5))?;
    Ok((model, path))
}

/// The document says what the model is: formats, statistics, manifest, files, tensors of columns,
/// and rows with answers.
#[test]
fn an_export_carries_what_the_model_is() -> Result<()> {
    let folder = Folder::new();
    let (model, path) = people(folder.path(), RunConfig::new())?;
    let export = model.export_saved_model(folder.path().join("exports"), ExportSpec::default())?;
    let document = document(&export);
    assert_eq!(document["version"], 1);
    assert!(document["library"].as_str().unwrap().starts_with("estimand "));
    assert_eq!(document["global_step"], 10);
    assert_eq!(document["features"]["age"], serde_json::json!({"dtype": "int32", "shape": []}));
    // By hand: the mean of 25, 38, 61, 52 is 44.
    assert_eq!(document["statistics"]["age"]["numbers"]["mean"], 44.0);
    assert_eq!(document["statistics"]["job"]["terms"]["top"][0], serde_json::json!(["cook", 2]));
    let about = |entry: &Json| entry.to_string().contains("vocabulary");
    assert!(document["manifest"]["entries"].as_array().unwrap().iter().any(about));
    let bytes = fs::read(&path).unwrap();
    let file = serde_json::json!({
        "name": "people.csv", "bytes": bytes.len(), "sha256": Sha256::new().update(&bytes).finish()
    });
    assert_eq!(document["lineage"], serde_json::json!({"n_files": 1, "files": [file]}));
    assert!(!document.to_string().contains(folder.path().to_str().unwrap()), "a path of this machine is in the export");

    // Each column has its tensor in the graphs of named features and of Examples.
    let columns = document["columns"].as_array().unwrap();
    let of = |name: &str| columns.iter().filter(|c| c["column"] == name).cloned().collect::<Vec<Json>>();
    let age = of("age_bucketized");
    assert_eq!((age.len(), &age[0]["n_buckets"], &age[0]["inputs"]), (2, &2.into(), &serde_json::json!(["age"])));
    assert_eq!(age[0]["signatures"], serde_json::json!(["predict", "serving_default"]));
    assert_eq!(age[1]["signatures"], serde_json::json!(["classification", "regression"]));
    assert!(age[0]["bucket"].as_str().unwrap().ends_with(":0"));
    let job = of("job");
    let vocabulary = job.iter().find(|c| c["n_terms"] == 2).unwrap();
    assert_eq!((&vocabulary["n_unknown_ids"], vocabulary["id"].is_string()), (&1.into(), true));
    assert!(of("town").iter().any(|c| c["n_buckets"] == 5 && c["id"].is_string()));

    // Categories may be left out, the age may not. Features of Examples have their tensors.
    assert_eq!(document["defaults"]["job"]["values"], serde_json::json!([""]));
    assert_eq!(document["defaults"].as_object().unwrap().len(), 2, "{}", document["defaults"]);
    let tensors = document["tensors"].as_array().unwrap();
    let names: Vec<&str> = tensors.iter().map(|tensor| tensor["feature"].as_str().unwrap()).collect();
    assert_eq!(names, ["age", "job", "town"]);
    assert_eq!(tensors[0]["signatures"], serde_json::json!(["classification", "regression"]));

    // The rows of ten steps, as they were fed, and four that are made up, for named features and
    // for Examples.
    let rows: Vec<&str> = document["feeds"].as_array().unwrap().iter().map(|f| f["rows"].as_str().unwrap()).collect();
    let made = ["missing", "unknown", "largest", "smallest"];
    assert_eq!(rows[..14], [&["training"; 10][..], &made].concat());
    assert_eq!(document["feeds"][0]["inputs"]["age"]["values"], serde_json::json!([25, 38, 61]));
    assert_eq!(document["signatures"]["serving_default"], serde_json::json!({"same_as": "predict"}));
    let verified = verify(&export)?;
    assert_eq!((verified.n_signatures, verified.n_rows >= 12), (4, true));

    let private = model.export_saved_model(folder.path().join("exports"), ExportSpec::default().without_rows())?;
    let rows = self::document(&private)["feeds"].to_string();
    assert!(!rows.contains("training") && !rows.contains("judge") && rows.contains("missing"), "{rows}");
    assert!(verify(&private)?.n_rows >= 4);
    Ok(())
}

/// A folder that keeps no rows still knows its features.
#[test]
fn rows_are_kept_only_if_they_may_be() -> Result<()> {
    let folder = Folder::new();
    let (model, _) = people(folder.path(), RunConfig::new().kept_rows(0))?;
    let kept = fs::read_to_string(folder.path().join("model/training_rows.json")).unwrap();
    assert!(kept.contains("\"age\"") && !kept.contains("judge"), "{kept}");
    let export = model.export_saved_model(folder.path().join("exports"), ExportSpec::default())?;
    assert!(!document(&export)["feeds"].to_string().contains("training"));

    // A folder of an earlier version says what to do.
    fs::remove_file(folder.path().join("model/training_rows.json")).unwrap();
    let error = model.export_saved_model(folder.path().join("exports"), ExportSpec::default()).unwrap_err();
    assert!(error.to_string().contains("Receiver::like(&data)"), "{error}");
    Ok(())
}

/// Rows of a large batch and of many small ones: the first 32, without the label.
#[test]
fn the_first_rows_are_kept() -> Result<()> {
    for n in [5, 50] {
        let folder = Folder::new();
        let model = Estimator::new(linear).model_dir(folder.path()).build()?;
        model.train(line(60).batch(n))?;
        let kept: Json = serde_json::from_slice(&fs::read(folder.path().join("training_rows.json")).unwrap()).unwrap();
        let pieces = kept["rows"].as_array().unwrap();
        let values = pieces.iter().flat_map(|piece| piece["features"]["x"]["values"].as_array().unwrap());
        let x: Vec<f32> = values.map(|x| x.as_f64().unwrap() as f32).collect();
        let first = line(60).batch(32).iter().next().unwrap()?;
        let expected = first.feature("x")?.dense()?.as_slice::<f32>()?.to_vec();
        assert_eq!(x, expected);
        assert!(pieces.iter().all(|piece| piece["features"].as_object().unwrap().len() == 1));
    }
    Ok(())
}

/// Weights that are exchanged later are found when the export is loaded.
#[test]
fn an_export_with_other_weights_is_found() -> Result<()> {
    let folder = Folder::new();
    let data = line(8).batch(8);
    let model = LinearRegressor::new(columns![numeric_column("x")]).model_dir(folder.path().join("model")).build()?;
    model.train(data.repeat(20))?;
    let export = model.export_saved_model(folder.path().join("exports"), Receiver::like(&data)?)?;
    verify(&export)?;
    let prefix = export.join("variables/variables");
    let reader = BundleReader::open(&prefix)?;
    let mut writer = BundleWriter::create(&prefix)?;
    for name in reader.names() {
        let value = reader.read(name)?;
        let other = Array::from_vec([1, 1], vec![7f32])?;
        writer.add(name, if name.ends_with("x/weights") { &other } else { &value })?;
    }
    writer.finish()?;
    let error = verify(&export).unwrap_err().to_string();
    for part in ["signature `predict`", "output `predictions`", "training rows", "row 1: expected", ", found "] {
        assert!(error.contains(part), "{part}: {error}");
    }
    fs::remove_file(export.join("assets.extra/estimand.json")).unwrap();
    assert!(verify(&export).unwrap_err().to_string().contains("there is no"));
    Ok(())
}

/// Two vocabularies in files of the same name, in two folders.
#[test]
fn assets_of_the_same_name_stay_apart() -> Result<()> {
    let folder = Folder::new();
    let file = |name: &str, terms: &str| {
        let path = folder.path().join(name).join("terms.txt");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, terms).unwrap();
        path
    };
    let (fruit, colour) = (file("fruit", "apple\npear\n"), file("colour", "red\ngreen\n"));
    let columns = columns![
        categorical_column_with_vocabulary_file("fruit", fruit),
        categorical_column_with_vocabulary_file("colour", colour)
    ];
    let rows = Dataset::from_arrays([
        ("fruit", Array::from_strings([3], ["apple", "pear", "plum"])?),
        ("colour", Array::from_strings([3], ["green", "red", "blue"])?),
        ("y", Array::from([1f32, 5.0, 9.0])),
    ]);
    let model = LinearRegressor::new(columns).model_dir(folder.path().join("model")).build()?;
    model.train(rows.label("y").batch(3).repeat(20))?;
    let export = model.export_saved_model(folder.path().join("exports"), ExportSpec::default())?;
    assert_eq!(names(&export.join("assets")), ["terms.txt", "terms.txt_1"]);
    verify(&export)?;
    Ok(())
}

/// An exporter's own criterion, and a restart: the loss of a later evaluation is lower, but the
/// exporter prefers a high loss, which the first evaluation had.
#[test]
fn an_exporter_remembers_its_own_best() -> Result<()> {
    let folder = Folder::new();
    let data = line(8).batch(8);
    let config = RunConfig::new().tf_random_seed(1).save_checkpoints(Every::Steps(2));
    let model = Estimator::new(linear).config(config).model_dir(folder.path()).build()?;
    let run = |steps: u64| {
        let high = BestExporter::new("high", Receiver::like(&data)?).compare(|best, now| now["loss"] > best["loss"]);
        let low = BestExporter::new("low", Receiver::like(&data)?).lowest_is_best("loss").exports_to_keep(None);
        let spec = EvalSpec::new(&data).every(Every::Steps(2)).exporter(high).exporter(low);
        model.train_and_evaluate(TrainSpec::new(data.repeat_forever()).max_steps(steps), spec)
    };
    assert_eq!(run(4)?.exports.len(), 1 + 2);
    assert_eq!(run(8)?.exports.len(), 2, "the restart has not forgotten the highest loss");
    let n = |name: &str| names(&folder.path().join("export").join(name)).len();
    assert_eq!((n("high"), n("low")), (1, 4));
    Ok(())
}

const KILLED: &str = "ESTIMAND_TEST_KILLED_EXPORT";
/// A folder as TensorFlow names one that is not complete.
const THEIRS: &str = "temp-1700000000";

fn census(folder: &Path) -> Result<Estimator> {
    let rows = datasets::load("adult", "train[:200]")?.dataset();
    let job = categorical_column_with_hash_bucket("occupation", 20_000);
    let deep = columns![numeric_column("age"), embedding_column(&job, 64)];
    let config = RunConfig::new().tf_random_seed(1);
    let model = DnnClassifier::new([16], deep).config(config).model_dir(folder.join("model")).build()?;
    model.train(TrainSpec::new(rows.batch(50)).max_steps(4))?;
    Ok(model)
}

/// What the killed process runs: exports until it dies.
#[test]
#[ignore = "other tests start it as a process"]
fn child() -> Result<()> {
    let folder = PathBuf::from(std::env::var_os(KILLED).expect("the folder of the exports"));
    let model = census(&folder)?;
    loop {
        model.export_saved_model(folder.join("exports"), ExportSpec::default())?;
    }
}

/// Whatever a server that polls can see is complete, at any moment of a kill. The next export
/// removes what the killed one has left, but not the folder of one that is at work, nor
/// TensorFlow's.
#[test]
fn a_killed_export_is_never_seen() -> Result<()> {
    let folder = Folder::new();
    let model = census(folder.path())?;
    let exports = folder.path().join("exports");
    fs::create_dir_all(exports.join(THEIRS)).unwrap();
    let is_ours = |name: &str| name.starts_with("temp-") && name != THEIRS;
    let (mut n_left, mut delay) = (0, 7_u64);
    for _ in 0..20 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "guard::child", "--ignored", "--test-threads=1"]).env(KILLED, folder.path());
        let known = names(&exports);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let is_new = |name: &String| is_ours(name) && !known.contains(name);
        let end = Instant::now() + Duration::from_secs(60);
        while !names(&exports).iter().any(is_new) {
            assert!(Instant::now() < end, "the export did not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
        // Any moment: before the first file, within one, before the name.
        delay = delay.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis((delay >> 33) % 60));
        child.kill().unwrap();
        child.wait().unwrap();
        for name in names(&exports).into_iter().filter(|name| name != THEIRS) {
            match is_ours(&name) {
                true => n_left += 1,
                false => drop(verify(exports.join(name))?),
            }
        }
    }
    assert!(n_left > 0, "no export was killed in the middle");
    let last = model.export_saved_model(&exports, ExportSpec::default())?;
    let left: Vec<String> = names(&exports).into_iter().filter(|name| name.starts_with("temp-")).collect();
    assert_eq!(left, [THEIRS]);
    assert!(SavedModel::open(last)?.signature("predict").is_ok());
    Ok(())
}
