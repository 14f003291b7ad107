//! Windows along the first axis of volumes `[batch, depth, height, width, channels]`.
//!
//! A window of three dimensions is a sum or a maximum over windows of two dimensions, one for each
//! place of its depth. So volumes need no ops of their own, and run as images do.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::{Array, Dim, Error, Shape};

use super::LayerCall;
use crate::size::Size3d;

/// How a window moves along the depth.
#[derive(Clone, Copy)]
pub(super) struct DepthWindow {
    pub size: usize,
    pub stride: usize,
    pub dilation: usize,
    pub padding: Padding,
}

/// The layers of a volume that a window sees, for each place of its depth.
pub(super) struct Slices {
    /// `[batch * n, height, width, channels]`
    pub images: Vec<Tensor>,
    /// How many places of each window are inside of the volume.
    pub counts: Vec<f32>,
    batch: Dim,
}

impl DepthWindow {
    /// Cuts a volume. Places outside of it have `outside`.
    #[track_caller]
    pub fn slices(self, call: &LayerCall<'_>, outside: f64) -> Result<Slices, Tensor> {
        match call.expect_rank(5..=5, "[batch, depth, height, width, channels]") {
            Some(error) => Err(error),
            None => self.cut(call.input(), outside),
        }
    }

    /// As `slices`, of a tensor with five axes.
    #[track_caller]
    fn cut(self, x: &Tensor, outside: f64) -> Result<Slices, Tensor> {
        let Some(depth) = x.shape().dims()[1].known() else {
            let text = format!("the depth of {} is not known", x.describe());
            return Err(x.graph().error(Error::shape(text).help("declare the sizes of the placeholder")));
        };
        let width = (self.size.max(1) - 1) * self.dilation + 1;
        let stride = self.stride.max(1);
        let (n, before) = match self.padding {
            Padding::Valid => ((depth + stride).saturating_sub(width) / stride, 0),
            Padding::Same => {
                let n = depth.div_ceil(stride);
                (n, ((n - 1) * stride + width).saturating_sub(depth) / 2)
            }
        };
        if n == 0 || depth == 0 {
            let text = format!("a window of depth {width} does not fit {}", x.describe());
            return Err(x.graph().error(Error::shape(text)));
        }
        let after = ((n - 1) * stride + width).saturating_sub(depth + before);
        let wide = match before + after {
            0 => x.clone(),
            _ => x.pad(&[(0, 0), (before, after), (0, 0), (0, 0), (0, 0)], outside),
        };
        let dims = x.shape().dims();
        let flat: Shape = std::iter::once(estimand_graph::Graph::ANY).chain(dims[2..].iter().copied()).collect();
        let image = |place: usize| {
            let places: Vec<i64> = (0..n).map(|i| (i * stride + place * self.dilation) as i64).collect();
            let cut = wide.gather_axis(&x.graph().constant(Array::from(places)), 1, 0);
            cut.reshape_as(flat.clone())
        };
        let inside = |i: usize| {
            let places = (0..self.size).map(|place| i * stride + place * self.dilation);
            places.filter(|place| (before..before + depth).contains(place)).count() as f32
        };
        let images = (0..self.size).map(image).collect();
        Ok(Slices { images, counts: (0..n).map(inside).collect(), batch: dims[0] })
    }
}

impl Slices {
    /// Images as volumes again.
    #[track_caller]
    pub fn volume(&self, images: &Tensor) -> Tensor {
        if images.is_poisoned() {
            return images.clone();
        }
        let outer = [self.batch, Dim::Known(self.counts.len())];
        images.reshape_as(outer.into_iter().chain(images.shape().dims()[1..].iter().copied()).collect::<Shape>())
    }
}

/// Convolves volumes `[batch, depth, height, width, channels]` with a kernel of the same axes.
#[track_caller]
pub(super) fn convolve(x: &Tensor, kernel: &Tensor, strides: Size3d, dilation: Size3d, padding: Padding) -> Tensor {
    let size = kernel.shape().dims().first().and_then(|dim| dim.known()).unwrap_or(1);
    let window = DepthWindow { size, stride: strides.depth, dilation: dilation.depth, padding };
    let slices = match window.cut(x, 0.0) {
        Ok(slices) => slices,
        Err(error) => return error,
    };
    let parts = slices.images.iter().enumerate().map(|(place, image)| {
        let plane = kernel.slice(&[place, 0, 0, 0, 0], &[1, -1, -1, -1, -1]).squeeze(&[0]);
        image.conv2d_dilated(&plane, strides.plane(), dilation.plane(), padding)
    });
    match parts.reduce(|sum, part| sum + part) {
        Some(product) => slices.volume(&product),
        None => kernel.clone(),
    }
}

/// Whether no size is 0.
pub(super) fn is_positive(sizes: &[Size3d]) -> bool {
    sizes.iter().all(|size| size.depth > 0 && size.height > 0 && size.width > 0)
}
