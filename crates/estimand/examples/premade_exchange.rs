//! Our side of trainings that TensorFlow's premade estimators and ours do in turns
//! (oracles/live/premade.py).
//!
//! `train PREMADE FOLDER ROWS.csv BATCH MAX_STEPS` trains in a model folder until the step,
//! `train_and_evaluate` with SAVE_STEPS and THROTTLE_SECS more evaluates on the same rows in
//! between; `evaluate PREMADE FOLDER ROWS.csv` prints every metric as `key = value`;
//! `rows SPLIT ROWS.csv` writes rows of the census.

use estimand::console::{self, Level};
use estimand::data::Csv;
use estimand::head::MultiHead;
use estimand::nn::column::shared_embeddings;
use estimand::prelude::*;
use estimand::premade::OptimizerChoice;
use estimand::premade::{DnnLinearCombinedEstimator, LinearEstimator};
use estimand::update::{Adadelta, Adamax, Nadam};

#[path = "../../../benches/census.rs"]
mod census;

const INCOME: [&str; 2] = ["<=50K", ">50K"];
const RACES: [&str; 5] = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"];

const HOURS: &str = "hours-per-week";
/// Of which no row has the first.
const TERMS: [&str; 11] = [
    "Nobody",
    "Private",
    "State-gov",
    "Self-emp-inc",
    "?",
    "Federal-gov",
    "Sales",
    "Tech-support",
    "Adm-clerical",
    "Exec-managerial",
    "Craft-repair",
];

/// Columns that some rows have no ids of.
fn gappy() -> [FeatureColumn; 2] {
    ["workclass", "occupation"].map(|name| categorical_column_with_vocabulary_list(name, TERMS).into())
}

/// The first so many numbers, standardised, and vectors of those columns.
fn numbers_and_gappy(n: usize) -> Vec<FeatureColumn> {
    let vectors = gappy().map(|column| embedding_column(column, 4).into());
    [&census::deep(true)[..n], &vectors].concat()
}

/// One table of vectors for both.
fn shared(trainable: bool) -> Columns {
    let shared = shared_embeddings(gappy(), 4).shared_embedding_collection_name("words").trainable(trainable);
    shared.columns().into_iter().map(FeatureColumn::from).collect::<Vec<_>>().into()
}

/// The first so many of three heads.
fn heads(n: usize) -> MultiHead {
    let income = BinaryClassHead::new().name("income").label_vocabulary(INCOME);
    let heads = MultiHead::new().head(income).weighted_head(0.5, RegressionHead::new().name(HOURS));
    match n {
        2 => heads,
        _ => heads.weighted_head(2.0, MultiClassHead::new(5).name("race").label_vocabulary(RACES)),
    }
}

/// The optimizers that premade.py has under these names.
fn optimizer(name: &str) -> OptimizerChoice {
    match name {
        "momentum" => Optimizer::new(Sgd::default().momentum(0.9), 0.01).into(),
        "nesterov" => Optimizer::new(Sgd::default().momentum(0.9).nesterov(true), 0.01).into(),
        "centered" => Optimizer::new(RmsProp::default().momentum(0.5).centered(true), 0.002).into(),
        "amsgrad" => Optimizer::new(Adam::default().amsgrad(true), 0.002).into(),
        "regularized" => Optimizer::new(Ftrl::default().l1(0.001).l2(0.01), 0.05).into(),
        "Adadelta" => Optimizer::new(Adadelta::default(), 0.5).into(),
        "Adamax" => Optimizer::new(Adamax::default(), 0.002).into(),
        "Nadam" => Optimizer::new(Nadam::default(), 0.002).into(),
        by_name => by_name.into(),
    }
}

/// The estimator of a name, and the columns of its labels.
fn estimator(name: &str, folder: &str, config: RunConfig) -> Result<(Estimator, Vec<&'static str>)> {
    let more = |label: &'static str, built: Result<Estimator>| Ok((built?, vec![label]));
    match name {
        "heads_2" => {
            let combined = DnnLinearCombinedEstimator::new(heads(2)).linear_feature_columns(gappy());
            let combined =
                combined.dnn_feature_columns(numbers_and_gappy(census::NUMBERS.len())).dnn_hidden_units([20]);
            Ok((combined.config(config).model_dir(folder).build()?, vec!["income", HOURS]))
        }
        "heads_3" => {
            let linear =
                LinearEstimator::new(heads(3), [&gappy(), &census::deep(true)[..census::NUMBERS.len()]].concat());
            Ok((linear.config(config).model_dir(folder).build()?, vec!["income", HOURS, "race"]))
        }
        "shared" | "shared_frozen" => {
            let dnn = DnnRegressor::new([10], shared(name == "shared"));
            more(HOURS, dnn.config(config).model_dir(folder).build())
        }
        _ => match name.strip_prefix("optimizer_") {
            Some(key) => {
                let dnn = DnnClassifier::new([10], numbers_and_gappy(1)).label_vocabulary(INCOME);
                more("income", dnn.optimizer(optimizer(key)).config(config).model_dir(folder).build())
            }
            None => single(name, folder, config).map(|(estimator, label)| (estimator, vec![label])),
        },
    }
}

/// The estimators of one label, with raw numbers or standardised ones.
fn single(name: &str, folder: &str, config: RunConfig) -> Result<(Estimator, &'static str)> {
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
fn rows(path: &str, labels: &[&'static str]) -> Dataset {
    let labels = labels.to_vec();
    Csv::new(path).dataset().map(move |mut batch| {
        for &label in &labels {
            let values = batch.feature(label)?.clone();
            batch = batch.with_label(label, values)?;
        }
        Ok(batch)
    })
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &str| text.parse::<u64>().map_err(|_| Error::config(format!("`{text}` is no number")));
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["train", name, folder, path, batch, max_steps] => {
            let (estimator, labels) = estimator(name, folder, RunConfig::new())?;
            let batches = rows(path, &labels).repeat_forever().batch(number(batch)? as usize);
            estimator.train(TrainSpec::new(batches).max_steps(number(max_steps)?))?;
        }
        ["train_and_evaluate", name, folder, path, batch, max_steps, save_steps, throttle_secs] => {
            let config = RunConfig::new().save_checkpoints(Every::Steps(number(save_steps)?));
            let (estimator, labels) = estimator(name, folder, config)?;
            let batches = rows(path, &labels).repeat_forever().batch(number(batch)? as usize);
            let evaluate = EvalSpec::new(rows(path, &labels).batch(1_000));
            estimator.train_and_evaluate(
                TrainSpec::new(batches).max_steps(number(max_steps)?),
                evaluate.throttle_secs(number(throttle_secs)? as f64),
            )?;
        }
        ["evaluate", name, folder, path] => {
            let (estimator, labels) = estimator(name, folder, RunConfig::new())?;
            for (key, value) in estimator.evaluate(rows(path, &labels).batch(1_000))?.iter() {
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
