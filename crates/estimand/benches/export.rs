//! Exports: how long they take, and how soon a loaded one answers. `cargo bench --bench export`
//!
//! `census_export_ms` is one export of the census model, with its check; `census_load_ms` is from
//! opening the folder to the first answer of `serving_default`. The folder is printed, so that
//! TensorFlow can load it in the same minute: `benches/compare/export.sh`.
//! `table_ratio` is the export of a model with a table of a gigabyte over its checkpoint, without
//! the check, which reads the table again. Both write to the same disk in turns.

use std::path::Path;
use std::time::Instant;

use estimand::adapt_once;
use estimand::data::datasets;
use estimand::export::ExportSpec;
use estimand::graph::checkpoint::{BundleReader, BundleWriter};
use estimand::graph::saved_model::SavedModel;
use estimand::prelude::*;

const ROUNDS: usize = 9;
/// Rows of 64 floats: a gigabyte.
const TABLE: usize = 4 << 20;

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn ms(start: Instant) -> f64 {
    1e3 * start.elapsed().as_secs_f64()
}

/// The model of the README.
fn census(folder: &Path) -> Result<Estimator> {
    let train = datasets::load("adult", "train")?.dataset();
    let adapted = adapt_once(folder, &train)?;
    let (mut wide, mut deep): (Vec<FeatureColumn>, Vec<FeatureColumn>) = (Vec::new(), Vec::new());
    for name in ["workclass", "education", "marital-status", "occupation", "relationship", "race", "gender"] {
        let column = adapted.vocabulary(name, 1_000)?;
        deep.push(embedding_column(&column, 8).into());
        wide.push(column.into());
    }
    for name in ["age", "educational-num", "capital-gain", "capital-loss", "hours-per-week"] {
        deep.push(adapted.z_score(numeric_column(name))?.into());
    }
    wide.push(adapted.bucketized(&numeric_column("age"), 10)?.into());
    wide.push(crossed_column(["education", "occupation"], 1_000).into());
    let model = DnnLinearCombinedClassifier::new()
        .linear_feature_columns(wide)
        .dnn_feature_columns(deep)
        .dnn_hidden_units([100, 50])
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder)
        .build()?;
    model.train(TrainSpec::new(train.shuffle(40_000, 7).repeat_forever().batch(256)).max_steps(50))?;
    Ok(model)
}

/// Opens an export and asks it about one row of the training.
fn first_answer(export: &Path, row: &[(&str, Array)]) -> Result<f64> {
    let start = Instant::now();
    let answers = SavedModel::open(export)?.signature("serving_default")?.run(row)?;
    let time = ms(start);
    assert_eq!(answers["probabilities"].dims(), [1, 2]);
    Ok(time)
}

fn census_figures(folder: &Path) -> Result<()> {
    let model = census(&folder.join("census"))?;
    let (mut exports, mut loads) = (Vec::new(), Vec::new());
    let batch = datasets::load("adult", "train")?.dataset().batch(1).iter().next().ok_or(Error::data("no rows"))??;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let export = model.export_saved_model(folder.join("exports"), ExportSpec::default())?;
        // An export in the same second waits for the next name.
        exports.push(ms(start));
        let saved = SavedModel::open(&export)?;
        let (_, signature) =
            saved.signatures().find(|(name, _)| *name == "serving_default").ok_or(Error::data("no signature"))?;
        let mut row = Vec::new();
        for (name, _) in &signature.inputs {
            row.push((name.as_str(), batch.feature(name)?.dense()?.clone()));
        }
        loads.push(first_answer(&export, &row)?);
        std::thread::sleep(std::time::Duration::from_millis(1100));
        println!("# {}", export.display());
    }
    println!("census_export_ms = {:.1}", median(exports));
    println!("census_load_ms = {:.2}", median(loads));
    Ok(())
}

fn table_figure(folder: &Path) -> Result<()> {
    let ids = categorical_column_with_identity("id", TABLE);
    let model = DnnRegressor::new([1], columns![embedding_column(ids, 64)])
        .optimizer(Optimizer::new(Sgd::default(), 0.1))
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder.join("table"))
        .build()?;
    let rows = Dataset::from_arrays([("id", Array::from([1i64, 2, 3])), ("y", Array::from([1f32, 2.0, 3.0]))]);
    model.train(TrainSpec::new(rows.label("y").batch(3)).max_steps(1))?;
    let latest = model.latest_checkpoint()?.ok_or(Error::data("no checkpoint"))?;
    let (mut exports, mut checkpoints, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..3 {
        let start = Instant::now();
        let reader = BundleReader::open(&latest)?;
        let values: Vec<(String, Array)> =
            reader.names().map(|name| Ok((name.to_string(), reader.read(name)?))).collect::<Result<_>>()?;
        reads.push(ms(start));
        let start = Instant::now();
        let mut writer = BundleWriter::create(folder.join(format!("copy-{round}")))?;
        for (name, value) in &values {
            writer.add(name, value)?;
        }
        writer.finish()?;
        checkpoints.push(ms(start));
        drop(values);
        let start = Instant::now();
        let export = model.export_saved_model(folder.join("tables"), ExportSpec::default())?;
        let whole = ms(start);
        // The check reads the file once more.
        let reader = BundleReader::open(export.join("variables/variables"))?;
        let start = Instant::now();
        for name in reader.names() {
            reader.verify(name)?;
        }
        exports.push(whole - ms(start));
    }
    let (read, checkpoint, export) = (median(reads), median(checkpoints), median(exports));
    println!("# table: read {read:.0} ms, checkpoint {checkpoint:.0} ms, export without its check {export:.0} ms");
    println!("table_ratio = {:.2}", export / (read + checkpoint));
    Ok(())
}

fn main() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("estimand-bench-export-{}", std::process::id()));
    census_figures(&folder)?;
    if std::env::args().any(|argument| argument == "--table") {
        let large = folder.join("large");
        std::fs::create_dir_all(&large).map_err(|e| Error::io(&large, "make", &e))?;
        table_figure(&large)?;
        std::fs::remove_dir_all(&large).map_err(|e| Error::io(&large, "remove", &e))?;
    }
    Ok(())
}
