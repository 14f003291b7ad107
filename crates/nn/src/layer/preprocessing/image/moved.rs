//! `RandomTranslation`, `RandomRotation` and `RandomZoom`: images moved at random.

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use super::factor::Factor;
use super::images;
use super::sampling::{FillMode, Line, Sampling};
use crate::config::{self, Described, Fields, Json};
use crate::layer::{Build, Config, Layer, LayerCall, MODULE, config_setters};

macro_rules! sampling_setters {
    ($layer:ident) => {
        impl $layer {
            /// What is outside of the image. By default its mirror image.
            pub fn fill_mode(mut self, mode: FillMode) -> $layer {
                self.sampling.fill_mode = mode;
                self
            }

            /// The value outside of the image in the mode [`FillMode::Constant`]. By default 0.
            pub fn fill_value(mut self, value: f64) -> $layer {
                self.sampling.fill_value = value;
                self
            }

            /// Takes the nearest pixel. By default pixels are interpolated.
            pub fn nearest(mut self) -> $layer {
                self.sampling.nearest = true;
                self
            }
        }
    };
}

macro_rules! moving_layer {
    ($layer:ident, $kind:literal) => {
        sampling_setters!($layer);
        config_setters!($layer);

        impl Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &Config {
                &self.config
            }

            fn to_json(&self) -> Result<Json> {
                config::write(MODULE, self)
            }

            fn build(&self, build: &mut Build<'_>) {
                if !self.fits() {
                    build.refuse(Error::config(format!("the factors do not fit: {self:?}")).help($layer::RANGE));
                }
            }

            fn call(&self, call: &LayerCall<'_>) -> Tensor {
                match images(call, $kind) {
                    Ok((x, height, width)) if call.training() => {
                        let (column, row) = self.lines(&x, height as f64, width as f64);
                        self.sampling.of(&x, (height, width), &column, &row)
                    }
                    Ok((x, ..)) | Err(x) => x,
                }
            }
        }
    };
}

/// In training, moves each image up or down and to a side, by a part of its size. A positive factor
/// moves down and right.
#[derive(Clone, Debug)]
#[must_use]
pub struct RandomTranslation {
    height_factor: Factor,
    width_factor: Factor,
    sampling: Sampling,
    config: Config,
}

impl RandomTranslation {
    const RANGE: &'static str = "factors are from -1 to 1 and rise";

    /// Moves by these parts of the height and the width.
    pub fn new(height_factor: impl Into<Factor>, width_factor: impl Into<Factor>) -> RandomTranslation {
        let (height_factor, width_factor) = (height_factor.into(), width_factor.into());
        RandomTranslation { height_factor, width_factor, sampling: Sampling::default(), config: Config::default() }
    }

    fn fits(&self) -> bool {
        self.height_factor.fits(-1.0, 1.0) && self.width_factor.fits(-1.0, 1.0)
    }

    #[track_caller]
    fn lines(&self, x: &Tensor, height: f64, width: f64) -> (Line, Line) {
        let down = self.height_factor.draw(x, 3) * height;
        let right = self.width_factor.draw(x, 3) * width;
        let (zero, one) = (down.zeros_like(), down.ones_like());
        ([one.clone(), zero.clone(), -right], [zero, one, -down])
    }
}

impl Described for RandomTranslation {
    const CLASS: &'static str = "RandomTranslation";

    fn template() -> RandomTranslation {
        RandomTranslation::new(0.0, 0.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RandomTranslation {
        fields.ignored("seed");
        RandomTranslation {
            height_factor: fields.required("height_factor", &self.height_factor),
            width_factor: fields.required("width_factor", &self.width_factor),
            sampling: self.sampling.fields(fields),
            config: self.config.fields(fields),
        }
    }
}

moving_layer!(RandomTranslation, "random_translation");

/// In training, turns each image around its centre by a random part of a full turn.
#[derive(Clone, Debug)]
#[must_use]
pub struct RandomRotation {
    factor: Factor,
    sampling: Sampling,
    config: Config,
}

impl RandomRotation {
    const RANGE: &'static str = "a factor is a number from 0, or two that rise";

    /// Turns by these parts of a full turn; positive ones are counter-clockwise.
    pub fn new(factor: impl Into<Factor>) -> RandomRotation {
        RandomRotation { factor: factor.into(), sampling: Sampling::default(), config: Config::default() }
    }

    fn fits(&self) -> bool {
        self.factor.fits(f64::MIN, f64::MAX)
    }

    #[track_caller]
    fn lines(&self, x: &Tensor, height: f64, width: f64) -> (Line, Line) {
        let angle = self.factor.draw(x, 3) * std::f64::consts::TAU;
        let (sin, cos) = (angle.sin(), angle.cos());
        let (h, w) = (height - 1.0, width - 1.0);
        let right = (w - (&cos * w - &sin * h)) / 2.0;
        let down = (h - (&sin * w + &cos * h)) / 2.0;
        ([cos.clone(), -&sin, right], [sin, cos, down])
    }
}

impl Described for RandomRotation {
    const CLASS: &'static str = "RandomRotation";

    fn template() -> RandomRotation {
        RandomRotation::new(0.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RandomRotation {
        fields.ignored("seed");
        RandomRotation {
            factor: fields.required("factor", &self.factor),
            sampling: self.sampling.fields(fields),
            config: self.config.fields(fields),
        }
    }
}

moving_layer!(RandomRotation, "random_rotation");

/// In training, enlarges or shrinks each image around its centre. A positive factor shrinks it.
#[derive(Clone, Debug)]
#[must_use]
pub struct RandomZoom {
    height_factor: Factor,
    width_factor: Option<Factor>,
    sampling: Sampling,
    config: Config,
}

impl RandomZoom {
    const RANGE: &'static str = "factors are from -1 to 1 and rise";

    /// Changes the size by these parts, height and width alike.
    pub fn new(height_factor: impl Into<Factor>) -> RandomZoom {
        let (sampling, config) = (Sampling::default(), Config::default());
        RandomZoom { height_factor: height_factor.into(), width_factor: None, sampling, config }
    }

    /// The change of the width. By default it is that of the height.
    pub fn width_factor(mut self, width_factor: impl Into<Factor>) -> RandomZoom {
        self.width_factor = Some(width_factor.into());
        self
    }

    fn fits(&self) -> bool {
        self.height_factor.fits(-1.0, 1.0) && self.width_factor.is_none_or(|factor| factor.fits(-1.0, f64::MAX))
    }

    #[track_caller]
    fn lines(&self, x: &Tensor, height: f64, width: f64) -> (Line, Line) {
        let tall = self.height_factor.draw(x, 3) + 1.0;
        let wide = self.width_factor.map_or_else(|| tall.clone(), |factor| factor.draw(x, 3) + 1.0);
        let zero = tall.zeros_like();
        let right = (1.0 - &wide) * ((width - 1.0) / 2.0);
        let down = (1.0 - &tall) * ((height - 1.0) / 2.0);
        ([wide, zero.clone(), right], [zero, tall, down])
    }
}

impl Described for RandomZoom {
    const CLASS: &'static str = "RandomZoom";

    fn template() -> RandomZoom {
        RandomZoom::new(0.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> RandomZoom {
        fields.ignored("seed");
        RandomZoom {
            height_factor: fields.required("height_factor", &self.height_factor),
            width_factor: fields.value("width_factor", &self.width_factor),
            sampling: self.sampling.fields(fields),
            config: self.config.fields(fields),
        }
    }
}

moving_layer!(RandomZoom, "random_zoom");
