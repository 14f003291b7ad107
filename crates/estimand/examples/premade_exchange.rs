//! Our side of trainings that TensorFlow's premade estimators and ours do in turns (oracles/live/premade.py).
//!
//! `train PREMADE FOLDER ROWS.csv BATCH MAX_STEPS` trains in a model folder until the step, `train_and_evaluate` with SAVE_STEPS and
//! THROTTLE_SECS more evaluates on the same rows in between; `evaluate PREMADE FOLDER ROWS.csv` prints
//! every metric as `key = value`; `rows SPLIT ROWS.csv` writes rows of the census.

use estimand::console::{self, Level};
use estimand::data::Csv;
use estimand::prelude::*;

#[path = "../../../benches/census.rs"]
mod census;

const INCOME: [&str; 2] = ["<=50K", ">50K"];
const RACES: [&str; 5] = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"];

/// The estimator of a name, and the column of its labels.
fn estimator(name: &str, folder: &str, config: RunConfig) -> Result<(Estimator, &'static str)> {
    let standardised = !name.ends_with("_raw");
    let (wide, deep) = (census::wide(), census::deep(standardised));
    let plain = name.trim_end_matches("_raw");
    Ok(match plain {
        "baseline" => {
            (BaselineClassifier::new().label_vocabulary(INCOME).config(config).model_dir(folder).build()?, "income")
        }
        "linear" => {
            (LinearClassifier::new(wide).label_vocabulary(INCOME).config(config).model_dir(folder).build()?, "income")
        }
        "linear_numbers" => {
            let numbers = &deep[..census::NUMBERS.len()];
            let linear = LinearRegressor::new(numbers).optimizer("SGD").weight_column("educational-num");
            (
                linear.optimizer(Optimizer::new(Sgd::default(), 0.0001)).config(config).model_dir(folder).build()?,
                "capital-loss",
            )
        }
        "baseline_numbers" => (BaselineRegressor::new().config(config).model_dir(folder).build()?, "hours-per-week"),
        "dnn_numbers" => (DnnRegressor::new([20], deep).config(config).model_dir(folder).build()?, "hours-per-week"),
        "combined_numbers" => {
            let combined = DnnLinearCombinedRegressor::new().linear_feature_columns(wide).dnn_feature_columns(deep);
            (combined.dnn_hidden_units([20]).config(config).model_dir(folder).build()?, "hours-per-week")
        }
        "dnn" => (
            DnnClassifier::new([100, 50], deep).label_vocabulary(INCOME).config(config).model_dir(folder).build()?,
            "income",
        ),
        "dnn_races" => {
            let dnn = DnnClassifier::new([20], deep).n_classes(5).label_vocabulary(RACES).batch_norm(true);
            (dnn.optimizer("Adam").activation_fn(Activation::Tanh).config(config).model_dir(folder).build()?, "race")
        }
        "combined" => {
            let combined = DnnLinearCombinedClassifier::new().linear_feature_columns(wide).dnn_feature_columns(deep);
            let combined = combined.dnn_hidden_units([100, 50]).label_vocabulary(INCOME);
            (combined.config(config).model_dir(folder).build()?, "income")
        }
        _ => return Err(Error::config(format!("no premade estimator `{name}`"))),
    })
}

/// The label stays among the features: models leave alone what they have no column for.
fn rows(path: &str, label: &'static str) -> Dataset {
    Csv::new(path).dataset().map(move |batch| {
        let labels = batch.feature(label)?.clone();
        batch.with_label(label, labels)
    })
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &str| text.parse::<u64>().map_err(|_| Error::config(format!("`{text}` is no number")));
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["train", name, folder, path, batch, max_steps] => {
            let (estimator, label) = estimator(name, folder, RunConfig::new())?;
            let batches = rows(path, label).repeat_forever().batch(number(batch)? as usize, false);
            estimator.train(TrainSpec::new(batches).max_steps(number(max_steps)?))?;
        }
        ["train_and_evaluate", name, folder, path, batch, max_steps, save_steps, throttle_secs] => {
            let config = RunConfig::new().save_checkpoints(Every::Steps(number(save_steps)?));
            let (estimator, label) = estimator(name, folder, config)?;
            let batches = rows(path, label).repeat_forever().batch(number(batch)? as usize, false);
            let evaluate = EvalSpec::new(rows(path, label).batch(1_000, false));
            estimator.train_and_evaluate(
                TrainSpec::new(batches).max_steps(number(max_steps)?),
                evaluate.throttle_secs(number(throttle_secs)? as f64),
            )?;
        }
        ["evaluate", name, folder, path] => {
            let (estimator, label) = estimator(name, folder, RunConfig::new())?;
            for (key, value) in estimator.evaluate(rows(path, label).batch(1_000, false))?.iter() {
                println!("{key} = {value}");
            }
        }
        ["rows", split, path] => census::write_csv(split, path.as_ref())?,
        _ => {
            let help = "train PREMADE FOLDER ROWS.csv BATCH MAX_STEPS, or evaluate PREMADE FOLDER ROWS.csv";
            return Err(Error::config("what to do?").help(help));
        }
    }
    Ok(())
}
