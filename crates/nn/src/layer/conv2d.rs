//! `Conv2d`: a convolution over images.

use estimand_graph::Tensor;
use estimand_tensor::Result;

use super::affine::{Affine, affine_setters};
use super::weight_options::KERNEL;
use super::window::{Window, check_groups, window_setters};
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::size::Size2d;

/// A convolution of images `[batch, height, width, channels]`.
///
/// Variables: `kernel` `[height, width, channels / groups, filters]` and `bias` `[filters]`.
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
#[must_use]
pub struct Conv2d {
    filters: usize,
    groups: usize,
    window: Window,
    affine: Affine,
    config: Config,
}

impl Conv2d {
    /// `filters` filters of a size (one number or `(height, width)`), with a bias and without
    /// activation.
    pub fn new(filters: usize, kernel_size: impl Into<Size2d>) -> Conv2d {
        let window = Window::new(kernel_size.into());
        Conv2d { filters, groups: 1, window, affine: Affine::new(), config: Config::default() }
    }

    /// The number of groups that channels and filters are divided into. Each filter sees only the
    /// channels of its group. By default 1.
    pub fn groups(mut self, groups: usize) -> Conv2d {
        self.groups = groups;
        self
    }
}

config_setters!(Conv2d);
window_setters!(Conv2d);
affine_setters!(Conv2d);

impl Described for Conv2d {
    const CLASS: &'static str = "Conv2D";

    fn template() -> Conv2d {
        Conv2d::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Conv2d {
        Conv2d {
            filters: fields.required("filters", &self.filters),
            window: self.window.fields(fields),
            groups: fields.value("groups", &self.groups),
            affine: self.affine.fields(fields, KERNEL),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Conv2d {
    fn kind(&self) -> &'static str {
        "conv2d"
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
        let channels = build.channels();
        if check_groups(build, self.groups, channels, self.filters) {
            let (height, width) = self.window.size.pair();
            self.affine.build(build, &[height, width, channels / self.groups, self.filters]);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let product = self.window.convolve(call.input(), &call.weight("kernel"), self.groups);
        self.affine.finish(call, &product)
    }
}
