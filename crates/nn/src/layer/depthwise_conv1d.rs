//! `DepthwiseConv1d`: a convolution over sequences with separate filters for each channel.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::Result;

use super::affine::{Affine, build_kernel, result_setters};
use super::steps::{Steps, steps_setters};
use super::weight_options::{DEPTHWISE, weight_setters};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

/// A convolution of sequences `[batch, steps, channels]` that does not mix channels. Each input
/// channel yields `depth_multiplier` channels of the result.
///
/// Variables: `depthwise_kernel` `[size, channels, depth_multiplier]` and `bias`
/// `[channels * depth_multiplier]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct DepthwiseConv1d {
    depth_multiplier: usize,
    steps: Steps<Padding>,
    affine: Affine,
    config: Config,
}

impl DepthwiseConv1d {
    /// One filter over `kernel_size` steps for each channel, with a bias and without activation.
    pub fn new(kernel_size: usize) -> DepthwiseConv1d {
        let steps = Steps::new(kernel_size);
        DepthwiseConv1d { depth_multiplier: 1, steps, affine: Affine::new(), config: Config::default() }
    }

    /// The number of filters for each channel. By default 1.
    pub fn depth_multiplier(mut self, depth_multiplier: usize) -> DepthwiseConv1d {
        self.depth_multiplier = depth_multiplier;
        self
    }
}

config_setters!(DepthwiseConv1d);
steps_setters!(DepthwiseConv1d);
weight_setters!(
    DepthwiseConv1d, affine.kernel, "kernel", "as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule":
    depthwise_initializer, depthwise_regularizer, depthwise_constraint
);
result_setters!(DepthwiseConv1d);

impl Described for DepthwiseConv1d {
    const CLASS: &'static str = "DepthwiseConv1D";

    fn template() -> DepthwiseConv1d {
        DepthwiseConv1d::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> DepthwiseConv1d {
        fields.only("groups", 1);
        DepthwiseConv1d {
            depth_multiplier: fields.value("depth_multiplier", &self.depth_multiplier),
            steps: self.steps.fields(fields),
            affine: self.affine.fields(fields, DEPTHWISE),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for DepthwiseConv1d {
    fn kind(&self) -> &'static str {
        "depthwise_conv1d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        if self.steps.fits(build, self.depth_multiplier, "filters for each channel") {
            let channels = build.channels();
            let dims = [self.steps.size, channels, self.depth_multiplier];
            build_kernel(&self.affine.kernel, build, "depthwise_kernel", &dims);
            self.affine.build_bias(build, channels.saturating_mul(self.depth_multiplier));
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let kernel = call.weight("depthwise_kernel");
        if kernel.is_poisoned() {
            return kernel;
        }
        let product = self.steps.row().convolve_channels(&call.input().expand_dims(1), &kernel.expand_dims(0));
        self.affine.finish(call, &product.squeeze(&[1]))
    }
}
