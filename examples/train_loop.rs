//! One `train` call for each epoch over arrays in memory: handwritten digits. It is the work flow
//! of the article "tensorflow estimator", with `numpy_input_fn` (here `input_fn::arrays`).
//!
//! What differs from the article: it names no data and leaves the model function empty, so both are
//! made up here, with a seed; its array of features has no name; it does not evaluate. The model
//! folder is a temporary one.
//!
//! `cargo run --release --example train_loop`

use estimand::data::{datasets, input_fn};
use estimand::nn::metric;
use estimand::prelude::*;

const N_EPOCHS: usize = 8;

fn model_fn(cx: &ModelFnContext<'_>) -> Result<EstimatorSpec> {
    let net = Flatten::new().apply(&(cx.feature("pixels").cast(DType::F32) / 16.0));
    let net = Dense::new(64).relu().apply(&net);
    let logits = Dense::new(10).apply(&net);
    let spec = EstimatorSpec::new(cx).prediction("digit", &logits.argmax(-1));
    if cx.mode() == Mode::Predict {
        return Ok(spec);
    }
    let loss = logits.sparse_softmax_cross_entropy(&cx.label()).mean();
    let accuracy = metric::sparse_categorical_accuracy(&cx.label(), &logits, None);
    Ok(spec.loss(&loss).optimizer(Optimizer::new(Adam::default(), 0.003)).metric("accuracy", accuracy))
}

/// Returns all rows of a dataset as arrays.
fn arrays(data: Dataset) -> Result<(Array, Array)> {
    let batch = data.batch(usize::MAX).iter().next().ok_or_else(|| Error::config("no rows"))??;
    let dense = |feature: &estimand::tensor::Feature| match feature {
        estimand::tensor::Feature::Dense(array) => Ok(array.clone()),
        estimand::tensor::Feature::Ragged(_) => Err(Error::shape("rows of different length")),
    };
    let (pixels, label) = (batch.features().values().next(), batch.labels().values().next());
    match pixels.zip(label) {
        Some((pixels, label)) => Ok((dense(pixels)?, dense(label)?)),
        None => Err(Error::config("digits without pixels or labels")),
    }
}

fn main() -> Result<()> {
    let (train, test) = datasets::load("digits", "train")?.validation_split(0.2)?;
    let (x, y) = arrays(train.dataset())?;
    let (test_x, test_y) = arrays(test.dataset())?;

    let classifier = Estimator::new(model_fn).config(RunConfig::new().tf_random_seed(1)).build()?;
    let train_input = input_fn::arrays([("pixels", x)]).labels(y).batch_size(64).n_epochs(Some(1)).shuffle(true);
    let test_input = input_fn::arrays([("pixels", test_x)]).labels(test_y).batch_size(512).shuffle(false);

    for epoch in 1..=N_EPOCHS {
        let finished = classifier.train(&train_input)?;
        let metrics = classifier.evaluate(&test_input)?;
        println!("epoch {epoch}: step {}, accuracy {:.4}", finished.global_step, metrics["accuracy"]);
    }
    println!("accuracy = {:.4}", classifier.evaluate(&test_input)?["accuracy"]);
    println!("steps = {}", classifier.evaluate(&test_input)?.global_step());
    Ok(())
}
