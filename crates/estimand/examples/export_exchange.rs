//! Our side of exports that TensorFlow loads (oracles/live/export.py).
//!
//! `CASE ROWS.tfrecord FOLDER` trains a model for a few steps, exports it twice, with raw features
//! and Examples to `FOLDER/both` and with Examples only to `FOLDER/parsing`, and writes its own
//! predictions of the rows to `FOLDER/predictions.tfrecord`. Our own reader must give them too.

use std::path::{Path, PathBuf};

use estimand::export::{ExportSpec, Receiver};
use estimand::head::MultiHead;
use estimand::inspect;
use estimand::nn::column::{shared_embeddings, weighted_categorical_column};
use estimand::prelude::*;
use estimand::premade::DnnEstimator;
use estimand::tensor::{BatchSpec, Feature};

#[path = "export_cases/own.rs"]
mod own;
#[path = "export_cases/read_back.rs"]
mod read_back;

const JOBS: [&str; 5] = ["nurse", "cook", "clerk", "pilot", "K\u{f6}nig"];
const TAGS: [&str; 4] = ["a", "b", "c", "d"];

fn rows(path: &str) -> Dataset {
    let features: BatchSpec = [
        ("age", FeatureSpec::dense(DType::I64, [])),
        ("height", FeatureSpec::dense(DType::F32, [])),
        ("vec", FeatureSpec::dense(DType::F32, [3])),
        ("pixels", FeatureSpec::dense(DType::F32, own::PIXELS)),
        ("job", FeatureSpec::dense(DType::Str, [])),
        ("words", FeatureSpec::ragged(DType::Str)),
        ("steps", FeatureSpec::ragged(DType::F32)),
        ("ids", FeatureSpec::ragged(DType::I64)),
        ("tags", FeatureSpec::ragged(DType::Str)),
        ("weights", FeatureSpec::ragged(DType::F32)),
        ("binary", FeatureSpec::dense(DType::I64, [])),
        ("class", FeatureSpec::dense(DType::I64, [])),
        ("target", FeatureSpec::dense(DType::F32, [])),
    ]
    .into_iter()
    .map(|(name, spec)| (name.to_string(), spec))
    .collect();
    Dataset::from_tfrecord(path, features)
}

fn wide() -> Columns {
    let height = bucketized_column(&numeric_column("height"), [-1.0, 0.0, 0.5, 2.0]);
    let jobs = categorical_column_with_vocabulary_list("job", JOBS).n_oov_buckets(3);
    let tags = categorical_column_with_vocabulary_list("tags", TAGS).default_value(0);
    columns![
        height.clone(),
        jobs,
        categorical_column_with_hash_bucket("words", 50),
        categorical_column_with_identity("ids", 20).default_value(7),
        weighted_categorical_column(tags, "weights"),
        crossed_column(["job", "words"], 100),
        numeric_column("vec").shape([3]),
    ]
}

fn deep(folder: &Path, jobs: &[&str]) -> Result<Columns> {
    let file = folder.join("jobs.txt");
    std::fs::write(&file, jobs.join("\n")).map_err(|e| Error::io(&file, "write", &e))?;
    let jobs = categorical_column_with_vocabulary_file("job", &file);
    let words = categorical_column_with_hash_bucket("words", 50);
    let tags = categorical_column_with_vocabulary_list("tags", TAGS);
    let looked_up: [FeatureColumn; 2] = [words.clone().into(), categorical_column_with_hash_bucket("job", 50).into()];
    let shared = shared_embeddings(looked_up, 3);
    let mut all: Vec<FeatureColumn> = shared.columns().into_iter().map(FeatureColumn::from).collect();
    all.extend([
        numeric_column("height").into(),
        numeric_column("vec").shape([3]).into(),
        indicator_column(jobs).into(),
        embedding_column(words, 4).into(),
        embedding_column(weighted_categorical_column(tags, "weights"), 2).into(),
        indicator_column(categorical_column_with_identity("ids", 20).default_value(7)).into(),
    ]);
    Ok(all.into())
}

