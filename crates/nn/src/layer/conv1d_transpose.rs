//! `Conv1dTranspose`: a transposed convolution, from short sequences to long ones.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::Result;

use super::affine::{Affine, affine_setters, build_kernel};
use super::steps::{Steps, steps_setters};
use super::transposed::Transposed;
use super::weight_options::KERNEL;
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json, OneSize};

/// A transposed convolution: turns the result of a [`Conv1d`](super::Conv1d) back into sequences of
/// the original length. It maps `[batch, steps, channels]` to sequences about `strides` times as
/// long, with `filters` channels. The number of steps must be known.
///
/// Variables: `kernel` `[size, filters, channels]` and `bias` `[filters]`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Conv1dTranspose, Layer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("code", DType::F32, [Dim::BATCH, 25.into(), 8.into()]);
/// assert_eq!(Conv1dTranspose::new(3, 5).strides(4).same().apply(&x).shape().to_string(), "[batch, 100, 3]");
/// assert_eq!(Conv1dTranspose::new(3, 5).strides(4).apply(&x).shape().to_string(), "[batch, 101, 3]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Conv1dTranspose {
    filters: usize,
    steps: Steps<Padding>,
    output_padding: Option<usize>,
    affine: Affine,
    config: Config,
}

impl Conv1dTranspose {
    /// `filters` filters over `kernel_size` steps, with a bias and without activation.
    pub fn new(filters: usize, kernel_size: usize) -> Conv1dTranspose {
        let steps = Steps::new(kernel_size);
        Conv1dTranspose { filters, steps, output_padding: None, affine: Affine::new(), config: Config::default() }
    }

    /// Steps added to the shortest result whose convolution has the input's length. They must be
    /// fewer than the strides. By default the result is the longest one with that property, for
    /// `Same` at most the strides times the input.
    pub fn output_padding(mut self, output_padding: usize) -> Conv1dTranspose {
        self.output_padding = Some(output_padding);
        self
    }

    /// The number of steps of the result.
    fn output_length(&self, x: &Tensor) -> Result<usize> {
        let Steps { size, strides, dilation, padding } = self.steps;
        Transposed { taps: size, stride: strides, dilation, padding }.output_length(x, 1, self.output_padding)
    }
}

config_setters!(Conv1dTranspose);
steps_setters!(Conv1dTranspose);
affine_setters!(Conv1dTranspose);

impl Described for Conv1dTranspose {
    const CLASS: &'static str = "Conv1DTranspose";

    fn template() -> Conv1dTranspose {
        Conv1dTranspose::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Conv1dTranspose {
        fields.only("groups", 1);
        Conv1dTranspose {
            filters: fields.required("filters", &self.filters),
            steps: self.steps.fields(fields),
            output_padding: fields.value("output_padding", &self.output_padding.map(OneSize)).map(|size| size.0),
            affine: self.affine.fields(fields, KERNEL),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Conv1dTranspose {
    fn kind(&self) -> &'static str {
        "conv1d_transpose"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        if !self.steps.fits(build, self.filters, "filters") {
            return;
        }
        if let Err(error) = self.output_length(build.input()) {
            return build.refuse(error);
        }
        build_kernel(&self.affine.kernel, build, "kernel", &[self.steps.size, self.filters, build.channels()]);
        self.affine.build_bias(build, self.filters);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let (x, kernel) = (call.input(), call.weight("kernel"));
        if kernel.is_poisoned() {
            return kernel;
        }
        let Steps { strides, dilation, padding, .. } = self.steps;
        match self.output_length(x) {
            Ok(length) => {
                let (row, kernel) = (x.expand_dims(1), kernel.expand_dims(0));
                let (strides, dilation) = ((1, strides), (1, dilation));
                let y = row.conv2d_transpose_dilated(&kernel, (1, length), strides, dilation, padding);
                self.affine.finish(call, &y.squeeze(&[1]))
            }
            Err(error) => x.graph().error(error),
        }
    }
}
