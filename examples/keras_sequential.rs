//! MNIST with Keras' first program: a dense layer of 512 units, a softmax over ten digits, Adam,
//! five epochs. It is the sequential model of the article "Keras and Estimator", which trains with
//! SGD on one-hot labels.
//!
//! `cargo run --release --example keras_sequential -- FOLDER`, where FOLDER (or
//! `$ESTIMAND_DATA/mnist`) holds the four IDX files. Without them it is an error.

use std::path::PathBuf;

use estimand::data::datasets::Folder;
use estimand::keras::{Compile, Fit, Sequential};
use estimand::prelude::*;

/// Returns batches of one split, with pixels from 0 to 1.
fn input(folder: &Folder, split: &str) -> Result<Dataset> {
    let rows = folder.load("mnist", split)?.dataset();
    let rows = if split == "train" { rows.shuffle(60_000, 7) } else { rows };
    Ok(rows.batch(128).map_feature("image", estimand::data::image::to_unit))
}

fn main() -> Result<()> {
    let folder = match std::env::args().nth(1).map(PathBuf::from) {
        Some(path) => Folder::new(path),
        None => Folder::from_env().map_err(|e| e.help("set it, or name the folder of MNIST's four IDX files"))?,
    };
    let (train, test) = (input(&folder, "train")?, input(&folder, "test")?);

    let mut model = Sequential::new()
        .input([28, 28, 1])
        .add(Flatten::new())
        .add(Dense::new(512).relu())
        .add(Dense::new(10).softmax())
        .build()?;
    println!("{}", model.summary());
    model.compile(Compile::new("adam", "sparse_categorical_crossentropy").metric("accuracy"))?;
    model.fit(Fit::new(&train).epochs(5).verbose(2))?;

    let logs = model.evaluate(&test)?;
    println!("loss = {:.4}", logs["loss"]);
    println!("accuracy = {:.4}", logs["accuracy"]);
    Ok(())
}
