//! A Keras model as an Estimator: `model_to_estimator`, `train_and_evaluate`, and an export, as in
//! the articles "TensorFlow 2 Estimator" and "TensorFlow Higher-Level APIs". Their networks are in
//! the examples `transfer` and `inception_estimator`; this one is small.
//!
//! `cargo run --release --example keras_estimator`

use estimand::export::Receiver;
use estimand::keras::{Compile, Sequential, model_to_estimator};
use estimand::prelude::*;

/// Rows of four numbers; the class is the position of the largest.
fn rows(n: usize, offset: usize) -> Result<Dataset> {
    let number = |i: usize| (((i + offset) * 7919) % 1009) as f32 / 1009.0;
    let x: Vec<f32> = (0..4 * n).map(number).collect();
    let largest = |row: &[f32]| (0..4).fold(0, |best, i| if row[i] > row[best] { i } else { best }) as i64;
    let y: Vec<i64> = x.chunks(4).map(largest).collect();
    let arrays = [("numbers", Array::from_vec([n, 4], x)?), ("largest", Array::from_vec([n], y)?)];
    Ok(Dataset::from_arrays(arrays).label("largest"))
}

fn main() -> Result<()> {
    let mut model = Sequential::new()
        .input(estimand::keras::Input::new([4]).name("numbers"))
        .add(Dense::new(64).relu())
        .add(Dense::new(4).softmax().name("largest"))
        .build()?;
    let adam = Optimizer::keras(Adam::default(), 0.005);
    model.compile(Compile::new(adam, "sparse_categorical_crossentropy").metric("accuracy"))?;

    let folder = std::env::temp_dir().join(format!("estimand-keras-estimator-{}", std::process::id()));
    let estimator = model_to_estimator(model)?.model_dir(&folder).build()?;
    let train = rows(4_000, 0)?.shuffle(4_000, 3).repeat_forever().batch(64);
    let test = rows(500, 50_021)?.batch(100);
    estimator.train_and_evaluate(TrainSpec::new(&train).max_steps(2_000), EvalSpec::new(&test))?;
    let metrics = estimator.evaluate(&test)?;
    let export = estimator.export_saved_model(folder.join("export"), Receiver::like(&test)?)?;
    println!("exported = {}", i32::from(export.join("saved_model.pb").exists()));
    println!("steps = {}", metrics.global_step());
    println!("accuracy = {:.4}", metrics["accuracy"]);
    std::fs::remove_dir_all(&folder).map_err(|e| Error::io(&folder, "remove", &e))
}
