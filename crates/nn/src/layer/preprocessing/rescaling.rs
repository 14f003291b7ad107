//! `Rescaling`: a factor and an offset.

use estimand_graph::Tensor;
use estimand_tensor::{DType, Result};

use crate::config::{self, Described, Fields, Json};
use crate::layer::{Config, Layer, LayerCall, MODULE, config_setters};

/// `x * scale + offset`. `Rescaling::new(1.0 / 255.0)` turns the bytes of images into numbers from
/// 0 to 1. Integers become f32.
#[derive(Clone, Debug)]
#[must_use]
pub struct Rescaling {
    scale: f64,
    offset: f64,
    config: Config,
}

impl Rescaling {
    /// Multiplies by `scale`.
    pub fn new(scale: f64) -> Rescaling {
        Rescaling { scale, offset: 0.0, config: Config::default() }
    }

    /// The number that is added after scaling. By default 0.
    pub fn offset(mut self, offset: f64) -> Rescaling {
        self.offset = offset;
        self
    }
}

config_setters!(Rescaling);

impl Described for Rescaling {
    const CLASS: &'static str = "Rescaling";

    fn template() -> Rescaling {
        Rescaling::new(1.0)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Rescaling {
        Rescaling {
            scale: fields.required("scale", &self.scale),
            offset: fields.value("offset", &self.offset),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Rescaling {
    fn kind(&self) -> &'static str {
        "rescaling"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        numbers(call.input()) * self.scale + self.offset
    }
}

/// Numbers of any dtype as f32.
#[track_caller]
pub(super) fn numbers(x: &Tensor) -> Tensor {
    if x.dtype() == DType::F32 { x.clone() } else { x.cast(DType::F32) }
}
