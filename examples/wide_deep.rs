//! A wide and deep model of incomes in the census of 1994, trained for six epochs with an
//! evaluation after every second one: a port of `official/wide_deep` of TensorFlow's models.
//!
//! `cargo run --release --example wide_deep [-- wide | deep | wide_deep]`

use estimand::console::{self, Level};
use estimand::data::datasets;
use estimand::nn::column::ColumnKey;
use estimand::prelude::*;

const EPOCHS: u64 = 6;
const BATCH: usize = 40;
/// Two epochs of 32,561 rows.
const STEPS_BETWEEN_EVALS: u64 = 2 * 32_561 / BATCH as u64;
const AGES: [f64; 10] = [18.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0];

/// The columns of the wide and of the deep part.
fn columns() -> (Columns, Columns) {
    let education = categorical_column_with_vocabulary_list(
        "education",
        [
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
        ],
    );
    let marital_status = categorical_column_with_vocabulary_list(
        "marital-status",
        [
            "Married-civ-spouse",
            "Divorced",
            "Married-spouse-absent",
            "Never-married",
            "Separated",
            "Married-AF-spouse",
            "Widowed",
        ],
    );
    let relationship = categorical_column_with_vocabulary_list(
        "relationship",
        ["Husband", "Not-in-family", "Wife", "Own-child", "Unmarried", "Other-relative"],
    );
    let workclass = categorical_column_with_vocabulary_list(
        "workclass",
        [
            "Self-emp-not-inc",
            "Private",
            "State-gov",
            "Federal-gov",
            "Local-gov",
            "?",
            "Self-emp-inc",
            "Without-pay",
            "Never-worked",
        ],
    );
    let occupation = categorical_column_with_hash_bucket("occupation", 1_000);
    let buckets = bucketized_column(&numeric_column("age"), AGES);

    let wide = columns![
        &education,
        &marital_status,
        &relationship,
        &workclass,
        &occupation,
        &buckets,
        crossed_column(["education", "occupation"], 1_000),
        crossed_column([ColumnKey::from(&buckets), "education".into(), "occupation".into()], 1_000),
    ];
    let mut deep = columns![
        indicator_column(workclass),
        indicator_column(education),
        indicator_column(marital_status),
        indicator_column(relationship),
        embedding_column(occupation, 8),
    ]
    .to_vec();
    let numbers = ["age", "educational-num", "capital-gain", "capital-loss", "hours-per-week"];
    deep.extend(numbers.map(|name| numeric_column(name).into()));
    (wide, deep.into())
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let (wide, deep) = columns();
    let units = [100, 75, 50, 25];
    let config = RunConfig::new().tf_random_seed(1);
    let deep_optimizer = || Optimizer::new(Adagrad::default(), 0.05);
    let model = match std::env::args().nth(1).as_deref() {
        Some("wide") => LinearClassifier::new(wide).config(config).build()?,
        Some("deep") => DnnClassifier::new(units, deep).optimizer(deep_optimizer()).config(config).build()?,
        None | Some("wide_deep") => DnnLinearCombinedClassifier::new()
            .linear_feature_columns(wide)
            .dnn_feature_columns(deep)
            .dnn_hidden_units(units)
            .dnn_optimizer(deep_optimizer())
            .config(config)
            .build()?,
        Some(other) => return Err(Error::config(format!("`{other}` is none of wide, deep and wide_deep"))),
    };

    let (train, test) = (datasets::load("adult", "train")?, datasets::load("adult", "test")?);
    let rows = train.dataset().shuffle(40_000, 7).repeat(EPOCHS).batch(BATCH);
    let test_rows = test.dataset().batch(1_000);
    let evaluation = EvalSpec::new(&test_rows).every(Every::Steps(STEPS_BETWEEN_EVALS)).highest_is_best("auc");
    let trained = model.train_and_evaluate(&rows, evaluation)?;
    for metrics in &trained.evaluations[0].history {
        println!("Results at step {}\n{metrics}\n", metrics.global_step());
    }
    let auc = model.evaluate(EvalSpec::new(&test_rows).best())?["auc"];

    let people = test.dataset().take(3).batch(3);
    for (i, answer) in model.predict(PredictSpec::new(people).best()).enumerate() {
        let answer = answer?;
        let class = answer.i64("class_ids")?[0] as usize;
        let probability = answer.f32("probabilities")?[class];
        println!("person {i}: {} ({:.1} %)", test.info().classes[class], 100.0 * probability);
    }
    println!("auc = {auc:.4}");
    Ok(())
}
