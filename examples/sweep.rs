//! A sweep: a deep classifier of Iris flowers with twelve learning rates and layers. The best model
//! predicts the test rows, which are written to a CSV file.
//!
//! `cargo run --release --example sweep [-- FOLDER]`

use std::path::PathBuf;

use estimand::data::datasets;
use estimand::prelude::*;
use estimand::sweep::Trial;
use estimand::{Sweep, Trained};

fn model(trial: &Trial) -> Result<Estimator> {
    let measures = ["SepalLength", "SepalWidth", "PetalLength", "PetalWidth"];
    let columns: Columns = measures.map(numeric_column).into_iter().collect();
    DnnClassifier::new(trial.params().usizes("hidden_units")?, columns)
        .n_classes(3)
        .optimizer(Optimizer::new(Adagrad::default(), trial.params().f64("learning_rate")?))
        .params(trial.params().clone())
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(trial.model_dir())
        .build()
}

fn main() -> Result<()> {
    let temporary = std::env::temp_dir().join(format!("estimand-sweep-{}", std::process::id()));
    let named = std::env::args().nth(1).map(PathBuf::from);
    let folder = named.clone().unwrap_or_else(|| temporary.clone());
    let (train, test) = datasets::load("iris", "train")?.validation_split(0.3)?;
    let (train, test) = (train.dataset().shuffle(150, 7), test.dataset());

    let swept = Sweep::new(&folder)
        .over("learning_rate", [0.003, 0.01, 0.03, 0.1])
        .over("hidden_units", [vec![4], vec![10, 10], vec![32, 16]])
        .run(|trial| -> Result<Trained> {
            let rows = TrainSpec::new(train.repeat_forever().batch(32)).max_steps(300).report(&train);
            model(trial)?.train_and_evaluate(rows, EvalSpec::new(test.batch(45)).every(Every::Steps(20)))
        })?;
    println!("{swept}\n");

    let best = swept.best()?;
    let file = folder.join("predictions.csv");
    let spec = PredictSpec::new(test.batch(100)).forward(["Species"]).keys(["class_ids", "probabilities"]);
    let written = Estimator::open(best.model_dir())?.predict(spec).write_csv(&file)?;
    println!("best = {}\nrows = {}", best.name(), written.n_rows);
    println!("accuracy = {:.3}", best.metrics().map_or(0.0, |metrics| metrics["accuracy"]));
    if named.is_some() {
        println!("report = {}", folder.join("report.html").display());
    }
    let _ = std::fs::remove_dir_all(temporary);
    Ok(())
}
