//! `Conv3dTranspose`: a transposed convolution, from small volumes to large ones.

use estimand_graph::{Padding, Tensor};
use estimand_tensor::{Array, Dim, Error, Result, Shape};

use super::affine::{Affine, affine_setters, build_kernel};
use super::transposed::Transposed;
use super::volume::is_positive;
use super::weight_options::KERNEL;
use super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::size::Size3d;

/// A transposed convolution of volumes `[batch, depth, height, width, channels]`: turns the result
/// of a [`Conv3d`](super::Conv3d) back into volumes of the original size. Depth, height and width
/// must be known.
///
/// Variables: `kernel` `[depth, height, width, filters, channels]` and `bias` `[filters]`.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Conv3dTranspose, Layer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("code", DType::F32, [Dim::BATCH, 2.into(), 3.into(), 3.into(), 8.into()]);
/// assert_eq!(Conv3dTranspose::new(4, 3).strides(2).same().apply(&x).shape().to_string(), "[batch, 4, 6, 6, 4]");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Conv3dTranspose {
    filters: usize,
    size: Size3d,
    strides: Size3d,
    padding: Padding,
    output_padding: Option<Size3d>,
    affine: Affine,
    config: Config,
}

impl Conv3dTranspose {
    /// `filters` filters of a size (one number or `(depth, height, width)`), with a bias and
    /// without activation.
    pub fn new(filters: usize, kernel_size: impl Into<Size3d>) -> Conv3dTranspose {
        Conv3dTranspose {
            filters,
            size: kernel_size.into(),
            strides: 1.into(),
            padding: Padding::Valid,
            output_padding: None,
            affine: Affine::new(),
            config: Config::default(),
        }
    }

    /// The distance between windows of the result. By default 1.
    pub fn strides(mut self, strides: impl Into<Size3d>) -> Conv3dTranspose {
        self.strides = strides.into();
        self
    }

    /// The padding at the edges. By default `Valid`.
    pub fn padding(mut self, padding: Padding) -> Conv3dTranspose {
        self.padding = padding;
        self
    }

    /// The result is `strides` times as large as the input.
    pub fn same(self) -> Conv3dTranspose {
        self.padding(Padding::Same)
    }

    /// What is added to the smallest result whose convolution has the input's size. It must be
    /// less than the strides. By default the result is the largest one with that property, for
    /// `Same` at most the strides times the input.
    pub fn output_padding(mut self, output_padding: impl Into<Size3d>) -> Conv3dTranspose {
        self.output_padding = Some(output_padding.into());
        self
    }

    /// The sizes of the result.
    fn output_size(&self, x: &Tensor) -> Result<Size3d> {
        let axis = |taps, stride| Transposed { taps, stride, dilation: 1, padding: self.padding };
        let extra = |side: fn(Size3d) -> usize| self.output_padding.map(side);
        Ok(Size3d {
            depth: axis(self.size.depth, self.strides.depth).output_length(x, 1, extra(|size| size.depth))?,
            height: axis(self.size.height, self.strides.height).output_length(x, 2, extra(|size| size.height))?,
            width: axis(self.size.width, self.strides.width).output_length(x, 3, extra(|size| size.width))?,
        })
    }

    /// Adds up the transposed convolutions in two dimensions of all layers of the volume, each at
    /// its places of the result's depth.
    #[track_caller]
    fn transposed(&self, x: &Tensor, kernel: &Tensor) -> Result<Tensor> {
        let size = self.output_size(x)?;
        let place = self.padding.place(size.depth, self.size.depth, self.strides.depth, 1);
        let (Some(&[batch, depth @ Dim::Known(n), height, width, channels]), Some((_, before, _))) =
            (x.shape().dims().first_chunk(), place)
        else {
            return Err(Error::shape(format!("{} is no volume of known sizes", x.describe())));
        };
        let images = x.reshape_as(Shape::from([estimand_graph::Graph::ANY, height, width, channels]));
        let parts = (0..self.size.depth).map(|place| {
            let plane = kernel.slice(&[place, 0, 0, 0, 0], &[1, -1, -1, -1, -1]).squeeze(&[0]);
            let large = images.conv2d_transpose(&plane, size.plane(), self.strides.plane(), self.padding);
            let sizes = [size.height, size.width, self.filters].map(Into::into);
            let large = large.reshape_as(Shape::from([batch, depth, sizes[0], sizes[1], sizes[2]]));
            // Behind the last layer is one of zeros, for places that get nothing.
            let wide = large.pad(&[(0, 0), (0, 1), (0, 0), (0, 0), (0, 0)], 0.0);
            let source = |to: usize| {
                let from = (to + before).checked_sub(place).filter(|from| from.is_multiple_of(self.strides.depth));
                from.map(|from| from / self.strides.depth).filter(|&from| from < n).unwrap_or(n) as i64
            };
            let sources: Vec<i64> = (0..size.depth).map(source).collect();
            wide.gather_axis(&x.graph().constant(Array::from(sources)), 1, 0)
        });
        parts.reduce(|sum, part| sum + part).ok_or_else(|| Error::config("the kernel has no depth"))
    }
}

config_setters!(Conv3dTranspose);
affine_setters!(Conv3dTranspose);

impl Described for Conv3dTranspose {
    const CLASS: &'static str = "Conv3DTranspose";

    fn template() -> Conv3dTranspose {
        Conv3dTranspose::new(1, 1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Conv3dTranspose {
        fields.only("data_format", "channels_last");
        fields.only("groups", 1);
        fields.only_read("dilation_rate", &[1.into(), vec![1, 1, 1].into()]);
        Conv3dTranspose {
            filters: fields.required("filters", &self.filters),
            size: fields.required("kernel_size", &self.size),
            strides: fields.value("strides", &self.strides),
            padding: fields.value("padding", &self.padding),
            output_padding: fields.value("output_padding", &self.output_padding),
            affine: self.affine.fields(fields, KERNEL),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Conv3dTranspose {
    fn kind(&self) -> &'static str {
        "conv3d_transpose"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let (size, strides) = (self.size, self.strides);
        if self.filters == 0 || !is_positive(&[size, strides]) {
            let text = format!("{} filters of {size:?}, strides {strides:?}", self.filters);
            return build.refuse(Error::config(text).help("all sizes are at least 1"));
        }
        if !build.takes(5..=5, "[batch, depth, height, width, channels]") {
            return;
        }
        if let Err(error) = self.output_size(build.input()) {
            return build.refuse(error);
        }
        let dims = [size.depth, size.height, size.width, self.filters, build.channels()];
        build_kernel(&self.affine.kernel, build, "kernel", &dims);
        self.affine.build_bias(build, self.filters);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let (x, kernel) = (call.input(), call.weight("kernel"));
        if kernel.is_poisoned() {
            return kernel;
        }
        match self.transposed(x, &kernel) {
            Ok(y) => self.affine.finish(call, &y),
            Err(error) => x.graph().error(error),
        }
    }
}
