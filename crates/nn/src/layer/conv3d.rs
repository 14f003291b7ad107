//! `Conv3d`: a convolution over volumes.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::{DType, Error, Result};

use super::affine::{Affine, affine_setters};
use super::volume::{self, is_positive};
use super::weight_options::KERNEL;
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::size::Size3d;

/// A convolution of volumes `[batch, depth, height, width, channels]`. The depth must be known.
///
/// Variables: `kernel` `[depth, height, width, channels, filters]` and `bias` `[filters]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct Conv3d {
    filters: usize,
    size: Size3d,
    strides: Size3d,
    dilation: Size3d,
    padding: Padding,
    affine: Affine,
    config: Config,
}

impl Conv3d {
    /// `filters` filters of a size (one number or `(depth, height, width)`), with a bias and
    /// without activation.
    pub fn new(filters: usize, kernel_size: impl Into<Size3d>) -> Conv3d {
        Conv3d {
            filters,
            size: kernel_size.into(),
            strides: 1.into(),
            dilation: 1.into(),
            padding: Padding::Valid,
            affine: Affine::new(),
            config: Config::default(),
        }
    }

    /// The distance between windows. By default 1.
    pub fn strides(mut self, strides: impl Into<Size3d>) -> Conv3d {
        self.strides = strides.into();
        self
    }

    /// The distance between the places that a filter reads. By default 1.
    pub fn dilation(mut self, dilation: impl Into<Size3d>) -> Conv3d {
        self.dilation = dilation.into();
        self
    }

    /// The padding at the edges. By default `Valid`.
    pub fn padding(mut self, padding: Padding) -> Conv3d {
        self.padding = padding;
        self
    }

    /// Pads with 0, so that strides of 1 keep the size.
    pub fn same(self) -> Conv3d {
        self.padding(Padding::Same)
    }
}

config_setters!(Conv3d);
affine_setters!(Conv3d);

impl Described for Conv3d {
    const CLASS: &'static str = "Conv3D";

    fn template() -> Conv3d {
        Conv3d::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Conv3d {
        fields.only("data_format", "channels_last");
        fields.only("groups", 1);
        Conv3d {
            filters: fields.required("filters", &self.filters),
            size: fields.required("kernel_size", &self.size),
            strides: fields.value("strides", &self.strides),
            padding: fields.value("padding", &self.padding),
            dilation: fields.value("dilation_rate", &self.dilation),
            affine: self.affine.fields(fields, KERNEL),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Conv3d {
    fn kind(&self) -> &'static str {
        "conv3d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let (size, strides, dilation) = (self.size, self.strides, self.dilation);
        if self.filters == 0 || !is_positive(&[size, strides, dilation]) {
            let text = format!("{} filters of {size:?}, strides {strides:?}, dilation {dilation:?}", self.filters);
            return build.refuse(Error::config(text).help("all sizes are at least 1"));
        }
        if strides != 1.into() && dilation != 1.into() {
            let text = format!("strides are {strides:?} and dilation is {dilation:?}; expected 1 for one of them");
            return build.refuse(Error::config(text));
        }
        if build.takes(5..=5, "[batch, depth, height, width, channels]") {
            let dims = [size.depth, size.height, size.width, build.channels(), self.filters];
            self.affine.build(build, &dims);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let kernel = call.weight("kernel");
        if call.input().dtype() != DType::F32 || kernel.is_poisoned() {
            return kernel;
        }
        if let Some(error) = call.expect_rank(5..=5, "[batch, depth, height, width, channels]") {
            return error;
        }
        let product = volume::convolve(call.input(), &kernel, self.strides, self.dilation, self.padding);
        self.affine.finish(call, &product)
    }
}
