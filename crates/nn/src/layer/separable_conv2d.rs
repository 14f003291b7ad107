//! `SeparableConv2d`: a convolution of each channel in space, followed by one across channels.

use estimand_graph::{Initializer, Tensor};
use estimand_tensor::{Error, Result};

use super::affine::{Affine, build_kernel, result_setters};
use super::weight_options::{DEPTHWISE, KERNEL, POINTWISE, WeightOptions, weight_setters};
use super::window::{Window, window_setters};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::size::Size2d;

/// A depthwise convolution of images `[batch, height, width, channels]`, followed by a convolution
/// of single pixels that mixes the channels. It has fewer weights than a `Conv2d` of the same size.
///
/// Variables: `depthwise_kernel` `[height, width, channels, depth_multiplier]`, `pointwise_kernel`
/// `[1, 1, channels * depth_multiplier, filters]` and `bias` `[filters]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct SeparableConv2d {
    filters: usize,
    depth_multiplier: usize,
    window: Window,
    depthwise: WeightOptions,
    affine: Affine,
    config: Config,
}

impl SeparableConv2d {
    /// `filters` filters of a size (one number or `(height, width)`), with a bias and without
    /// activation.
    pub fn new(filters: usize, kernel_size: impl Into<Size2d>) -> SeparableConv2d {
        SeparableConv2d {
            filters,
            depth_multiplier: 1,
            window: Window::new(kernel_size.into()),
            depthwise: WeightOptions::default(),
            affine: Affine::new(),
            config: Config::default(),
        }
    }

    /// The number of channels that each input channel yields before they are mixed. By default 1.
    pub fn depth_multiplier(mut self, depth_multiplier: usize) -> SeparableConv2d {
        self.depth_multiplier = depth_multiplier;
        self
    }
}

config_setters!(SeparableConv2d);
window_setters!(SeparableConv2d);
weight_setters!(
    SeparableConv2d, depthwise, "kernel in space", "as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule":
    depthwise_initializer, depthwise_regularizer, depthwise_constraint
);
weight_setters!(
    SeparableConv2d, affine.kernel, "kernel over channels",
    "as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule":
    pointwise_initializer, pointwise_regularizer, pointwise_constraint
);
result_setters!(SeparableConv2d);

impl Described for SeparableConv2d {
    const CLASS: &'static str = "SeparableConv2D";

    fn template() -> SeparableConv2d {
        SeparableConv2d::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SeparableConv2d {
        fields.only("groups", 1);
        // Keras writes the options of a kernel that this layer does not have.
        KERNEL.into_iter().for_each(|key| fields.ignored(key));
        SeparableConv2d {
            filters: fields.required("filters", &self.filters),
            depth_multiplier: fields.value("depth_multiplier", &self.depth_multiplier),
            window: self.window.fields(fields),
            depthwise: self.depthwise.fields(fields, DEPTHWISE, Initializer::GlorotUniform),
            affine: self.affine.fields(fields, POINTWISE),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for SeparableConv2d {
    fn kind(&self) -> &'static str {
        "separable_conv2d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        if self.depth_multiplier == 0 {
            return build.refuse(Error::config("the depth multiplier is 0; expected at least 1"));
        }
        if self.window.fits(build, self.filters, "filters") {
            let ((height, width), channels) = (self.window.size.pair(), build.channels());
            let inner = channels.saturating_mul(self.depth_multiplier);
            let dims = [height, width, channels, self.depth_multiplier];
            build_kernel(&self.depthwise, build, "depthwise_kernel", &dims);
            build_kernel(&self.affine.kernel, build, "pointwise_kernel", &[1, 1, inner, self.filters]);
            self.affine.build_bias(build, self.filters);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let inner = self.window.convolve_channels(call.input(), &call.weight("depthwise_kernel"));
        let product = Window::new(1.into()).convolve(&inner, &call.weight("pointwise_kernel"), 1);
        self.affine.finish(call, &product)
    }
}
