//! `Conv2d`: a window that slides over images.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::Error;

use super::affine::{Affine, affine_setters};
use super::{Build, Call, Config, Layer, config_setters};
use crate::size::Size2d;

/// A convolution of images `[batch, height, width, channels]`.
///
/// Variables: `kernel` `[height, width, channels, filters]` and `bias` `[filters]`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Conv2d, Layer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("image", DType::F32, [Dim::BATCH, 28.into(), 28.into(), 1.into()]);
/// assert_eq!(Conv2d::new(20, 5).relu().apply(&x).shape().to_string(), "[batch, 24, 24, 20]");
/// assert_eq!(Conv2d::new(8, (3, 1)).strides(2).same().apply(&x).shape().to_string(), "[batch, 14, 14, 8]");
/// ```
#[derive(Clone, Debug)]
pub struct Conv2d {
    filters: usize,
    kernel_size: Size2d,
    strides: Size2d,
    dilation: Size2d,
    padding: Padding,
    affine: Affine,
    config: Config,
}

impl Conv2d {
    /// This many filters of a size (one number or `(height, width)`), with a bias and without activation.
    pub fn new(filters: usize, kernel_size: impl Into<Size2d>) -> Conv2d {
        Conv2d {
            filters,
            kernel_size: kernel_size.into(),
            strides: 1.into(),
            dilation: 1.into(),
            padding: Padding::Valid,
            affine: Affine::new(),
            config: Config::default(),
        }
    }

    /// How far the window moves. By default 1.
    pub fn strides(mut self, strides: impl Into<Size2d>) -> Conv2d {
        self.strides = strides.into();
        self
    }

    /// The distance of the window's taps. By default 1: no gaps.
    pub fn dilation(mut self, dilation: impl Into<Size2d>) -> Conv2d {
        self.dilation = dilation.into();
        self
    }

    /// What happens at the edges. By default `Valid`: the window stays inside.
    pub fn padding(mut self, padding: Padding) -> Conv2d {
        self.padding = padding;
        self
    }

    /// Zeros around the image, so that with strides of 1 the result is as large as the image.
    pub fn same(self) -> Conv2d {
        self.padding(Padding::Same)
    }
}

config_setters!(Conv2d);
affine_setters!(Conv2d);

impl Layer for Conv2d {
    fn kind(&self) -> &'static str {
        "conv2d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn build(&self, build: &mut Build<'_>) {
        let (height, width) = self.kernel_size.pair();
        if self.filters == 0 || height == 0 || width == 0 {
            let text = format!("{} filters of {height} x {width}; expected at least 1 of each", self.filters);
            return build.refuse(Error::config(text));
        }
        if build.takes(4..=4, "[batch, height, width, channels]") {
            self.affine.build(build, &[height, width, build.channels(), self.filters]);
        }
    }

    fn call(&self, call: &Call<'_>) -> Tensor {
        let (strides, dilation) = (self.strides.pair(), self.dilation.pair());
        let product = call.input().conv2d_dilated(&call.weight("kernel"), strides, dilation, self.padding);
        self.affine.finish(call, &product)
    }
}
