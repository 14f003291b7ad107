//! `SeparableConv1d`: a convolution of each channel over steps, followed by one across channels.

use estimand_graph::{Initializer, Tensor};
use estimand_tensor::{Error, Result};

use super::affine::{Affine, build_kernel, result_setters};
use super::steps::{Edge, Steps, steps_setters};
use super::weight_options::{DEPTHWISE, KERNEL, POINTWISE, WeightOptions, weight_setters};
use super::window::Window;
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

/// A depthwise convolution of sequences `[batch, steps, channels]`, followed by a convolution of
/// single steps that mixes the channels. It has fewer weights than a `Conv1d` of the same size.
///
/// Variables: `depthwise_kernel` `[size, channels, depth_multiplier]`, `pointwise_kernel`
/// `[1, channels * depth_multiplier, filters]` and `bias` `[filters]`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Layer, SeparableConv1d};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("signal", DType::F32, [Dim::BATCH, 100.into(), 3.into()]);
/// assert_eq!(SeparableConv1d::new(8, 5).strides(2).apply(&x).shape().to_string(), "[batch, 48, 8]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SeparableConv1d {
    filters: usize,
    depth_multiplier: usize,
    steps: Steps<Edge>,
    depthwise: WeightOptions,
    affine: Affine,
    config: Config,
}

impl SeparableConv1d {
    /// `filters` filters over `kernel_size` steps, with a bias and without activation.
    pub fn new(filters: usize, kernel_size: usize) -> SeparableConv1d {
        SeparableConv1d {
            filters,
            depth_multiplier: 1,
            steps: Steps::new(kernel_size),
            depthwise: WeightOptions::default(),
            affine: Affine::new(),
            config: Config::default(),
        }
    }

    /// The number of channels that each input channel yields before they are mixed. By default 1.
    pub fn depth_multiplier(mut self, depth_multiplier: usize) -> SeparableConv1d {
        self.depth_multiplier = depth_multiplier;
        self
    }
}

config_setters!(SeparableConv1d);
steps_setters!(SeparableConv1d, causal);
weight_setters!(
    SeparableConv1d, depthwise, "kernel over steps",
    "as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule":
    depthwise_initializer, depthwise_regularizer, depthwise_constraint
);
weight_setters!(
    SeparableConv1d, affine.kernel, "kernel over channels",
    "as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule":
    pointwise_initializer, pointwise_regularizer, pointwise_constraint
);
result_setters!(SeparableConv1d);

impl Described for SeparableConv1d {
    const CLASS: &'static str = "SeparableConv1D";

    fn template() -> SeparableConv1d {
        SeparableConv1d::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SeparableConv1d {
        fields.only("groups", 1);
        // Keras writes the options of a kernel that this layer does not have.
        KERNEL.into_iter().for_each(|key| fields.ignored(key));
        SeparableConv1d {
            filters: fields.required("filters", &self.filters),
            depth_multiplier: fields.value("depth_multiplier", &self.depth_multiplier),
            steps: self.steps.fields(fields),
            depthwise: self.depthwise.fields(fields, DEPTHWISE, Initializer::GlorotUniform),
            affine: self.affine.fields(fields, POINTWISE),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for SeparableConv1d {
    fn kind(&self) -> &'static str {
        "separable_conv1d"
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
        if self.steps.fits(build, self.filters, "filters") {
            let channels = build.channels();
            let inner = channels.saturating_mul(self.depth_multiplier);
            let dims = [self.steps.size, channels, self.depth_multiplier];
            build_kernel(&self.depthwise, build, "depthwise_kernel", &dims);
            build_kernel(&self.affine.kernel, build, "pointwise_kernel", &[1, inner, self.filters]);
            self.affine.build_bias(build, self.filters);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let (depthwise, pointwise) = (call.weight("depthwise_kernel"), call.weight("pointwise_kernel"));
        if let Some(poisoned) = [&depthwise, &pointwise].into_iter().find(|kernel| kernel.is_poisoned()) {
            return poisoned.clone();
        }
        let (x, row) = self.steps.row_of(call.input());
        let inner = row.convolve_channels(&x, &depthwise.expand_dims(0));
        let product = Window::new(1.into()).convolve(&inner, &pointwise.expand_dims(0), 1).squeeze(&[1]);
        self.affine.finish(call, &product)
    }
}