/// The model of a case, its columns, and the labels that it trains with.
fn model(case: &str, folder: &Path) -> Result<(Estimator, Columns, Vec<&'static str>)> {
    // The same model with other weights and another order of a vocabulary.
    let again = case.strip_suffix("_again");
    let (case, seed) = (again.unwrap_or(case), if again.is_some() { 2 } else { 1 });
    let mut jobs = JOBS;
    if again.is_some() {
        jobs.reverse();
    }
    let (config, model_dir) = (RunConfig::new().tf_random_seed(seed), folder.join("model"));
    if let Some((function, columns, label)) = own::model(case) {
        return Ok((Estimator::new(function).config(config).model_dir(model_dir).build()?, columns, vec![label]));
    }
    let (wide, deep) = (wide(), deep(folder, &jobs)?);

    macro_rules! built {
        ($builder:expr, $columns:expr, $label:expr) => {
            ($builder.config(config).model_dir(model_dir).build()?, $columns, vec![$label])
        };
    }
    let both = || [&wide.clone()[..], &deep.clone()[..]].concat().into();
    Ok(match case {
        "baseline" => built!(BaselineClassifier::new().n_classes(3), Columns::default(), "class"),
        "linear" => built!(LinearClassifier::new(wide.clone()), wide, "binary"),
        "linear_classes" => built!(LinearClassifier::new(wide.clone()).n_classes(3), wide, "class"),
        "linear_regressor" => built!(LinearRegressor::new(wide.clone()), wide, "target"),
        "dnn" => built!(DnnClassifier::new([8, 4], deep.clone()), deep, "binary"),
        "dnn_classes" => built!(DnnClassifier::new([8, 4], deep.clone()).n_classes(3), deep, "class"),
        "dnn_batch_norm" => built!(DnnRegressor::new([8, 4], deep.clone()).batch_norm(true), deep, "target"),
        "combined" => {
            let combined = DnnLinearCombinedClassifier::new().linear_feature_columns(wide.clone());
            built!(combined.dnn_feature_columns(deep.clone()).dnn_hidden_units([8]), both(), "binary")
        }
        "combined_regressor" => {
            let combined = DnnLinearCombinedRegressor::new().linear_feature_columns(wide.clone());
            built!(combined.dnn_feature_columns(deep.clone()).dnn_hidden_units([8]), both(), "target")
        }
        "heads" => {
            let heads = MultiHead::new()
                .head(BinaryClassHead::new().name("binary"))
                .head(MultiClassHead::new(3).name("class"))
                .head(RegressionHead::new().name("target"));
            let dnn = DnnEstimator::new(heads, [8], deep.clone()).config(config).model_dir(model_dir);
            (dnn.build()?, deep, vec!["binary", "class", "target"])
        }
        _ => return Err(Error::config(format!("there is no case `{case}`"))),
    })
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, file, folder] = &arguments[..] else {
        return Err(Error::config("usage: export_exchange CASE ROWS.tfrecord FOLDER"));
    };
    let folder = Path::new(folder);
    let (model, columns, labels) = model(case, folder)?;
    let rows = rows(file);
    let unused = ["binary", "class", "target"];
    let features = rows.map(move |batch| {
        let mut kept = batch.features().iter().filter(|(name, _)| !unused.contains(&&***name));
        kept.try_fold(estimand::tensor::Batch::new(), |kept, (name, feature)| kept.with_feature(name, feature.clone()))
    });
    let labelled = labels.iter().fold(rows, |rows, label| rows.label(label));
    model.train(TrainSpec::new(labelled.repeat_forever().batch(64)).max_steps(30))?;
    // One batch: a sequence is padded to the longest of its batch, and some models see the padding.
    let predictions = model.predict(features.batch(10_000)).dataset()?;
    predictions.write_tfrecord(folder.join("predictions.tfrecord"))?;
    // Models without a head have no signatures over Examples beside their predictions.
    let has_head = !matches!(&**case, "custom" | "layers");
    let receiver = match columns.is_empty() || !has_head {
        true => Receiver::like(&features)?,
        false => Receiver::like(&features)?.and_examples(columns.clone())?,
    };
    let both = ExportSpec::new(receiver).asset_extra("notes/rows.tfrecord", file);
    let show = |kind: &str, export: PathBuf| {
        let (path, text) = (folder.join(kind).with_extension("txt"), inspect::saved_model(&export)?.to_string());
        std::fs::write(&path, text).map_err(|e| Error::io(&path, "write", &e))?;
        println!("{kind} = {}", export.display());
        Ok::<_, Error>(())
    };
    show("both", model.export_saved_model(folder.join("both"), both)?)?;
    if !columns.is_empty() {
        let parsing = model.export_saved_model(folder.join("parsing"), Receiver::columns(columns)?)?;
        show("parsing", parsing.clone())?;
        let whole = |data: &Dataset| data.iter().next().unwrap_or_else(|| Err(Error::data("no rows")));
        let Feature::Dense(jobs) = whole(&features.batch(10_000))?.feature("job")?.clone() else { return Ok(()) };
        read_back::check(&parsing, file, &whole(&predictions)?, &jobs)?;
    }
    Ok(())
}
