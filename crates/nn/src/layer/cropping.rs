//! `Cropping1d` and `Cropping2d`: remove the borders of sequences and images.

use estimand_graph::Tensor;
use estimand_tensor::Error;

use super::bordered::bordered_layer;
use crate::border::Border;

/// Removes the border of the input. Reports an error if nothing is left.
#[track_caller]
fn crop<const N: usize>(x: &Tensor, border: Border<N>) -> Tensor {
    for (&(before, after), size) in border.0.iter().zip(&x.shape().dims()[1..]) {
        if size.known().is_some_and(|n| before.saturating_add(after) >= n) {
            let text = format!("cropping by {:?} leaves nothing of {}", border.0, x.describe());
            return x.graph().error(Error::shape(text));
        }
    }
    x.crop(&border.with_outer_axes())
}

bordered_layer!(
    /// `[batch, steps, channels]` without its first and last steps.
    Cropping1d,
    "cropping1d",
    "Cropping1D",
    "cropping",
    1,
    "[batch, steps, channels]",
    "As much is left out as the [`Border`] says.",
    crop
);
bordered_layer!(
    /// The inner part of the images `[batch, height, width, channels]`.
    Cropping2d,
    "cropping2d",
    "Cropping2D",
    "cropping",
    2,
    "[batch, height, width, channels]",
    "As much is left out as the [`Border`] says.",
    crop
);
bordered_layer!(
    /// The inner part of the volumes `[batch, depth, height, width, channels]`.
    Cropping3d,
    "cropping3d",
    "Cropping3D",
    "cropping",
    3,
    "[batch, depth, height, width, channels]",
    "As much is left out as the [`Border`] says.",
    crop
);
