//! `Conv2dTranspose`: a transposed convolution, from small images to large ones.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::affine::{Affine, affine_setters, build_kernel};
use super::transposed::Transposed;
use super::weight_options::KERNEL;
use super::window::{Window, window_setters};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::size::Size2d;

/// A transposed convolution: turns the result of a convolution back into images of the original
/// size. It maps `[batch, height, width, channels]` to images about `strides` times as large, with
/// `filters` channels. Height and width must be known.
///
/// Variables: `kernel` `[height, width, filters, channels]` and `bias` `[filters]`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Conv2dTranspose, Layer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("code", DType::F32, [Dim::BATCH, 7.into(), 7.into(), 32.into()]);
/// assert_eq!(Conv2dTranspose::new(8, 3).strides(2).same().apply(&x).shape().to_string(), "[batch, 14, 14, 8]");
/// assert_eq!(Conv2dTranspose::new(8, 3).strides(2).apply(&x).shape().to_string(), "[batch, 15, 15, 8]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Conv2dTranspose {
    filters: usize,
    window: Window,
    output_padding: Option<Size2d>,
    affine: Affine,
    config: Config,
}

impl Conv2dTranspose {
    /// `filters` filters of a size (one number or `(height, width)`), with a bias and without
    /// activation.
    pub fn new(filters: usize, kernel_size: impl Into<Size2d>) -> Conv2dTranspose {
        let window = Window::new(kernel_size.into());
        Conv2dTranspose { filters, window, output_padding: None, affine: Affine::new(), config: Config::default() }
    }

    /// Rows and columns added to the smallest result whose convolution has the input's size. They
    /// must be fewer than the strides. By default the result is the largest one with that property,
    /// for `Same` at most the strides times the input.
    pub fn output_padding(mut self, output_padding: impl Into<Size2d>) -> Conv2dTranspose {
        self.output_padding = Some(output_padding.into());
        self
    }

    /// Height and width of the result.
    fn output_size(&self, x: &Tensor) -> Result<(usize, usize)> {
        let (size, strides, dilation) =
            (self.window.size.pair(), self.window.strides.pair(), self.window.dilation.pair());
        let extra = self.output_padding.map(Size2d::pair).unzip();
        let padding = self.window.padding;
        let height = Transposed { taps: size.0, stride: strides.0, dilation: dilation.0, padding };
        let width = Transposed { taps: size.1, stride: strides.1, dilation: dilation.1, padding };
        Ok((height.output_length(x, 1, extra.0)?, width.output_length(x, 2, extra.1)?))
    }
}

config_setters!(Conv2dTranspose);
window_setters!(Conv2dTranspose);
affine_setters!(Conv2dTranspose);

impl Described for Conv2dTranspose {
    const CLASS: &'static str = "Conv2DTranspose";

    fn template() -> Conv2dTranspose {
        Conv2dTranspose::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Conv2dTranspose {
        fields.only("groups", 1);
        Conv2dTranspose {
            filters: fields.required("filters", &self.filters),
            window: self.window.fields(fields),
            output_padding: fields.value("output_padding", &self.output_padding),
            affine: self.affine.fields(fields, KERNEL),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Conv2dTranspose {
    fn kind(&self) -> &'static str {
        "conv2d_transpose"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        if !self.window.fits(build, self.filters, "filters") {
            return;
        }
        if let Err(error) = self.output_size(build.input()) {
            return build.refuse(error);
        }
        let (height, width) = self.window.size.pair();
        build_kernel(&self.affine.kernel, build, "kernel", &[height, width, self.filters, build.channels()]);
        self.affine.build_bias(build, self.filters);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let (x, kernel) = (call.input(), call.weight("kernel"));
        if kernel.is_poisoned() {
            return kernel;
        }
        let (strides, dilation) = (self.window.strides.pair(), self.window.dilation.pair());
        match self.output_size(x) {
            Ok(size) => {
                let y = x.conv2d_transpose_dilated(&kernel, size, strides, dilation, self.window.padding);
                self.affine.finish(call, &y)
            }
            Err(error) => x.graph().error(error),
        }
    }
}
