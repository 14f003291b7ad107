//! Iris flowers with a premade estimator: a deep classifier is trained from a CSV file, evaluated,
//! and predicts the species of three flowers. It is the program of the article "Keras and
//! Estimator", in its part about Estimators.
//!
//! What differs from the article: the CSV files are written first, from the embedded data set;
//! after the article's eight epochs training goes on up to `MAX_STEPS`; the optimizer is that of a
//! `DNNClassifier` when the article was written (Adagrad, 0.05), but the loss of a batch is a mean,
//! as in TensorFlow 2, and not a sum; flowers are predicted. There is no `my_input_fn`: a `Dataset`
//! is made where it is used. The model folder is a temporary one.
//!
//! `cargo run --release --example iris [-- MAX_STEPS]`

use estimand::console::{self, Level};
use estimand::data::{Csv, datasets};
use estimand::prelude::*;

const MEASURES: [&str; 4] = ["SepalLength", "SepalWidth", "PetalLength", "PetalWidth"];

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let max_steps = std::env::args()
        .nth(1)
        .map_or(Ok(1_000), |text| text.parse().map_err(|_| Error::config(format!("`{text}` is no number of steps"))))?;
    let folder = std::env::temp_dir().join(format!("estimand-iris-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::io(&folder, "make", &e))?;

    // Typical input files.
    let iris = datasets::load("iris", "train")?;
    let (train, test) = iris.validation_split(0.2)?;
    let (train_file, test_file) = (folder.join("iris_training.csv"), folder.join("iris_test.csv"));
    train.dataset().write_csv(&train_file)?;
    test.dataset().write_csv(&test_file)?;

    let columns: Columns = MEASURES.map(numeric_column).into_iter().collect();
    let classifier = DnnClassifier::new([10, 10], columns)
        .n_classes(3)
        .optimizer(Optimizer::new(Adagrad::default(), 0.05))
        .config(RunConfig::new().tf_random_seed(1))
        .model_dir(folder.join("model"))
        .build()?;

    // Eight epochs; then training continues up to a number of steps.
    let rows = Csv::new(&train_file).label("Species").dataset().shuffle(1_000, 7);
    println!("{}", classifier.train(rows.repeat(8).batch(32))?);
    println!("{}", classifier.train(TrainSpec::new(rows.repeat_forever().batch(32)).max_steps(max_steps))?);
    let test_rows = Csv::new(&test_file).label("Species").dataset();
    let metrics = classifier.evaluate(test_rows.repeat(4).batch(32))?;
    println!("\n{metrics}\n\naccuracy = {:.3}", metrics["accuracy"]);

    // Three flowers, one of each kind.
    let names = iris.info().classes;
    let asked = [[5.1f32, 5.9, 6.9], [3.3, 3.0, 3.1], [1.7, 4.2, 5.4], [0.5, 1.5, 2.1]].map(Array::from);
    let asked = Dataset::from_arrays(MEASURES.into_iter().zip(asked)).batch(3);
    for (prediction, expected) in classifier.predict(asked).zip(names) {
        let prediction = prediction?;
        let class = prediction.i64("class_ids")?[0] as usize;
        let probability = prediction.f32("probabilities")?[class];
        println!("a {} ({:.1} %), expected {expected}", names[class], 100.0 * probability);
    }
    let _ = std::fs::remove_dir_all(folder);
    Ok(())
}
