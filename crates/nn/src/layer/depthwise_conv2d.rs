//! `DepthwiseConv2d`: a convolution with separate filters for each channel.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::affine::{Affine, build_kernel, result_setters};
use super::weight_options::{DEPTHWISE, weight_setters};
use super::window::{Window, window_setters};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::size::Size2d;

/// A convolution of images `[batch, height, width, channels]` that does not mix channels. Each
/// input channel yields `depth_multiplier` channels of the result.
///
/// Variables: `depthwise_kernel` `[height, width, channels, depth_multiplier]` and `bias`
/// `[channels * depth_multiplier]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct DepthwiseConv2d {
    depth_multiplier: usize,
    window: Window,
    affine: Affine,
    config: Config,
}

impl DepthwiseConv2d {
    /// One filter of a size (one number or `(height, width)`) for each channel, with a bias and
    /// without activation.
    pub fn new(kernel_size: impl Into<Size2d>) -> DepthwiseConv2d {
        let window = Window::new(kernel_size.into());
        DepthwiseConv2d { depth_multiplier: 1, window, affine: Affine::new(), config: Config::default() }
    }

    /// The number of filters for each channel. By default 1.
    pub fn depth_multiplier(mut self, depth_multiplier: usize) -> DepthwiseConv2d {
        self.depth_multiplier = depth_multiplier;
        self
    }
}

config_setters!(DepthwiseConv2d);
window_setters!(DepthwiseConv2d);
weight_setters!(
    DepthwiseConv2d, affine.kernel, "kernel", "as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule":
    depthwise_initializer, depthwise_regularizer, depthwise_constraint
);
result_setters!(DepthwiseConv2d);

impl Described for DepthwiseConv2d {
    const CLASS: &'static str = "DepthwiseConv2D";

    fn template() -> DepthwiseConv2d {
        DepthwiseConv2d::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> DepthwiseConv2d {
        fields.only("groups", 1);
        DepthwiseConv2d {
            depth_multiplier: fields.value("depth_multiplier", &self.depth_multiplier),
            window: self.window.fields(fields),
            affine: self.affine.fields(fields, DEPTHWISE),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for DepthwiseConv2d {
    fn kind(&self) -> &'static str {
        "depthwise_conv2d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        if self.window.fits(build, self.depth_multiplier, "filters for each channel") {
            let ((height, width), channels) = (self.window.size.pair(), build.channels());
            let dims = [height, width, channels, self.depth_multiplier];
            build_kernel(&self.affine.kernel, build, "depthwise_kernel", &dims);
            self.affine.build_bias(build, channels.saturating_mul(self.depth_multiplier));
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let product = self.window.convolve_channels(call.input(), &call.weight("depthwise_kernel"));
        self.affine.finish(call, &product)
    }
}
