//! InceptionV3 as an Estimator: a network of `keras.applications`, compiled with SGD, through
//! `model_to_estimator`. It is the program "from a Keras model" of the article "TensorFlow
//! Higher-Level APIs", with other images and fewer steps.
//!
//! `cargo run --release --example inception_estimator [STEPS]`
//!
//! The weights are random, so a few steps show the way, not a result. The images are pieces of
//! three photographs in `examples/data/photographs` (CC0 and in the public domain).

use std::path::Path;

use estimand::data::image::{self, Method};
use estimand::keras::{Compile, applications, model_to_estimator};
use estimand::prelude::*;

const CLASSES: [&str; 3] = ["cat", "coffee", "rocket"];
/// The width of the photographs, which are 256 pixels high.
const WIDTH: usize = 384;
/// The height and width of pieces.
const PIECE: usize = 128;

/// Four pieces of each photograph in the size that InceptionV3 was made for.
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
    Ok((image::resize(&pieces, [299, 299], Method::Bilinear)?, Array::from(labels)))
}

fn main() -> Result<()> {
    let steps = match std::env::args().nth(1) {
        Some(text) => text.parse().map_err(|_| Error::config(format!("got `{text}`; expected a number of steps")))?,
        None => 2,
    };
    let network = applications::inception_v3().classes(CLASSES.len());
    let mut model = network.build()?;
    println!("weights = {}", model.count_params());
    let sgd = Optimizer::keras(Sgd::default().momentum(0.9), 0.0001);
    model.compile(Compile::new(sgd, "sparse_categorical_crossentropy").metric("accuracy"))?;
    let estimator = model_to_estimator(model)?.build()?;

    let (images, labels) = pieces()?;
    let images = network.preprocess_input(&images)?;
    let data = Dataset::from_arrays([("input_1", images), ("class", labels)]).label("class");
    estimator.train(TrainSpec::new(data.shuffle(12, 1).repeat_forever().batch(4)).max_steps(steps))?;
    let metrics = estimator.evaluate(data.batch(4))?;
    println!("steps = {}", metrics.global_step());
    println!("loss = {:.4}", metrics["loss"]);
    println!("accuracy = {:.3}", metrics["accuracy"]);
    Ok(())
}
