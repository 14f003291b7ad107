//! The parts that `Dense` and the convolutions share: a kernel, a bias, an activation, regularizers
//! and constraints.

use estimand_graph::{Initializer, Tensor};
use estimand_tensor::DType;

use super::weight_options::{BIAS, WeightOptions};
use super::{Build, LayerCall};
use crate::activation::Activation;
use crate::config::Fields;
use crate::regularizer::Regularizer;

/// The options of a layer with a kernel, as set on the layer itself. Defaults of the scope are not
/// included.
#[derive(Clone, Debug)]
pub(super) struct Affine {
    pub kernel: WeightOptions,
    pub bias: WeightOptions,
    pub use_bias: bool,
    pub activation: Option<Activation>,
    pub activity_regularizer: Option<Regularizer>,
}

impl Affine {
    pub fn new() -> Affine {
        Affine {
            kernel: WeightOptions::default(),
            bias: WeightOptions::default(),
            use_bias: true,
            activation: None,
            activity_regularizer: None,
        }
    }

    /// Writes or reads the options; those of the kernel under these keys.
    pub fn fields(&self, fields: &mut Fields<'_>, kernel: [&'static str; 3]) -> Affine {
        Affine {
            activation: fields.or("activation", &self.activation, Activation::Linear),
            use_bias: fields.value("use_bias", &self.use_bias),
            kernel: self.kernel.fields(fields, kernel, Initializer::GlorotUniform),
            bias: self.bias.fields(fields, BIAS, Initializer::Zeros),
            activity_regularizer: fields.value("activity_regularizer", &self.activity_regularizer),
        }
    }

    /// Makes kernel and bias. The kernel's last axis is the number of outputs.
    #[track_caller]
    pub fn build(&self, build: &mut Build<'_>, kernel: &[usize]) {
        build_kernel(&self.kernel, build, "kernel", kernel);
        self.build_bias(build, kernel.last().copied().unwrap_or(1));
    }

    /// Makes the bias, if the layer has one.
    #[track_caller]
    pub fn build_bias(&self, build: &mut Build<'_>, outputs: usize) {
        if self.use_bias {
            let defaults = build.defaults();
            let options = self.bias.or(defaults.bias_initializer.clone(), defaults.bias_regularizer);
            options.build(build, "bias", &[outputs], Initializer::Zeros);
        }
    }

    /// Adds the bias to the product of input and kernel, and applies the activation.
    #[track_caller]
    pub fn finish(&self, call: &LayerCall<'_>, product: &Tensor) -> Tensor {
        let sum = match call.find("bias") {
            Some(bias) => product + bias,
            None => product.clone(),
        };
        let activation = self.activation.or(call.defaults().activation);
        let y = activation.unwrap_or(Activation::Linear).of(&sum);
        if let Some(regularizer) = self.activity_regularizer {
            // TF: the penalty is a mean over the rows, whatever the result's other axes are.
            let rows = y.size(0).cast(DType::F32);
            y.graph().add_regularization_loss(&(regularizer.loss(&y) / rows));
        }
        y
    }
}

/// Makes a kernel. Options that the layer does not set come from the scope's defaults.
#[track_caller]
pub(super) fn build_kernel(options: &WeightOptions, build: &mut Build<'_>, name: &'static str, dims: &[usize]) {
    let defaults = build.defaults();
    let options = options.or(defaults.kernel_initializer.clone(), defaults.kernel_regularizer);
    options.build(build, name, dims, Initializer::GlorotUniform);
}

/// The setters of a layer with a field `affine: Affine` and one kernel.
macro_rules! affine_setters {
    ($layer:ty) => {
        super::weight_options::weight_setters!(
            $layer, affine.kernel, "kernel", "as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule":
            kernel_initializer, kernel_regularizer, kernel_constraint
        );
        super::affine::result_setters!($layer);
    };
}
pub(super) use affine_setters;

/// The setters of a layer with a field `affine: Affine` for the options that follow the kernel.
macro_rules! result_setters {
    ($layer:ty) => {
        super::weight_options::weight_setters!(
            $layer, affine.bias, "bias", "as [`Defaults`](crate::Defaults) say, or at 0": bias_initializer, bias_regularizer, bias_constraint
        );

        impl $layer {
            /// Whether the layer adds a bias. By default it does.
            pub fn use_bias(mut self, use_bias: bool) -> Self {
                self.affine.use_bias = use_bias;
                self
            }

            /// The penalty on the result, as a mean over the batch. By default none.
            pub fn activity_regularizer(mut self, regularizer: crate::Regularizer) -> Self {
                self.affine.activity_regularizer = Some(regularizer);
                self
            }

            /// The activation. By default that of [`Defaults`](crate::Defaults), or none.
            pub fn activation(mut self, activation: crate::Activation) -> Self {
                self.affine.activation = Some(activation);
                self
            }

            /// No activation, even if [`Defaults`](crate::Defaults) set one.
            pub fn linear(self) -> Self {
                self.activation(crate::Activation::Linear)
            }

            /// Applies `max(x, 0)` to the result.
            pub fn relu(self) -> Self {
                self.activation(crate::Activation::Relu)
            }

            /// Applies the hyperbolic tangent to the result.
            pub fn tanh(self) -> Self {
                self.activation(crate::Activation::Tanh)
            }

            /// Applies `1 / (1 + e^-x)` to the result.
            pub fn sigmoid(self) -> Self {
                self.activation(crate::Activation::Sigmoid)
            }

            /// Applies a softmax over the last axis to the result.
            pub fn softmax(self) -> Self {
                self.activation(crate::Activation::Softmax)
            }
        }
    };
}
pub(super) use result_setters;
