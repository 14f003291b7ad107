//! `RandomContrast` and `RandomBrightness`.

use estimand_graph::{Axes, Tensor};
use estimand_tensor::{Error, Result};

use super::factor::{Factor, between};
use super::images;
use crate::config::{self, Described, Fields, Json};
use crate::layer::{Build, Config, Layer, LayerCall, MODULE, config_setters};

/// The usual range of pixels.
const PIXELS: (f64, f64) = (0.0, 255.0);

/// In training, moves the pixels of each channel away from their mean or towards it, by a factor
/// that all images of a batch share, as in tf.keras. Results are clipped to the range of values.
#[derive(Clone, Debug)]
#[must_use]
pub struct RandomContrast {
    factor: Factor,
    value_range: Option<(f64, f64)>,
    config: Config,
}

impl RandomContrast {
    /// Draws from `1 - f` to `1 + f`, or from `1 - lower` to `1 + upper`.
    pub fn new(factor: impl Into<Factor>) -> RandomContrast {
        RandomContrast { factor: factor.into(), value_range: None, config: Config::default() }
    }

    /// The smallest and the largest value of a pixel, which Keras 2 cannot write. By default 0 and
    /// 255.
    pub fn value_range(mut self, low: f64, high: f64) -> RandomContrast {
        self.value_range = Some((low, high));
        self
    }
}

config_setters!(RandomContrast);

impl Described for RandomContrast {
    const CLASS: &'static str = "RandomContrast";

    fn template() -> RandomContrast {
        RandomContrast::new(0.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RandomContrast {
        fields.ignored("seed");
        fields.only_read("data_format", &["channels_last".into()]);
        let range = fields.optional("value_range", &self.value_range.map(Factor::from)).map(Factor::given);
        RandomContrast {
            factor: fields.required("factor", &self.factor),
            value_range: range.filter(|range| *range != PIXELS),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for RandomContrast {
    fn kind(&self) -> &'static str {
        "random_contrast"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let (lower, upper) = self.factor.given();
        if !(0.0..=1.0).contains(&lower) || upper.is_nan() || upper < 0.0 {
            let text = format!("the factor is ({lower}, {upper}); expected two numbers from 0, the first up to 1");
            build.refuse(Error::config(text));
        }
        if let Some((low, high)) = self.value_range.filter(|(low, high)| low >= high) {
            build.refuse(Error::config(format!("the range of values is {low} to {high}; expected a range that rises")));
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = match images(call, self.kind()) {
            Ok((x, ..)) if call.training() => x,
            Ok((x, ..)) | Err(x) => return x,
        };
        let (lower, upper) = self.factor.given();
        let factor = between(&x.graph().random_uniform([1]), 1.0 - lower, 1.0 + upper);
        let mean = x.mean_axes(Axes::of([1, 2]).keep_dims());
        let (low, high) = self.value_range.unwrap_or(PIXELS);
        ((&x - &mean) * factor + mean).clip(low, high)
    }
}

/// In training, adds the same random number to all pixels of an image. Results are clipped to the
/// range of values.
#[derive(Clone, Debug)]
#[must_use]
pub struct RandomBrightness {
    factor: Factor,
    value_range: (f64, f64),
    config: Config,
}

impl RandomBrightness {
    /// Draws a part of the range of values, from `-f` to `f` or from `lower` to `upper`.
    pub fn new(factor: impl Into<Factor>) -> RandomBrightness {
        RandomBrightness { factor: factor.into(), value_range: PIXELS, config: Config::default() }
    }

    /// The smallest and the largest value of a pixel. By default 0 and 255.
    pub fn value_range(mut self, low: f64, high: f64) -> RandomBrightness {
        self.value_range = (low, high);
        self
    }
}

config_setters!(RandomBrightness);

impl Described for RandomBrightness {
    const CLASS: &'static str = "RandomBrightness";

    fn template() -> RandomBrightness {
        RandomBrightness::new(0.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RandomBrightness {
        fields.ignored("seed");
        fields.only_read("data_format", &["channels_last".into()]);
        let own = Factor::from(self.value_range);
        let range = fields.value("value_range", &own).given();
        // Keras writes both numbers, also of one.
        let both = Factor::from((self.factor.lower, self.factor.upper));
        RandomBrightness {
            factor: fields.required("factor", &both),
            value_range: range,
            config: self.config.fields(fields),
        }
    }
}

impl Layer for RandomBrightness {
    fn kind(&self) -> &'static str {
        "random_brightness"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        let (low, high) = self.value_range;
        if !self.factor.fits(-1.0, 1.0) || low >= high {
            let text = format!("the factor is {:?} and the range {low} to {high}", self.factor);
            build.refuse(Error::config(text).help("a factor is from -1 to 1, and ranges rise"));
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = match images(call, self.kind()) {
            Ok((x, ..)) if call.training() => x,
            Ok((x, ..)) | Err(x) => return x,
        };
        let (low, high) = self.value_range;
        (&x + self.factor.draw(&x, 4) * (high - low)).clip(low, high)
    }
}
