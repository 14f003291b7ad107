//! The census columns of TensorFlow's wide and deep tutorial, for benchmarks and for comparisons
//! with TensorFlow.

use std::path::Path;

use estimand::data::datasets;
use estimand::nn::column::ColumnKey;
use estimand::prelude::*;
use estimand::tensor::{Batch, Feature};

/// Numeric columns, with the mean and the deviation of the training set.
pub const NUMBERS: [(&str, f64, f64); 5] = [
    ("age", 38.58, 13.64),
    ("educational-num", 10.08, 2.57),
    ("capital-gain", 1077.65, 7385.18),
    ("capital-loss", 87.30, 402.95),
    ("hours-per-week", 40.44, 12.35),
];

/// String columns, with their number of hash buckets.
pub const STRINGS: [(&str, usize); 8] = [
    ("workclass", 100),
    ("education", 100),
    ("marital-status", 100),
    ("occupation", 1000),
    ("relationship", 100),
    ("race", 100),
    ("gender", 100),
    ("native-country", 1000),
];

/// Hashed strings, ages in buckets, and two crosses.
pub fn wide() -> Columns {
    let ages = [18.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 55.0, 60.0, 65.0];
    let age = bucketized_column(&numeric_column("age"), ages);
    let mut columns: Vec<FeatureColumn> = vec![
        (&age).into(),
        crossed_column(["education", "occupation"], 10_000).into(),
        crossed_column([ColumnKey::from(&age), "education".into(), "occupation".into()], 100_000).into(),
    ];
    columns.extend(STRINGS.map(|(name, n)| categorical_column_with_hash_bucket(name, n).into()));
    columns.into()
}

/// The numbers, unchanged or standardised, and embeddings of the strings.
pub fn deep(standardised: bool) -> Columns {
    let mut columns: Vec<FeatureColumn> = NUMBERS
        .iter()
        .map(|&(name, mean, stddev)| match standardised {
            true => numeric_column(name).z_score(mean, stddev).into(),
            false => numeric_column(name).into(),
        })
        .collect();
    columns.extend(STRINGS.map(|(name, n)| embedding_column(categorical_column_with_hash_bucket(name, n), 8).into()));
    columns.into()
}

/// Writes a split as CSV, with incomes as text as in the original file.
pub fn write_csv(split: &str, path: &Path) -> Result<()> {
    let adult = datasets::load("adult", split)?;
    let classes = adult.info().classes;
    let named = adult.dataset().batch(1_000).map(move |batch| {
        let mut all = Batch::new();
        for (name, feature) in batch.features() {
            all = all.with_feature(name, feature.clone())?;
        }
        let Some(Feature::Dense(labels)) = batch.labels().get("income") else {
            return Err(Error::internal("census rows without incomes"));
        };
        let names = labels.as_slice::<i64>()?.iter().map(|&class| classes[class as usize]);
        all.with_feature("income", Array::from_strings([batch.n_rows()], names)?)
    });
    named.unbatch().write_csv(path).map(drop)
}
