//! A model of incomes for the server: train, export, serve, ask.
//!
//! ```sh
//! cargo run --release -p estimand-serve --example serve_census -- train /tmp/census
//! cargo run --release -p estimand-serve --example serve_census -- export /tmp/census
//! cargo run --release -p estimand-serve -- --model_name=census --model_base_path=/tmp/census/export
//! curl localhost:8501/v1/models/census:predict -d '{"instances": [{"age": 39, "education": "Bachelors",
//!     "occupation": "Adm-clerical", "hours-per-week": 40}]}'
//! ```

use std::path::Path;

use estimand::data::datasets;
use estimand::export::Receiver;
use estimand::prelude::*;
use estimand::tensor::Batch;

/// The features that a caller sends.
const FEATURES: [&str; 4] = ["age", "education", "occupation", "hours-per-week"];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["train", folder] => train(Path::new(folder)),
        ["export", folder] => export(Path::new(folder)),
        _ => Err(Error::config("expected train FOLDER or export FOLDER")),
    }
}

fn columns() -> (Columns, Columns) {
    let education = categorical_column_with_hash_bucket("education", 50);
    let occupation = categorical_column_with_hash_bucket("occupation", 50);
    let age = bucketized_column(&numeric_column("age"), [18.0, 25.0, 30.0, 40.0, 50.0, 60.0]);
    let wide = columns![&education, &occupation, age, crossed_column(["education", "occupation"], 500)];
    let hours =
        numeric_column("hours-per-week").default_value(40.0).normalizer(|hours| (hours.cast(DType::F32) - 40.0) / 12.0);
    let deep = columns![hours, embedding_column(education, 8), embedding_column(occupation, 8)];
    (wide, deep)
}

fn model(folder: &Path) -> Result<Estimator> {
    let (wide, deep) = columns();
    DnnLinearCombinedClassifier::new()
        .linear_feature_columns(wide)
        .dnn_feature_columns(deep)
        .dnn_hidden_units([32, 16])
        .dnn_optimizer(Optimizer::new(Adagrad::default(), 0.05))
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder.join("model"))
        .build()
}

/// The features that callers send, without the label and the others.
fn features() -> Result<Dataset> {
    let only = |batch: Batch| {
        FEATURES.iter().try_fold(Batch::new(), |kept, name| kept.with_feature(name, batch.feature(name)?.clone()))
    };
    Ok(datasets::load("adult", "train")?.dataset().map(only))
}

fn train(folder: &Path) -> Result<()> {
    let rows = datasets::load("adult", "train")?.dataset().shuffle(40_000, 7).repeat_forever().batch(256);
    let test = datasets::load("adult", "test")?.dataset().batch(1_000);
    let model = model(folder)?;
    model.train(TrainSpec::new(rows).max_steps(1_000))?;
    println!("auc = {:.4}", model.evaluate(test)?["auc"]);
    Ok(())
}

fn export(folder: &Path) -> Result<()> {
    let (wide, deep) = columns();
    let columns: Columns = [&wide[..], &deep[..]].concat().into();
    let receiver = Receiver::like(&features()?)?.and_examples(columns)?;
    let export = model(folder)?.export_saved_model(folder.join("export"), receiver)?;
    println!("exported to {}", export.display());
    Ok(())
}
