//! Activations with parameters, as layers: `LeakyRelu`, `Elu`, `ThresholdedRelu` and `Relu`.
//! `PRelu`, whose parameter is learnt, is in `prelu`.

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result};

use super::one_number::one_number_layer;
use super::{Config, Layer, LayerCall, MODULE, config_setters};
use crate::config::{self, Described, Fields, Json};

one_number_layer!(
    /// `x` above 0, `alpha * x` below. Keras's default alpha is 0.3.
    LeakyRelu,
    "leaky_re_lu",
    "LeakyReLU",
    ["alpha", "negative_slope"],
    [],
    alpha: "With this slope below 0.",
    (0.0..f64::INFINITY),
    "0 or more",
    leaky
);
one_number_layer!(
    /// `x` above 0, `alpha * (e^x - 1)` below. Keras's default alpha is 1.
    Elu,
    "elu",
    "ELU",
    ["alpha"],
    [],
    alpha: "With this factor below 0.",
    (0.0..f64::INFINITY),
    "0 or more",
    elu
);
one_number_layer!(
    /// `x` above `theta`, 0 elsewhere. Keras's default theta is 1.
    ThresholdedRelu,
    "thresholded_re_lu",
    "ThresholdedReLU",
    ["theta"],
    [],
    theta: "With this threshold.",
    (0.0..f64::INFINITY),
    "0 or more",
    thresholded
);

#[track_caller]
fn leaky(call: &LayerCall<'_>, alpha: f64) -> Tensor {
    call.input().leaky_relu(alpha)
}

#[track_caller]
fn elu(call: &LayerCall<'_>, alpha: f64) -> Tensor {
    let x = call.input();
    let y = x.elu();
    if alpha == 1.0 { y } else { x.greater(0.0).select(&y, &y * alpha) }
}

#[track_caller]
fn thresholded(call: &LayerCall<'_>, theta: f64) -> Tensor {
    above(call.input(), theta)
}

#[track_caller]
fn above(x: &Tensor, threshold: f64) -> Tensor {
    x * x.greater(threshold).cast(x.dtype())
}

/// `max_value` above `max_value`, `x` above `threshold`, `negative_slope * (x - threshold)` below.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Relu {
    max_value: Option<f64>,
    negative_slope: f64,
    threshold: f64,
    config: Config,
}

impl Relu {
    /// `max(x, 0)`
    pub fn new() -> Relu {
        Relu::default()
    }

    /// The largest result. By default there is none.
    pub fn max_value(mut self, max_value: f64) -> Relu {
        self.max_value = Some(max_value);
        self
    }

    /// The slope below the threshold. By default 0.
    pub fn negative_slope(mut self, negative_slope: f64) -> Relu {
        self.negative_slope = negative_slope;
        self
    }

    /// The result is `x` from this value upwards. By default 0.
    pub fn threshold(mut self, threshold: f64) -> Relu {
        self.threshold = threshold;
        self
    }
}

config_setters!(Relu);

impl Described for Relu {
    const CLASS: &'static str = "ReLU";

    fn template() -> Relu {
        Relu::new()
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Relu {
        Relu {
            max_value: fields.value("max_value", &self.max_value),
            negative_slope: fields.value("negative_slope", &self.negative_slope),
            threshold: fields.value("threshold", &self.threshold),
            config: self.config.fields(fields),
        }
    }
}

impl Layer for Relu {
    fn kind(&self) -> &'static str {
        "re_lu"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn supports_masking(&self) -> bool {
        true
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        let x = call.input();
        // An infinite limit is none, as in Keras.
        let max_value = self.max_value.filter(|&max| max != f64::INFINITY);
        let options = [
            ("max_value", max_value.unwrap_or(0.0)),
            ("negative_slope", self.negative_slope),
            ("threshold", self.threshold),
        ];
        if let Some((name, value)) = options.iter().find(|(_, value)| !(0.0..f64::INFINITY).contains(value)) {
            return x.graph().error(Error::config(format!("the {name} of re_lu is {value}; expected 0 or more")));
        }
        let y = if self.threshold == 0.0 { x.relu() } else { above(x, self.threshold) };
        let y = match max_value {
            Some(max) => y.clip(0.0, max),
            None => y,
        };
        match self.negative_slope {
            0.0 => y,
            slope => y - (-(x - self.threshold)).relu() * slope,
        }
    }
}
