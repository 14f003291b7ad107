//! What `Dense` and `Conv2d` have in common: a kernel, a bias, an activation, regularizers.

use estimand_graph::{Init, Tensor};
use estimand_tensor::DType;

use super::{Build, Call};
use crate::activation::Activation;
use crate::defaults::Defaults;
use crate::regularizer::Regularizer;

/// The options around a product with a kernel.
#[derive(Clone, Debug)]
pub(super) struct Affine {
    /// What the layer itself says, before the scope's defaults.
    pub options: Defaults,
    pub use_bias: bool,
    pub activity_regularizer: Option<Regularizer>,
}

impl Affine {
    pub fn new() -> Affine {
        Affine { options: Defaults::new(), use_bias: true, activity_regularizer: None }
    }

    /// Makes kernel and bias; the kernel's last axis counts the outputs.
    #[track_caller]
    pub fn build(&self, build: &mut Build<'_>, kernel: &[usize]) {
        let options = self.options.clone().or(build.defaults().clone());
        let init = options.kernel_init.unwrap_or(Init::GlorotUniform);
        build.weight("kernel", kernel, init, options.kernel_regularizer);
        if self.use_bias {
            let init = options.bias_init.unwrap_or(Init::Zeros);
            build.weight("bias", &kernel[kernel.len().saturating_sub(1)..], init, options.bias_regularizer);
        }
    }

    /// Bias and activation of what the kernel made of the input.
    #[track_caller]
    pub fn finish(&self, call: &Call<'_>, product: &Tensor) -> Tensor {
        let sum = match call.find("bias") {
            Some(bias) => product + bias,
            None => product.clone(),
        };
        let activation = self.options.activation.or(call.defaults().activation);
        let y = activation.unwrap_or(Activation::Linear).of(&sum);
        if let Some(regularizer) = self.activity_regularizer {
            // TF: a mean over the rows, whatever else the result's axes are.
            let rows = y.size(0).cast(DType::F32);
            y.graph().add_regularization_loss(&(regularizer.loss(&y) / rows));
        }
        y
    }
}

/// The setters of a layer with a field `affine: Affine`.
macro_rules! affine_setters {
    ($layer:ty) => {
        impl $layer {
            /// Whether a bias is added. By default it is.
            pub fn use_bias(mut self, use_bias: bool) -> Self {
                self.affine.use_bias = use_bias;
                self
            }

            /// How the kernel begins. By default as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule.
            pub fn kernel_init(mut self, init: estimand_graph::Init) -> Self {
                self.affine.options.kernel_init = Some(init);
                self
            }

            /// How the bias begins. By default as [`Defaults`](crate::Defaults) say, or at 0.
            pub fn bias_init(mut self, init: estimand_graph::Init) -> Self {
                self.affine.options.bias_init = Some(init);
                self
            }

            /// What the kernel costs. By default what [`Defaults`](crate::Defaults) say, or nothing.
            pub fn kernel_regularizer(mut self, regularizer: crate::Regularizer) -> Self {
                self.affine.options.kernel_regularizer = Some(regularizer);
                self
            }

            /// What the bias costs. By default what [`Defaults`](crate::Defaults) say, or nothing.
            pub fn bias_regularizer(mut self, regularizer: crate::Regularizer) -> Self {
                self.affine.options.bias_regularizer = Some(regularizer);
                self
            }

            /// What the result costs, as a mean over the batch. By default nothing.
            pub fn activity_regularizer(mut self, regularizer: crate::Regularizer) -> Self {
                self.affine.activity_regularizer = Some(regularizer);
                self
            }

            /// What follows. By default what [`Defaults`](crate::Defaults) say, or nothing.
            pub fn activation(mut self, activation: crate::Activation) -> Self {
                self.affine.options.activation = Some(activation);
                self
            }

            /// No activation, whatever [`Defaults`](crate::Defaults) say.
            pub fn linear(self) -> Self {
                self.activation(crate::Activation::Linear)
            }

            /// `max(x, 0)` follows.
            pub fn relu(self) -> Self {
                self.activation(crate::Activation::Relu)
            }

            /// The hyperbolic tangent follows.
            pub fn tanh(self) -> Self {
                self.activation(crate::Activation::Tanh)
            }

            /// `1 / (1 + e^-x)` follows.
            pub fn sigmoid(self) -> Self {
                self.activation(crate::Activation::Sigmoid)
            }

            /// A softmax over the last axis follows.
            pub fn softmax(self) -> Self {
                self.activation(crate::Activation::Softmax)
            }
        }
    };
}
pub(super) use affine_setters;
