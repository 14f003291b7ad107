//! `UpSampling1d` and `UpSampling2d`: enlarge sequences and images.

use estimand_graph::{Graph, Tensor};
use estimand_tensor::{Array, Error, Result, Shape};

use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};
use crate::size::{Size2d, Size3d};

/// Repeats every step of `[batch, steps, channels]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct UpSampling1d {
    size: usize,
    config: Config,
}

impl UpSampling1d {
    /// Repeats every step `size` times.
    pub fn new(size: usize) -> UpSampling1d {
        UpSampling1d { size, config: Config::default() }
    }
}

config_setters!(UpSampling1d);

impl Described for UpSampling1d {
    const CLASS: &'static str = "UpSampling1D";

    fn template() -> UpSampling1d {
        UpSampling1d::new(2)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> UpSampling1d {
        UpSampling1d { size: fields.value("size", &self.size), config: self.config.fields(fields) }
    }
}

impl Layer for UpSampling1d {
    fn kind(&self) -> &'static str {
        "up_sampling1d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        if let Some(error) = call.expect_rank(3..=3, "[batch, steps, channels]") {
            return error;
        }
        let x = call.input();
        if self.size == 0 {
            return x.graph().error(Error::config("the size of up_sampling1d is 0; expected at least 1"));
        }
        let dims = x.shape().dims();
        x.expand_dims(2).tile(&[1, 1, self.size, 1]).reshape_as(Shape::from([dims[0], Graph::ANY, dims[2]]))
    }
}

/// Enlarges images `[batch, height, width, channels]` by whole factors. Height and width must be
/// known.
#[derive(Clone, Debug)]
#[must_use]
pub struct UpSampling2d {
    size: Size2d,
    bilinear: bool,
    config: Config,
}

impl UpSampling2d {
    /// Repeats every pixel by a size (one number or `(height, width)`).
    pub fn new(size: impl Into<Size2d>) -> UpSampling2d {
        UpSampling2d { size: size.into(), bilinear: false, config: Config::default() }
    }

    /// Interpolates linearly between pixels. By default pixels are repeated.
    pub fn bilinear(mut self) -> UpSampling2d {
        self.bilinear = true;
        self
    }
}

config_setters!(UpSampling2d);

impl Described for UpSampling2d {
    const CLASS: &'static str = "UpSampling2D";

    fn template() -> UpSampling2d {
        UpSampling2d::new(2)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> UpSampling2d {
        fields.only("data_format", "channels_last");
        UpSampling2d {
            size: fields.value("size", &self.size),
            bilinear: fields.choice("interpolation", &self.bilinear, &[("nearest", false), ("bilinear", true)]),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for UpSampling2d {
    fn kind(&self) -> &'static str {
        "up_sampling2d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        if let Some(error) = call.expect_rank(4..=4, "[batch, height, width, channels]") {
            return error;
        }
        let (x, (rows, columns)) = (call.input(), self.size.pair());
        if rows == 0 || columns == 0 {
            let text = format!("the size of up_sampling2d is {rows} x {columns}; expected at least 1 x 1");
            return x.graph().error(Error::config(text));
        }
        let dims = x.shape().dims();
        let size = |axis: usize, factor: usize| dims[axis].known().map(|n| n.saturating_mul(factor));
        match (size(1, rows), size(2, columns)) {
            (Some(height), Some(width)) if self.bilinear => x.resize_bilinear((height, width)),
            (Some(height), Some(width)) => x.resize_nearest((height, width)),
            _ => {
                let text = format!("up_sampling2d got {}, whose height or width is not known", x.describe());
                x.graph().error(Error::shape(text).help("declare the sizes of the placeholder, or reshape"))
            }
        }
    }
}

/// Repeats the places of volumes `[batch, depth, height, width, channels]`. Their sizes must be
/// known.
#[derive(Clone, Debug)]
#[must_use]
pub struct UpSampling3d {
    size: Size3d,
    config: Config,
}

impl UpSampling3d {
    /// Repeats by a size (one number or `(depth, height, width)`).
    pub fn new(size: impl Into<Size3d>) -> UpSampling3d {
        UpSampling3d { size: size.into(), config: Config::default() }
    }
}

config_setters!(UpSampling3d);

impl Described for UpSampling3d {
    const CLASS: &'static str = "UpSampling3D";

    fn template() -> UpSampling3d {
        UpSampling3d::new(2)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> UpSampling3d {
        fields.only("data_format", "channels_last");
        UpSampling3d { size: fields.value("size", &self.size), config: self.config.fields(fields) }
    }
}

impl Layer for UpSampling3d {
    fn kind(&self) -> &'static str {
        "up_sampling3d"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        if let Some(error) = call.expect_rank(5..=5, "[batch, depth, height, width, channels]") {
            return error;
        }
        let x = call.input();
        let factors = [self.size.depth, self.size.height, self.size.width];
        let sizes: Option<Vec<usize>> = x.shape().dims()[1..4].iter().map(|dim| dim.known()).collect();
        let Some(sizes) = sizes.filter(|_| !factors.contains(&0)) else {
            let text = format!("up_sampling3d by {factors:?} got {}", x.describe());
            return x.graph().error(Error::shape(text).help("declare all sizes, and repeat at least once"));
        };
        let repeated = |x: Tensor, (i, &factor): (usize, &usize)| {
            let places: Vec<i64> = (0..sizes[i] * factor).map(|place| (place / factor) as i64).collect();
            x.gather_axis(&x.graph().constant(Array::from(places)), i as i64 + 1, 0)
        };
        factors.iter().enumerate().fold(x.clone(), repeated)
    }
}
