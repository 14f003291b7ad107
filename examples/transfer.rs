//! Transfer learning: MobileNetV2 without its top, frozen, and a new last layer. It is the program
//! "from Keras to Estimator" of the article "TensorFlow 2 Estimator", with other images.
//!
//! ```sh
//! cargo run --release --example transfer
//! cargo run --release --features keras_files --example transfer -- WEIGHTS.h5
//! ```
//!
//! The file of weights is Keras':
//! `mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_160_no_top.h5`.
//! Without one the weights are random. The images are pieces of three photographs in
//! `examples/data/photographs` (CC0 and in the public domain): is it the cat?
//!
//! What differs from the article: the images, which are few, so training ends after 5 epochs of 5
//! batches, not after 500 steps; there are seeds; the model is functional, because its input
//! has the name of the feature. With random weights, which the article does not have, the kernels
//! are scaled by He's rule, a batch norm follows the pooling, and Adam's rate is 0.01. The model is
//! evaluated at the end.

use std::path::Path;

use estimand::data::image::{self, Method};
use estimand::keras::applications;
use estimand::keras::{Compile, Functional, Input, Model, model_to_estimator};
use estimand::nn::GlobalAvgPool2d;
use estimand::nn::loss::SigmoidCrossEntropy;
use estimand::prelude::*;

/// The height and width of the network's images.
const SIZE: usize = 160;
/// The height and width of the photographs.
const PHOTOGRAPH: [usize; 2] = [256, 384];
/// The height and width of pieces, which overlap by half.
const PIECE: usize = 64;

/// Pieces of all photographs between two columns of pixels, and whether they are of the cat.
fn pieces(from: usize, to: usize) -> Result<(Array, Array)> {
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for (name, label) in [("cat", 1i64), ("coffee", 0), ("rocket", 0)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/data/photographs/{name}.jpg"));
        let bytes = std::fs::read(&path).map_err(|e| Error::io(&path, "read", &e))?;
        let photograph = image::decode(&bytes, Some(3))?;
        let photograph = photograph.as_slice::<u8>()?;
        for top in (0..=PHOTOGRAPH[0] - PIECE).step_by(PIECE / 2) {
            for left in (from..=to - PIECE).step_by(PIECE / 2) {
                for row in top..top + PIECE {
                    let start = 3 * (row * PHOTOGRAPH[1] + left);
                    pixels.extend_from_slice(&photograph[start..start + 3 * PIECE]);
                }
                labels.push(label);
            }
        }
    }
    Ok((Array::from_vec([labels.len(), PIECE, PIECE, 3], pixels)?, Array::from(labels)))
}

/// Scales pixels to numbers from -1 to 1, and images to the size of the network.
fn preprocess(images: &Array) -> Result<Array> {
    let scaled = images.as_slice::<u8>()?.iter().map(|&pixel| f32::from(pixel) / 127.5 - 1.0).collect();
    image::resize(&Array::from_vec(images.dims(), scaled)?, [SIZE, SIZE], Method::Bilinear)
}

/// Scales random kernels by He's rule, so that signals reach the end. With Keras' default rule they
/// vanish in a deep network whose norms have seen no data.
fn spread(model: &mut Model) -> Result<()> {
    let names: Vec<String> = model.layers().iter().map(|layer| layer.name().to_string()).collect();
    for name in names {
        let layer = model.get_layer(&name)?;
        let (class, mut weights) = (layer.class_name(), layer.get_weights()?);
        if class != "Conv2D" && class != "DepthwiseConv2D" {
            continue;
        }
        let dims = weights[0].dims().to_vec();
        let fan_in = if class == "Conv2D" { dims[0] * dims[1] * dims[2] } else { dims[0] * dims[1] };
        let values = weights[0].as_slice::<f32>()?;
        let mean_square = values.iter().map(|x| x * x).sum::<f32>() / values.len() as f32;
        // A rectifier after the convolution loses half of the signal; a projection has none.
        let gain = if name.contains("project") { 1.0 } else { 2.0 };
        let factor = (gain / fan_in as f32 / mean_square).sqrt();
        weights[0] = Array::from_vec(dims, values.iter().map(|x| factor * x).collect())?;
        model.set_layer_weights(&name, &weights)?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let network = applications::mobile_net_v2().include_top(false).input_shape([SIZE, SIZE, 3]);
    let mut base = network.build()?;
    let file = std::env::args().nth(1);
    match &file {
        Some(path) => {
            base.load_weights(path)?;
            println!("the weights of MobileNetV2 are those of {path}");
        }
        None => {
            spread(&mut base)?;
            println!("the weights of MobileNetV2 are random: no file was given");
        }
    }
    base.set_trainable(false)?;

    let input = Input::new([SIZE, SIZE, 3]).name("image").tensor();
    let mut features = GlobalAvgPool2d::new().on(&base.on(&input));
    if file.is_none() {
        // Random features hardly differ between images; a norm spreads them.
        features = BatchNorm::new().momentum(0.8).on(&features);
    }
    let mut model = Model::named("pieces", &input, &Dense::new(1).name("is_cat").on(&features))?;
    let adam = Optimizer::keras(Adam::default(), if file.is_none() { 0.01 } else { 0.001 });
    model.compile(Compile::new(adam, SigmoidCrossEntropy::new()).metric("accuracy"))?;
    // The order of the rows depends on this seed, too.
    let config = RunConfig::new().tf_random_seed(1);
    let estimator = model_to_estimator(model)?.config(config).build()?;

    // The right third of each photograph is kept for the test; no piece is in both parts.
    let data = |(images, labels): (Array, Array)| {
        let rows = Dataset::from_arrays([("image", images), ("is_cat", labels)]).label("is_cat");
        rows.map_feature("image", preprocess)
    };
    let (train, test) = (pieces(0, 256)?, pieces(256, PHOTOGRAPH[1])?);
    let n_cats = test.1.as_slice::<i64>()?.iter().sum::<i64>() as f64;
    let share = n_cats / test.1.len() as f64;
    println!("{} pieces to train with, {} to test with", train.1.len(), test.1.len());
    estimator.train(data(train).shuffle(500, 1).repeat(5).batch(32))?;
    let metrics = estimator.evaluate(data(test).batch(33))?;
    println!("steps = {}", metrics.global_step());
    println!("accuracy = {:.3}", metrics["accuracy"]);
    println!("majority = {:.3}", share.max(1.0 - share));
    Ok(())
}
