//! Activations by name, as `tf.keras.activations` defines them. An activation is an option of other
//! layers and also a layer of its own.

use std::fmt;
use std::str::FromStr;

use estimand_graph::Tensor;
use estimand_tensor::{DType, Error, Result};

use crate::config::{self, Described, Dialect, Fields, Json, Node};
use crate::layer::{Config, Layer, LayerCall, LayerInputs, MODULE, config_setters};

/// A function that is applied to each element (softmax: to each row).
///
/// ```
/// use estimand_nn::Activation;
/// assert_eq!("relu".parse::<Activation>()?, Activation::Relu);
/// assert!("rely".parse::<Activation>().unwrap_err().to_string().contains("did you mean `relu`?"));
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Activation {
    /// `x`
    Linear,
    /// `max(x, 0)`
    Relu,
    /// `min(max(x, 0), 6)`
    Relu6,
    /// `x` above 0, `e^x - 1` below
    Elu,
    /// Scaled exponential linear unit
    Selu,
    /// `ln(1 + e^x)`
    Softplus,
    /// `x / (1 + |x|)`
    Softsign,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// `0.2 x + 0.5`, limited to [0, 1]: the `hard_sigmoid` of Keras 2
    HardSigmoid,
    /// `x / 6 + 0.5`, limited to [0, 1]: the `hard_sigmoid` of Keras 3
    HardSigmoidKeras3,
    /// Hyperbolic tangent
    Tanh,
    /// `e^x / sum(e^x)` over the last axis
    Softmax,
    /// Gaussian error linear unit, exact
    Gelu,
    /// `x * sigmoid(x)`
    Swish,
    /// `x` above 0, the factor times `x` below. Looked up by name, the factor is 0.2, as in
    /// `tf.nn.leaky_relu`.
    LeakyRelu(f64),
    /// `e^x`
    Exponential,
    /// `x * tanh(softplus(x))`
    Mish,
    /// `x` times the `hard_sigmoid` of Keras 3; also called `hard_swish`
    HardSilu,
    /// `x` above 0, `e^x - 1` below, as [`Elu`](Activation::Elu)
    Celu,
    /// `x`, limited to [-1, 1]
    HardTanh,
    /// `x`, but 0 between -0.5 and 0.5
    HardShrink,
    /// `x`, moved towards 0 by 0.5 at most
    SoftShrink,
    /// `x - tanh(x)`
    TanhShrink,
    /// `ln(sigmoid(x))`
    LogSigmoid,
    /// `ln(softmax(x))` over the last axis
    LogSoftmax,
    /// `(x + sqrt(x^2 + 4)) / 2`
    Squareplus,
    /// 0 up to -1, `(x + 1)^2 / 4` up to 1, then `x`
    SparsePlus,
    /// `(x + 1) / 2`, limited to [0, 1]
    SparseSigmoid,
}

/// Every activation, with TensorFlow's defaults.
pub const ALL_ACTIVATIONS: [Activation; 28] = [
    Activation::Linear,
    Activation::Relu,
    Activation::Relu6,
    Activation::Elu,
    Activation::Selu,
    Activation::Softplus,
    Activation::Softsign,
    Activation::Sigmoid,
    Activation::HardSigmoid,
    Activation::HardSigmoidKeras3,
    Activation::Tanh,
    Activation::Softmax,
    Activation::Gelu,
    Activation::Swish,
    Activation::LeakyRelu(0.2),
    Activation::Exponential,
    Activation::Mish,
    Activation::HardSilu,
    Activation::Celu,
    Activation::HardTanh,
    Activation::HardShrink,
    Activation::SoftShrink,
    Activation::TanhShrink,
    Activation::LogSigmoid,
    Activation::LogSoftmax,
    Activation::Squareplus,
    Activation::SparsePlus,
    Activation::SparseSigmoid,
];

