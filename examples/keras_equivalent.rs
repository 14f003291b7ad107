//! A sequential model and its functional equivalent, and a model that is used as a function: it is
//! called on a tensor, and its loss is minimized by hand. Both are in the part "the functional
//! model" of the article "Keras and Estimator".
//!
//! What differs from the article: it names no data, and the digits of 8 x 8 pixels have the sizes
//! of its models; the loss, the optimizer and the number of steps are made up; the graph of the
//! hand-written training has weights of its own, which are copied into both models afterwards.
//!
//! `cargo run --release --example keras_equivalent`

use estimand::data::datasets;
use estimand::keras::{Functional, Input, Model, Sequential};
use estimand::nn::loss::{Loss, SparseSoftmaxCrossEntropy};
use estimand::prelude::*;
use estimand::tensor::Feature;

/// All rows of a dataset: pixels from 0 to 1, and classes.
fn arrays(rows: Dataset) -> Result<(Array, Array)> {
    let rows = rows.batch(usize::MAX).iter().next().ok_or_else(|| Error::config("no digits"))??;
    let (pixels, classes) = (rows.features().values().next(), rows.labels().values().next());
    let (Some(Feature::Dense(pixels)), Some(Feature::Dense(classes))) = (pixels, classes) else {
        return Err(Error::config("digits without pixels or classes"));
    };
    let pixels = pixels.to_f64_vec()?.iter().map(|&pixel| pixel as f32 / 16.0).collect();
    Ok((Array::from_vec([classes.len(), 64], pixels)?, classes.clone()))
}

fn main() -> Result<()> {
    // The sequential model.
    let mut seq_model = Sequential::new()
        .input([64])
        .add(Dense::new(32).relu())
        .add(Dense::new(32).relu())
        .add(Dense::new(10).softmax())
        .build()?;

    // Its functional equivalent.
    let input_tensor = Input::new([64]).tensor();
    let x = Dense::new(32).relu().on(&input_tensor);
    let x = Dense::new(32).relu().on(&x);
    let output_tensor = Dense::new(10).softmax().on(&x);
    let mut model = Model::new(&input_tensor, &output_tensor)?;
    println!("{}", model.summary());

    // The model as a function.
    let g = Graph::new();
    let input = g.placeholder("input", DType::F32, [Dim::BATCH, 64.into()]);
    let y = g.placeholder("y", DType::I64, [Dim::BATCH]);
    let y_hat = model.call(&input)?.remove(0);
    let loss = SparseSoftmaxCrossEntropy::new().from_probabilities().apply(&y, &y_hat);
    let train = Optimizer::new(Sgd::default(), 0.5).minimize(&loss);

    let (train_rows, test_rows) = datasets::load("digits", "train")?.validation_split(0.2)?;
    let ((images, labels), (test_images, test_labels)) = (arrays(train_rows.dataset())?, arrays(test_rows.dataset())?);
    let feeds = [(&input, images), (&y, labels)];
    let mut session = Session::new(&g)?;
    println!("first_loss = {}", session.run(&[&loss], &feeds)?[0]);
    for _ in 0..500 {
        session.run(&[&train], &feeds)?;
    }
    println!("last_loss = {}", session.run(&[&loss], &feeds)?[0]);

    // The two models with the weights of the training.
    let names: Vec<String> = model.weight_names().map(str::to_string).collect();
    let weights = names.iter().map(|name| session.value(name)).collect::<Result<Vec<Array>>>()?;
    model.set_weights(&weights)?;
    seq_model.set_weights(&weights)?;
    let probabilities = session.run(&[&y_hat], &[(&input, test_images.clone())])?.remove(0);
    let classes = model.predict_classes(&test_images)?;
    let pairs = classes.as_slice::<i64>()?.iter().zip(test_labels.as_slice::<i64>()?);
    let n_right = pairs.filter(|(found, expected)| found == expected).count();
    println!("accuracy = {:.4}", n_right as f64 / classes.len() as f64);
    println!("sequential_apart = {}", apart(&seq_model.predict(&test_images)?, &model.predict(&test_images)?)?);
    println!("called_apart = {}", apart(&probabilities, &model.predict(&test_images)?)?);
    Ok(())
}

/// The largest difference of two arrays of one size.
fn apart(a: &Array, b: &Array) -> Result<f32> {
    assert_eq!(a.dims(), b.dims());
    Ok(a.as_slice::<f32>()?.iter().zip(b.as_slice::<f32>()?).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max))
}
