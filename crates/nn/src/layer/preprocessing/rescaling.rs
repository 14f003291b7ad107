//! `Rescaling`: a factor and an offset.

use estimand_graph::Tensor;
use estimand_tensor::{Array, DType, Error, Result};

use crate::config::{self, Described, Dialect, Field, Fields, Json, Node};
use crate::layer::{Build, Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};

/// `x * scale + offset`. `Rescaling::new(1.0 / 255.0)` turns the bytes of images into numbers from
/// 0 to 1. Integers become f32.
#[derive(Clone, Debug)]
#[must_use]
pub struct Rescaling {
    scale: Factor,
    offset: Factor,
    config: Config,
}

impl Rescaling {
    /// Multiplies by `scale`.
    pub fn new(scale: f64) -> Rescaling {
        Rescaling { scale: Factor::All(scale), offset: Factor::All(0.0), config: Config::default() }
    }

    /// Multiplies each place of the last axis by its own factor.
    pub fn per_channel(scale: impl Into<Vec<f64>>) -> Rescaling {
        Rescaling { scale: Factor::Each(scale.into()), ..Rescaling::new(1.0) }
    }

    /// The number that is added after scaling. By default 0.
    pub fn offset(mut self, offset: f64) -> Rescaling {
        self.offset = Factor::All(offset);
        self
    }

    /// The numbers that are added after scaling, one for each place of the last axis.
    pub fn offsets(mut self, offsets: impl Into<Vec<f64>>) -> Rescaling {
        self.offset = Factor::Each(offsets.into());
        self
    }
}

/// A number for all values, or one for each place of the last axis.
#[derive(Clone, Debug)]
enum Factor {
    All(f64),
    Each(Vec<f64>),
}

impl Factor {
    /// A mistake in the number of factors for a tensor.
    fn check(&self, x: &Tensor, what: &str) -> Result<()> {
        let (Factor::Each(values), Some(last)) = (self, x.shape().dims().last()) else { return Ok(()) };
        match last.known() {
            Some(n) if n != values.len() && values.len() != 1 => {
                let text = format!("there are {} {what} for {}; expected {n}", values.len(), x.describe());
                Err(Error::shape(text))
            }
            _ => Ok(()),
        }
    }

    #[track_caller]
    fn tensor(&self, x: &Tensor) -> Tensor {
        match self {
            Factor::All(value) => x.graph().constant(*value as f32),
            Factor::Each(values) => {
                x.graph().constant(Array::from(values.iter().map(|v| *v as f32).collect::<Vec<f32>>()))
            }
        }
    }
}

impl Field for Factor {
    fn write(&self) -> Result<Json> {
        match self {
            Factor::All(value) => value.write(),
            Factor::Each(values) => values.write(),
        }
    }

    fn read(node: &Node<'_>) -> Result<Factor> {
        if node.value().is_array() { Vec::read(node).map(Factor::Each) } else { f64::read(node).map(Factor::All) }
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

    /// TF: in Keras 3 it passes its mask on.
    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        inputs.mask_of(0).filter(|_| inputs.rules() == Dialect::Keras3).cloned()
    }

    fn build(&self, build: &mut Build<'_>) {
        let checked =
            self.scale.check(build.input(), "factors").and_then(|()| self.offset.check(build.input(), "offsets"));
        if let Err(error) = checked {
            build.refuse(error);
        }
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = numbers(call.input());
        let (scale, offset) = (self.scale.tensor(&x), self.offset.tensor(&x));
        x * scale + offset
    }
}

/// Numbers of any dtype as f32.
#[track_caller]
pub(super) fn numbers(x: &Tensor) -> Tensor {
    if x.dtype() == DType::F32 { x.clone() } else { x.cast(DType::F32) }
}
