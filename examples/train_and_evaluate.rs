//! Training with evaluations in between: incomes in the census of 1994, evaluated on two sets and
//! by gender, with early stopping and a report.
//!
//! The training rows are evaluated beside unseen rows. When the two diverge, the model overfits.
//!
//! `cargo run --release --example train_and_evaluate [-- MODEL_FOLDER]`

use std::path::PathBuf;

use estimand::adapt_once;
use estimand::console::{self, Level};
use estimand::data::datasets;
use estimand::prelude::*;

const NUMBERS: [&str; 5] = ["age", "educational-num", "capital-gain", "capital-loss", "hours-per-week"];
const STRINGS: [&str; 8] =
    ["workclass", "education", "marital-status", "occupation", "relationship", "race", "gender", "native-country"];

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let new_folder = || std::env::temp_dir().join(format!("estimand-train-and-evaluate-{}", std::process::id()));
    let folder: PathBuf = std::env::args().nth(1).map_or_else(new_folder, Into::into);

    let (train, test) = (datasets::load("adult", "train")?, datasets::load("adult", "test")?);
    let adapted = adapt_once(&folder, &train.dataset())?;
    let mut columns: Vec<FeatureColumn> = Vec::new();
    for name in STRINGS {
        columns.push(embedding_column(&adapted.vocabulary(name, 1_000)?, 8).into());
    }
    for name in NUMBERS {
        columns.push(adapted.z_score(numeric_column(name))?.into());
    }
    let classifier = DnnClassifier::new([256, 128], columns)
        .optimizer(Optimizer::new(Adam::default(), 0.002))
        .slice_by("gender", ["Female", "Male"])
        .config(RunConfig::new().tf_random_seed(1).save_checkpoints(Every::Steps(200)))
        .model_dir(&folder)
        .build()?;

    let rows = train.dataset().shuffle(40_000, 7).repeat_forever().batch(256);
    let trained = classifier.train_and_evaluate(
        TrainSpec::new(rows).max_steps(10_000),
        [
            EvalSpec::new(test.dataset().batch(1_000))
                .name("test")
                .every(Every::Steps(200))
                .early_stopping(EarlyStopping::higher_is_better("auc").patience(3)),
            EvalSpec::new(train.dataset().take(10_000).batch(1_000)).name("seen").every(Every::Steps(200)),
        ],
    )?;

    println!(" step   auc of test   auc of rows it has seen");
    let (unseen, seen) = (trained.evaluation("test")?, trained.evaluation("seen")?);
    for (unseen, seen) in unseen.history.iter().zip(&seen.history) {
        println!("{:5}   {:11.4}   {:23.4}", unseen.global_step(), unseen["auc"], seen["auc"]);
    }
    let best = unseen.best.as_ref().ok_or_else(|| Error::internal("nothing was evaluated"))?;

    let (report, page) = (classifier.report()?.examine(&train.dataset())?, folder.join("report.html"));
    report.write_html(&page)?;
    println!("\n{report}\nThe same with curves, for a browser: {}", page.display());
    println!("auc = {:.4}", best["auc"]);
    println!("stopped_early = {}", i32::from(trained.finished.reason.starts_with("early stopping")));
    Ok(())
}
