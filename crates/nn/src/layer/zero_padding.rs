//! `ZeroPadding1d` and `ZeroPadding2d`: add zeros around sequences and images.

use estimand_graph::Tensor;

use super::bordered::bordered_layer;
use crate::border::Border;

#[track_caller]
fn pad<const N: usize>(x: &Tensor, border: Border<N>) -> Tensor {
    x.pad(&border.with_outer_axes(), 0.0)
}

bordered_layer!(
    /// Adds zeros before and after the steps of `[batch, steps, channels]`.
    ZeroPadding1d,
    "zero_padding1d",
    "ZeroPadding1D",
    "padding",
    1,
    "[batch, steps, channels]",
    "As many zeros as the [`Border`] says.",
    pad
);
bordered_layer!(
    /// Adds zeros around the images `[batch, height, width, channels]`.
    ZeroPadding2d,
    "zero_padding2d",
    "ZeroPadding2D",
    "padding",
    2,
    "[batch, height, width, channels]",
    "As many zeros as the [`Border`] says.",
    pad
);
bordered_layer!(
    /// Adds zeros around the volumes `[batch, depth, height, width, channels]`.
    ZeroPadding3d,
    "zero_padding3d",
    "ZeroPadding3D",
    "padding",
    3,
    "[batch, depth, height, width, channels]",
    "As many zeros as the [`Border`] says.",
    pad
);
