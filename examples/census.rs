//! A wide and deep model of incomes in the census of 1994: the main program of the README.
//!
//! One pass over the training rows learns vocabularies, bucket boundaries and the scale of numbers,
//! which are then fixed in the model. The model is trained, evaluated, predicts the income of some
//! persons, and is exported for TensorFlow. The model folder stays, for TensorBoard and for a
//! second run, which resumes from it.
//!
//! `cargo run --release --example census [-- MAX_STEPS [MODEL_FOLDER]]`

use estimand::console::{self, Level};
use estimand::data::datasets;
use estimand::export::ExportSpec;
use estimand::prelude::*;
use estimand::tensor::Feature;
use estimand::{Adapted, adapt_once};

const NUMBERS: [&str; 5] = ["age", "educational-num", "capital-gain", "capital-loss", "hours-per-week"];
const STRINGS: [&str; 8] =
    ["workclass", "education", "marital-status", "occupation", "relationship", "race", "gender", "native-country"];

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let mut arguments = std::env::args().skip(1);
    let max_steps = arguments
        .next()
        .map_or(Ok(2_000), |text| text.parse().map_err(|_| Error::config(format!("`{text}` is no number of steps"))))?;
    let new_folder = || std::env::temp_dir().join(format!("estimand-census-{}", std::process::id()));
    let folder = arguments.next().map_or_else(new_folder, Into::into);

    let (train, test) = (datasets::load("adult", "train")?, datasets::load("adult", "test")?);
    let (wide, deep) = columns(&adapt_once(&folder, &train.dataset())?)?;
    let classifier = DnnLinearCombinedClassifier::new()
        .linear_feature_columns(wide)
        .dnn_feature_columns(deep)
        .dnn_hidden_units([100, 50])
        .dnn_optimizer(Optimizer::new(Adagrad::default(), 0.05))
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(&folder)
        .build()?;

    let rows = train.dataset().shuffle(40_000, 7).repeat_forever().batch(256);
    println!("{}\n", classifier.train(TrainSpec::new(rows).max_steps(max_steps))?);
    let metrics = classifier.evaluate(test.dataset().batch(1_000))?;
    println!("{metrics}\n");

    println!(
        "Six persons that it has not seen, and how likely it thinks they have an income {}:",
        train.info().classes[1]
    );
    for (person, answer) in
        test.dataset().take(6).batch(1).iter().zip(classifier.predict(test.dataset().take(6).batch(6)))
    {
        let (person, answer) = (person?, answer?);
        let text = |name: &str| -> Result<String> {
            match person.feature(name)? {
                Feature::Dense(value) if value.dtype() == DType::Str => {
                    Ok(value.strings()?.map(String::from_utf8_lossy).collect())
                }
                Feature::Dense(value) => Ok(value.as_slice::<i32>()?[0].to_string()),
                Feature::Ragged(_) => Err(Error::internal("census rows are dense")),
            }
        };
        let likely = 100.0 * answer.f32("probabilities")?[1];
        println!(
            "  {likely:5.1} %  aged {}, {}, {}, {} hours a week",
            text("age")?,
            text("education")?,
            text("occupation")?,
            text("hours-per-week")?
        );
    }
    let export = classifier.export_saved_model(folder.join("export"), ExportSpec::default())?;
    println!("\nThe model is in {0}; see it with: tensorboard --logdir {0}", folder.display());
    println!("TensorFlow loads its export with: tf.saved_model.load(\"{}\")", export.display());
    println!("export = {}", export.display());
    println!("auc = {:.4}", metrics["auc"]);
    Ok(())
}

/// The columns of the linear and of the deep part. The values learned from the rows are fixed in
/// them.
fn columns(adapted: &Adapted) -> Result<(Columns, Columns)> {
    let (mut wide, mut deep): (Vec<FeatureColumn>, Vec<FeatureColumn>) = (Vec::new(), Vec::new());
    for name in STRINGS {
        let column = adapted.vocabulary(name, 1_000)?;
        deep.push(embedding_column(&column, 8).into());
        wide.push(column.into());
    }
    for name in NUMBERS {
        deep.push(adapted.z_score(numeric_column(name))?.into());
    }
    for name in ["age", "hours-per-week", "educational-num"] {
        wide.push(adapted.bucketized(&numeric_column(name), 10)?.into());
    }
    wide.push(crossed_column(["education", "occupation"], 1_000).into());
    wide.push(crossed_column(["relationship", "occupation"], 1_000).into());
    Ok((wide.into(), deep.into()))
}
