//! What does a car cost? A linear and a deep regression on columns of the data set imports-85: a
//! port of the `regression` samples of TensorFlow 1.
//!
//! The cars are made up: `examples/data/automobiles.py` has the formula of the price.
//!
//!     cargo run --release --example automobile

use estimand::console::{self, Level};
use estimand::data::Csv;
use estimand::prelude::*;

const CARS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/automobiles.csv");
const STYLES: [&str; 5] = ["convertible", "hardtop", "hatchback", "sedan", "wagon"];

/// Returns the cars whose price is known, which is then in thousands: training rows and test rows.
fn cars() -> [Dataset; 2] {
    let number = || FeatureSpec::dense_or(Array::scalar(0.0f32));
    Csv::new(CARS)
        .header(false)
        .column_names(["make", "body-style", "curb-weight", "highway-mpg", "price"])
        .features(["curb-weight", "highway-mpg", "price"].map(|name| (name, number())))
        .na_values(["?"])
        .label("price")
        .dataset()
        .filter(|cars| {
            Ok(cars.labels()["price"].dense()?.as_slice::<f32>()?.iter().map(|&price| price > 0.0).collect())
        })
        .map_feature("price", |price| price / 1000.0)
        .split([0.7, 0.3], 7)
}

/// Trains a model. Returns the root of its mean squared error on the test rows, in dollars.
fn error(model: &Estimator, train: &Dataset, test: &Dataset) -> Result<f64> {
    let rows = train.shuffle(1_000, 7).repeat_forever().batch(128);
    model.train(TrainSpec::new(rows).steps(3_000))?;
    let metrics = model.evaluate(test.batch(128))?;
    Ok(1000.0 * metrics["average_loss"].sqrt())
}

fn main() -> Result<()> {
    console::verbosity(Level::Warn);
    let [train, test] = cars();
    let weight = numeric_column("curb-weight").z_score(2_750.0, 720.0);
    let mpg = numeric_column("highway-mpg").z_score(28.0, 9.0);
    let style = categorical_column_with_vocabulary_list("body-style", STYLES);
    let make = categorical_column_with_hash_bucket("make", 200);
    let config = RunConfig::new().tf_random_seed(1);

    let linear = LinearRegressor::new(columns![&weight, &mpg, &style, &make]).config(config.clone()).build()?;
    let linear_error = error(&linear, &train, &test)?;

    let columns = columns![weight, mpg, indicator_column(style), embedding_column(make, 3)];
    let deep = DnnRegressor::new([20, 20], columns)
        .optimizer(Optimizer::new(Adagrad::default(), 0.1))
        .config(config)
        .build()?;
    let deep_error = error(&deep, &train, &test)?;

    let questions = [
        ("make", Array::from_strings([2], ["dodge", "jaguar"])?),
        ("body-style", Array::from_strings([2], ["hatchback", "sedan"])?),
        ("curb-weight", Array::from([2_000f32, 3_500.0])),
        ("highway-mpg", Array::from([37f32, 18.0])),
    ];
    for (car, answer) in ["dodge", "jaguar"].iter().zip(deep.predict(Dataset::from_arrays(questions).batch(2))) {
        println!("a {car} costs about {:.0} dollars", 1000.0 * answer?.f32("predictions")?[0]);
    }
    println!("linear_error = {linear_error:.0}");
    println!("deep_error = {deep_error:.0}");
    Ok(())
}