impl Activation {
    /// TensorFlow's name of the activation. The `hard_sigmoid` of Keras 3 has a name of its own.
    pub fn name(self) -> &'static str {
        match self {
            Activation::Linear => "linear",
            Activation::Relu => "relu",
            Activation::Relu6 => "relu6",
            Activation::Elu => "elu",
            Activation::Selu => "selu",
            Activation::Softplus => "softplus",
            Activation::Softsign => "softsign",
            Activation::Sigmoid => "sigmoid",
            Activation::HardSigmoid => "hard_sigmoid",
            Activation::HardSigmoidKeras3 => "hard_sigmoid_keras3",
            Activation::Tanh => "tanh",
            Activation::Softmax => "softmax",
            Activation::Gelu => "gelu",
            Activation::Swish => "swish",
            Activation::LeakyRelu(_) => "leaky_relu",
            Activation::Exponential => "exponential",
            Activation::Mish => "mish",
            Activation::HardSilu => "hard_silu",
            Activation::Celu => "celu",
            Activation::HardTanh => "hard_tanh",
            Activation::HardShrink => "hard_shrink",
            Activation::SoftShrink => "soft_shrink",
            Activation::TanhShrink => "tanh_shrink",
            Activation::LogSigmoid => "log_sigmoid",
            Activation::LogSoftmax => "log_softmax",
            Activation::Squareplus => "squareplus",
            Activation::SparsePlus => "sparse_plus",
            Activation::SparseSigmoid => "sparse_sigmoid",
        }
    }

    /// Applies the function to a tensor, without a layer around it.
    #[track_caller]
    pub(crate) fn of(self, x: &Tensor) -> Tensor {
        match self {
            Activation::Linear => x.clone(),
            Activation::Relu => x.relu(),
            Activation::Relu6 => x.relu6(),
            Activation::Elu => x.elu(),
            Activation::Selu => x.selu(),
            Activation::Softplus => x.softplus(),
            Activation::Softsign => x.softsign(),
            Activation::Sigmoid => x.sigmoid(),
            Activation::HardSigmoid => (x * 0.2 + 0.5).clip(0.0, 1.0),
            Activation::HardSigmoidKeras3 => (x + 3.0).relu6() / 6.0,
            Activation::Tanh => x.tanh(),
            Activation::Softmax => x.softmax(),
            Activation::Gelu => x.gelu(),
            Activation::Swish => x.swish(),
            Activation::LeakyRelu(alpha) => x.leaky_relu(alpha),
            Activation::Exponential => x.exp(),
            Activation::Mish => x * x.softplus().tanh(),
            Activation::HardSilu => x * Activation::HardSigmoidKeras3.of(x),
            Activation::Celu => x.elu(),
            Activation::HardTanh => x.clip(-1.0, 1.0),
            Activation::HardShrink => x * x.abs().greater(0.5).cast(DType::F32),
            Activation::SoftShrink => x - x.clip(-0.5, 0.5),
            Activation::TanhShrink => x - x.tanh(),
            Activation::LogSigmoid => -(-x).softplus(),
            Activation::LogSoftmax => x.log_softmax(),
            Activation::Squareplus => (x + (x.square() + 4.0).sqrt()) / 2.0,
            Activation::SparsePlus => ((x.clip(-1.0, 1.0) + 1.0).square() / 4.0) + (x - 1.0).relu(),
            Activation::SparseSigmoid => (x * 0.5 + 0.5).clip(0.0, 1.0),
        }
    }
}

impl fmt::Display for Activation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Activation {
    type Err = Error;

    fn from_str(name: &str) -> Result<Activation, Error> {
        let found = ALL_ACTIVATIONS.into_iter().find(|a| a.name() == name);
        found.ok_or_else(|| Error::unknown("activation", name, ALL_ACTIVATIONS.iter().map(|a| a.name())))
    }
}

/// An activation as a layer with a name. `Activation` itself is a layer without one.
#[derive(Clone, Debug)]
#[must_use]
pub struct ActivationLayer {
    activation: Activation,
    /// Whether it was Keras' layer `Identity`.
    is_identity: bool,
    config: Config,
}

impl ActivationLayer {
    /// Applies the activation.
    pub fn new(activation: Activation) -> ActivationLayer {
        ActivationLayer { activation, is_identity: false, config: Config::default() }
    }
}

config_setters!(ActivationLayer);

impl Described for ActivationLayer {
    const CLASS: &'static str = "Activation";

    fn template() -> ActivationLayer {
        ActivationLayer::new(Activation::Linear)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> ActivationLayer {
        ActivationLayer {
            activation: fields.required("activation", &self.activation),
            is_identity: self.is_identity,
            config: self.config.fields(fields),
        }
    }
}

/// Reads Keras' layer `Identity`, which is the linear activation.
pub(crate) fn identity(config: &Node<'_>) -> Result<ActivationLayer> {
    let own = ActivationLayer { is_identity: true, ..ActivationLayer::new(Activation::Linear) };
    config.with_fields(|fields| ActivationLayer { config: own.config.fields(fields), ..own })
}

impl Layer for ActivationLayer {
    fn kind(&self) -> &'static str {
        self.activation.kind()
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn supports_masking(&self) -> bool {
        true
    }

    /// TF: `Identity` of Keras 2 drops its mask.
    fn compute_mask(&self, inputs: &LayerInputs) -> Option<Tensor> {
        let drops = self.is_identity && inputs.rules() == Dialect::Keras2;
        inputs.mask_of(0).filter(|_| !drops).cloned()
    }

    fn to_json(&self) -> Result<Json> {
        let mut json = config::write(MODULE, self)?;
        if self.is_identity {
            json["class_name"] = "Identity".into();
            json["config"].as_object_mut().map(|config| config.remove("activation"));
        }
        Ok(json)
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.activation.call(call)
    }
}

/// `Activation::Relu.apply(&x)`. An activation has no weights, and its layer name is generated.
impl Layer for Activation {
    fn kind(&self) -> &'static str {
        "activation"
    }

    fn config(&self) -> &Config {
        &Config::DEFAULT
    }

    fn supports_masking(&self) -> bool {
        true
    }

    fn to_json(&self) -> Result<Json> {
        ActivationLayer::new(*self).to_json()
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.of(call.input())
    }
}
