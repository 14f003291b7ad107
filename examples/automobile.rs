//! What does a car cost? A linear and a deep regression on columns of the data set imports-85: a
//! port of the `regression` samples of TensorFlow 1.
//!
//! The cars are made up: `examples/data/automobiles.py` has the formula of the price.
//!
//!     cargo run --release --example automobile

use estimand::console::{self, Level};
use estimand::data::Csv;
use estimand::prelude::*;
use estimand::tensor::{Feature, FeatureSpec};

const CARS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/automobiles.csv");
const STYLES: [&str; 5] = ["convertible", "hardtop", "hatchback", "sedan", "wagon"];

fn prices(feature: &Feature) -> Result<&[f32]> {
    match feature {
        Feature::Dense(price) => price.as_slice(),
        Feature::Ragged(_) => Err(Error::internal("a price is one number")),
    }
}

/// Returns the cars whose price is known, which is then in thousands: training rows and test rows.
fn cars() -> [Dataset; 2] {
    let number = || FeatureSpec::dense_or(Array::scalar(0.0f32));
    let numbers = ["curb-weight", "highway-mpg", "price"].map(|name| (name, number()));
    let cars = Csv::new(CARS)
        .header(false)
        .column_names(["make", "body-style", "curb-weight", "highway-mpg", "price"])
        .features(numbers)
        .na_values(["?"])
        .dataset()
        .filter(|cars| Ok(prices(cars.feature("price")?)?.iter().map(|&price| price > 0.0).collect()))
        .map(|cars| {
            let thousands: Vec<f32> = prices(cars.feature("price")?)?.iter().map(|price| price / 1000.0).collect();
            let others = cars.features().iter().filter(|(name, _)| &***name != "price");
            let row = others.map(|(name, feature)| (name, feature.clone()));
            row.into_iter()
                .try_fold(estimand::tensor::Batch::new(), |batch, (name, feature)| batch.with_feature(name, feature))?
                .with_label("price", Array::from(thousands))
        });
    [cars.take(420), cars.skip(420)]
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

    let linear = LinearRegressor::new([(&weight).into(), (&mpg).into(), (&style).into(), (&make).into()])
        .config(config.clone())
        .build()?;
    let linear_error = error(&linear, &train, &test)?;

    let deep = DnnRegressor::new(
        [20, 20],
        [weight.into(), mpg.into(), indicator_column(style).into(), embedding_column(make, 3).into()],
    )
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
