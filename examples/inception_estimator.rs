//! InceptionV3 as an Estimator: a network of `keras.applications`, compiled with SGD, through
//! `model_to_estimator`. It is the program "from a Keras model" of the article "TensorFlow
//! Higher-Level APIs".
//!
//! `cargo run --release --example inception_estimator [EPOCHS]`
//!
//! What differs from the article: it names no data, so the images are pieces of three photographs
//! in `examples/data/photographs` (CC0 and in the public domain), there are 3 classes instead of
//! 1000, and 6 images in a batch instead of 128. As in the article, training ends with the data or
//! after 2000 steps; an epoch has 2 steps. The weights are random, so a few steps show the way, not
//! a result. The images are scaled as InceptionV3 expects; the model is evaluated at the end.

use std::path::Path;

use estimand::data::datasets::one_hot;
use estimand::data::image::{self, Method};
use estimand::data::input_fn;
use estimand::keras::{Compile, applications, model_to_estimator};
use estimand::prelude::*;

const CLASSES: [&str; 3] = ["cat", "coffee", "rocket"];
/// The width of the photographs, which are 256 pixels high.
const WIDTH: usize = 384;
/// The height and width of pieces.
const PIECE: usize = 128;

/// Four pieces of each photograph in the size that InceptionV3 was made for, and one-hot labels.
fn pieces() -> Result<(Array, Array)> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for (i, class) in (0i64..).zip(CLASSES) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/data/photographs/{class}.jpg"));
        let bytes = std::fs::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let photograph = image::decode(&bytes, Some(3))?;
        let photograph = photograph.as_slice::<u8>()?;
        for (top, left) in [(0, 0), (0, PIECE), (PIECE, 0), (PIECE, PIECE)] {
            for row in top..top + PIECE {
                let start = 3 * (row * WIDTH + left);
                pixels.extend_from_slice(&photograph[start..start + 3 * PIECE]);
            }
            labels.push(i);
        }
    }
    let pieces = Array::from_vec([labels.len(), PIECE, PIECE, 3], pixels)?;
    Ok((image::resize(&pieces, [299, 299], Method::Bilinear)?, one_hot(&Array::from(labels), CLASSES.len())?))
}

fn main() -> Result<()> {
    let n_epochs = match std::env::args().nth(1) {
        Some(text) => text.parse().map_err(|_| Error::config(format!("got `{text}`; expected a number of epochs")))?,
        None => 1,
    };
    let network = applications::inception_v3().classes(CLASSES.len());
    let mut model = network.build()?;
    println!("weights = {}", model.count_params());
    let sgd = Optimizer::keras(Sgd::default().momentum(0.9), 0.0001);
    model.compile(Compile::new(sgd, "categorical_crossentropy").metric("accuracy"))?;
    println!("input_names = {:?}", model.input_names());
    let estimator = model_to_estimator(model)?.build()?;

    let (images, labels) = pieces()?;
    let images = network.preprocess_input(&images)?;
    let input = input_fn::arrays([("input_1", images)]).labels(labels).batch_size(6);
    let train_input_fn = input.clone().n_epochs(Some(n_epochs)).shuffle(false);
    estimator.train(TrainSpec::new(train_input_fn).steps(2_000))?;
    let metrics = estimator.evaluate(input.shuffle(false))?;
    println!("steps = {}", metrics.global_step());
    println!("loss = {:.4}", metrics["loss"]);
    println!("accuracy = {:.3}", metrics["accuracy"]);
    Ok(())
}
