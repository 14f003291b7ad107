//! Incomes in the census of 1994 with a hand-written model function, which has feature columns but
//! neither a premade network nor a head: a port of the `census` custom estimator of TensorFlow's
//! samples.
//!
//! The model is evaluated during training. Training ends when the evaluations no longer improve,
//! and returns to the best checkpoint.
//!
//!     cargo run --release --example custom_census

use estimand::console::{self, Level};
use estimand::data::datasets;
use estimand::nn::metric;
use estimand::prelude::*;

const EDUCATION: [&str; 16] = [
    "Bachelors",
    "HS-grad",
    "11th",
    "Masters",
    "9th",
    "Some-college",
    "Assoc-acdm",
    "Assoc-voc",
    "7th-8th",
    "Doctorate",
    "Prof-school",
    "5th-6th",
    "10th",
    "1st-4th",
    "Preschool",
    "12th",
];
const RELATIONSHIP: [&str; 6] = ["Husband", "Not-in-family", "Wife", "Own-child", "Unmarried", "Other-relative"];

fn columns() -> Columns {
    let education = categorical_column_with_vocabulary_list("education", EDUCATION);
    let relationship = categorical_column_with_vocabulary_list("relationship", RELATIONSHIP);
    let gender = categorical_column_with_vocabulary_list("gender", ["Female", "Male"]);
    let occupation = categorical_column_with_hash_bucket("occupation", 100);
    columns![
        numeric_column("age").z_score(38.6, 13.7),
        numeric_column("capital-gain").z_score(1_079.0, 7_452.0),
        numeric_column("capital-loss").z_score(87.5, 403.0),
        numeric_column("hours-per-week").z_score(40.4, 12.4),
        indicator_column(gender),
        indicator_column(relationship),
        embedding_column(education, 8),
        embedding_column(occupation, 8),
    ]
}

fn census(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let mut net = input_layer(cx.features(), columns());
    for units in cx.params().usizes("hidden_units")? {
        net = Dense::new(units).relu().apply(&net);
    }
    let logits = Dense::new(1).apply(&net);
    let probability = logits.sigmoid();
    let class = logits.greater(0.0).cast(DType::I64);
    let spec = EstimatorSpec::new(cx).prediction("probability", &probability).prediction("class", &class);
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }

    let label = cx.label().cast(DType::F32).expand_dims(-1);
    let loss = SigmoidCrossEntropy::new().apply(&label, &logits);
    Ok(spec
        .loss(&loss)
        .optimizer(Optimizer::new(Adagrad::default(), cx.params().f64("learning_rate")?))
        .metric("accuracy", metric::binary_accuracy(&label, &probability, 0.5, None))
        .metric("auc", metric::auc(&label, &probability, None)))
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let (train, test) = (datasets::load("adult", "train")?, datasets::load("adult", "test")?);
    let model = Estimator::new(census)
        .params(HParams::new().set("hidden_units", vec![100, 70, 50]).set("learning_rate", 0.05))
        .config(RunConfig::new().tf_random_seed(1).save_checkpoints(Every::Steps(250)))
        .build()?;

    let rows = train.dataset().shuffle(40_000, 7).repeat_forever().batch(256);
    let stopping = EarlyStopping::higher_is_better("auc").patience(2).restore_best();
    let test_rows = test.dataset().batch(1_000);
    let trained = model.train_and_evaluate(
        TrainSpec::new(rows).max_steps(5_000),
        EvalSpec::new(&test_rows).every(Every::Steps(250)).early_stopping(stopping),
    )?;
    println!("{trained}\n");
    let metrics = model.evaluate(&test_rows)?;

    for answer in model.predict(PredictSpec::new(test.dataset().take(4).batch(4)).forward(["occupation"])) {
        let answer = answer?;
        let (class, probability) = (answer.i64("class")?[0], answer.f32("probability")?[0]);
        println!("{:<18} class {class}, probability {probability:.3}", answer.text("occupation")?);
    }
    println!("accuracy = {:.4}", metrics["accuracy"]);
    println!("auc = {:.4}", metrics["auc"]);
    Ok(())
}
