//! MNIST with Keras' first program: a dense layer of 512 units, a softmax over ten digits, SGD,
//! five epochs, then the classes of new images. It is the sequential model of the article "Keras
//! and Estimator".
//!
//! What differs from the article: it names no data, and MNIST has the sizes of its model;
//! `nb_epoch` is called `epochs`, as in Keras 2; the share of right classes is counted at the end.
//!
//! `cargo run --release --example keras_sequential -- FOLDER`, where FOLDER (or
//! `$ESTIMAND_DATA/mnist`) holds the four IDX files. Without them it is an error.

use std::path::PathBuf;

use estimand::data::datasets::{Folder, one_hot};
use estimand::data::image::to_unit;
use estimand::keras::{Compile, Evaluate, Fit, Predict, Sequential};
use estimand::prelude::*;
use estimand::tensor::Feature;

/// Returns the images of one split as rows of 784 numbers from 0 to 1, and their classes.
fn load(folder: &Folder, split: &str) -> Result<(Array, Array)> {
    let rows = folder.load("mnist", split)?.dataset().batch(usize::MAX);
    let rows = rows.iter().next().ok_or_else(|| Error::config("no images"))??;
    let (images, classes) = (rows.features().values().next(), rows.labels().values().next());
    let (Some(Feature::Dense(images)), Some(Feature::Dense(classes))) = (images, classes) else {
        return Err(Error::config("MNIST without images or classes"));
    };
    Ok((to_unit(images)?.reshape([classes.len(), 28 * 28])?, classes.clone()))
}

fn main() -> Result<()> {
    let folder = match std::env::args().nth(1).map(PathBuf::from) {
        Some(path) => Folder::new(path),
        None => Folder::from_env().map_err(|e| e.help("set it, or name the folder of MNIST's four IDX files"))?,
    };
    let ((x_train, train_classes), (x_test, test_classes)) = (load(&folder, "train")?, load(&folder, "test")?);
    let (y_train, y_test) = (one_hot(&train_classes, 10)?, one_hot(&test_classes, 10)?);

    let mut model =
        Sequential::new().input([28 * 28]).add(Dense::new(512).relu()).add(Dense::new(10).softmax()).build()?;
    println!("{}", model.summary());
    model.compile(Compile::new("sgd", "categorical_crossentropy").metric("accuracy"))?;
    model.fit(Fit::new((x_train, y_train)).epochs(5).batch_size(32).verbose(2))?;

    let logs = model.evaluate(Evaluate::new((&x_test, &y_test)).batch_size(32))?;
    let classes = model.predict_classes(Predict::new(&x_test).batch_size(32))?;
    let pairs = classes.as_slice::<i64>()?.iter().zip(test_classes.as_slice::<i64>()?);
    let n_right = pairs.filter(|(found, expected)| found == expected).count();
    println!("loss = {:.4}", logs["loss"]);
    println!("accuracy = {:.4}", logs["accuracy"]);
    println!("right_classes = {:.4}", n_right as f64 / classes.len() as f64);
    Ok(())
}
