//! Layers over images `[batch, height, width, channels]`: sizes, and random changes in training.
//!
//! Random numbers are a pure function of seed, name, step and row, as everywhere. Outside of
//! training, random layers return their input; `RandomCrop` resizes it.

mod colour;
mod factor;
mod flip;
mod moved;
mod sampling;
mod size;

pub use colour::{RandomBrightness, RandomContrast};
pub use factor::Factor;
pub use flip::{Flip, RandomFlip};
pub use moved::{RandomRotation, RandomTranslation, RandomZoom};
pub use sampling::FillMode;
pub use size::{CenterCrop, RandomCrop, Resizing};

use estimand_graph::Tensor;
use estimand_tensor::Error;

use super::rescaling::numbers;
use crate::layer::LayerCall;

/// The images as f32, with their height and width, which must be known.
#[track_caller]
fn images(call: &LayerCall<'_>, kind: &str) -> Result<(Tensor, usize, usize), Tensor> {
    if let Some(error) = call.expect_rank(4..=4, "[batch, height, width, channels]") {
        return Err(error);
    }
    let x = numbers(call.input());
    match (x.shape().dims()[1].known(), x.shape().dims()[2].known()) {
        (Some(height), Some(width)) if height > 0 && width > 0 => Ok((x, height, width)),
        _ => {
            let text = format!("{kind} got {}, whose height or width is not known, or 0", x.describe());
            Err(x.graph().error(Error::shape(text).help("declare the sizes of the placeholder")))
        }
    }
}
