//! The rows and the model that tests of recurrent estimators share.

use estimand::nn::column::sequence_categorical_column_with_vocabulary_list;
use estimand::prelude::*;
use estimand::tensor::{Feature, Ragged};

use crate::models::Folder;

/// Words, and the age of who wrote them. A label is `colour`, whether each word is one, or `label`.
pub fn sentences(label: Option<&str>) -> Dataset {
    let words = ["red", "car", "blue", "sky", "green", "car", "red", "red", "car", "sky"];
    let colours: Vec<i64> = words.iter().map(|word| i64::from(["red", "blue", "green"].contains(word))).collect();
    let splits = [0, 3, 5, 5, 9, 10];
    let words = Ragged::new(Array::from_strings([10], words).unwrap(), splits).unwrap();
    let colours = Ragged::new(Array::from(colours), splits).unwrap();
    let mut rows = vec![("word", Feature::from(words)), ("age", Array::from([1f32, 2.0, 3.0, 4.0, 5.0]).into())];
    rows.extend(match label {
        Some("colour") => Some(("colour", colours.into())),
        Some(name) => Some((name, Array::from([1i64, 0, 0, 1, 0]).into())),
        None => None,
    });
    let data = Dataset::from_arrays(rows);
    label.into_iter().fold(data, |data, name| data.label(name))
}

pub fn words() -> Columns {
    let words = sequence_categorical_column_with_vocabulary_list("word", ["red", "blue", "green", "car", "sky"]);
    columns![embedding_column(words, 3)]
}

pub fn of_rows() -> Dataset {
    sentences(Some("label"))
}

pub fn of_steps() -> Dataset {
    sentences(Some("colour"))
}

pub fn seeded(folder: &Folder) -> RnnClassifier {
    let age = numeric_column("age").z_score(3.0, 1.5);
    let config = RunConfig::new().tf_random_seed(3);
    RnnClassifier::new(words()).context_feature_columns(columns![age]).config(config).model_dir(folder.path())
}
