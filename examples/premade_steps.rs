//! The four steps of a program with a premade Estimator: an input function, feature columns, an
//! Estimator, its methods. They are in the articles "TensorFlow 2 Estimator" and "TensorFlow
//! Higher-Level APIs".
//!
//! What differs from the articles: they name no data, so districts are made up here, whose class
//! depends on a weighted sum of the three features; the model is evaluated as well.
//!
//! `cargo run --release --example premade_steps`

use estimand::console::{self, Level};
use estimand::prelude::*;
use estimand::tensor::random::{Key, Stream};

const N_ROWS: usize = 4_000;

/// Districts: people in millions, crimes a year for each 100 people, years at school, and whether
/// rents rise.
struct Districts {
    population: Vec<f32>,
    crime_rate: Vec<f32>,
    median_education: Vec<f32>,
    is_rising: Vec<i64>,
}

impl Districts {
    fn new(seed: u64) -> Districts {
        let uniform = |name: &str, low: f32, high: f32| -> Vec<f32> {
            let mut values = vec![0.0f32; N_ROWS];
            Stream::new(Key::new(seed, name), 0).fill_uniform_f32(0, 1, &mut values);
            values.into_iter().map(|v| low + (high - low) * v).collect()
        };
        let population = uniform("population", 0.0, 2.0);
        let crime_rate = uniform("crime_rate", 0.0, 4.0);
        let median_education = uniform("median_education", 8.0, 16.0);
        let sum = |i: usize| 2.0 * population[i] - crime_rate[i] + 0.5 * (median_education[i] - 12.0);
        let is_rising = (0..N_ROWS).map(|i| i64::from(sum(i) > 0.0)).collect();
        Districts { population, crime_rate, median_education, is_rising }
    }

    /// Step 1: features by name, and the label.
    fn input_fn(&self) -> Dataset {
        let features = [
            ("population", Array::from(self.population.clone())),
            ("crime_rate", Array::from(self.crime_rate.clone())),
            ("median_education", Array::from(self.median_education.clone())),
            ("is_rising", Array::from(self.is_rising.clone())),
        ];
        Dataset::from_arrays(features).label("is_rising")
    }
}

fn main() -> Result<()> {
    console::verbosity(Level::Info);
    let (train, test) = (Districts::new(1), Districts::new(2));
    let my_training_set = train.input_fn().shuffle(N_ROWS, 7).repeat_forever().batch(64);

    // Step 2: three numeric feature columns.
    let global_education_mean = train.median_education.iter().sum::<f32>() / N_ROWS as f32;
    let population = numeric_column("population");
    let crime_rate = numeric_column("crime_rate");
    let median_education = numeric_column("median_education").normalizer(move |x| x - global_education_mean);

    // Step 3: an Estimator, from the feature columns.
    let columns: Columns = [population, crime_rate, median_education].into_iter().collect();
    let estimator = LinearClassifier::new(columns).config(RunConfig::new().tf_random_seed(1)).build()?;

    // Step 4: training, evaluation.
    estimator.train(TrainSpec::new(my_training_set).steps(2_000))?;
    let metrics = estimator.evaluate(test.input_fn().batch(500))?;
    println!("\n{metrics}\n");
    println!("steps = {}", metrics.global_step());
    println!("accuracy = {:.4}", metrics["accuracy"]);
    println!("majority = {:.4}", metrics["accuracy_baseline"]);
    Ok(())
}
