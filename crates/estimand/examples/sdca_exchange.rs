//! Our side of linear models that TensorFlow's `LinearSDCA` and ours train in turns
//! (oracles/live/sdca.py).
//!
//! `train SETTINGS FOLDER ROWS.csv MAX_STEPS` trains in a model folder until the step, one row in
//! each; `export SETTINGS FOLDER ROWS.csv EXPORTS` exports it and prints the folder. SETTINGS are
//! `classifier` or `regressor`, the number of parts of the table, and L1: `classifier,2,0.1`.

use estimand::console::{self, Level};
use estimand::data::Csv;
use estimand::export::Receiver;
use estimand::prelude::*;
use estimand::premade::LinearSdca;

fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.parse().map_err(|_| Error::config(format!("`{text}` is no number")))
}

fn model(settings: &str, folder: &str) -> Result<Estimator> {
    let [kind, n_shards, l1] = settings.split(',').collect::<Vec<_>>()[..] else {
        return Err(Error::config(format!("the settings are `{settings}`")).help("write `classifier,2,0.1`"));
    };
    let sdca = LinearSdca::new("id").num_table_shards(number(n_shards)?).symmetric_l1_regularization(number(l1)?);
    let city = categorical_column_with_hash_bucket("city", 5);
    let columns = columns![numeric_column("a"), numeric_column("b"), city];
    match kind {
        "classifier" => {
            LinearClassifier::new(columns).weight_column("weight").optimizer(sdca).model_dir(folder).build()
        }
        _ => LinearRegressor::new(columns).weight_column("weight").optimizer(sdca).model_dir(folder).build(),
    }
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["train", settings, folder, rows, max_steps] => {
            let rows = Csv::new(rows).label("y").dataset().repeat_forever().batch(1);
            model(settings, folder)?.train(TrainSpec::new(rows).max_steps(number(max_steps)?))?;
        }
        ["export", settings, folder, rows, exports] => {
            let receiver = Receiver::like(&Csv::new(rows).select(["a", "b", "city"]).dataset())?;
            println!("{}", model(settings, folder)?.export_saved_model(exports, receiver)?.display());
        }
        _ => {
            let help = "train SETTINGS FOLDER ROWS.csv MAX_STEPS, or export SETTINGS FOLDER ROWS.csv EXPORTS";
            return Err(Error::config("what to do?").help(help));
        }
    }
    Ok(())
}
