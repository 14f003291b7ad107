//! The options that all recurrent layers have.

/// The setters of a layer with a field `rnn: Rnn`.
macro_rules! rnn_setters {
    ($layer:ty) => {
        impl $layer {
            /// The activation of candidates and results. By default the hyperbolic tangent.
            ///
            /// Softmax, gelu, swish and leaky relu are computed step by step. The number of steps
            /// must then be known when the graph is built.
            pub fn activation(mut self, activation: crate::Activation) -> Self {
                self.rnn.activation = activation;
                self
            }

            /// Whether the layer has a bias. By default it does.
            pub fn use_bias(mut self, use_bias: bool) -> Self {
                self.rnn.use_bias = use_bias;
                self
            }

            /// In training, drops this fraction of the inputs, the same ones at all steps. By
            /// default none.
            pub fn dropout(mut self, rate: f64) -> Self {
                self.rnn.dropout = rate;
                self
            }

            /// In training, drops this fraction of the state before the product with the recurrent
            /// kernel. The same units are dropped at all steps and for all gates. By default none.
            pub fn recurrent_dropout(mut self, rate: f64) -> Self {
                self.rnn.recurrent_dropout = rate;
                self
            }

            /// Whether the result holds the output of every step, `[batch, time, units]`. By
            /// default it holds only the last output.
            pub fn return_sequences(mut self, return_sequences: bool) -> Self {
                self.rnn.return_sequences = return_sequences;
                self
            }

            /// Whether to read the last step first. The outputs are then in that order too. By
            /// default off.
            pub fn go_backwards(mut self, go_backwards: bool) -> Self {
                self.rnn.go_backwards = go_backwards;
                self
            }

            /// Whether the output of a masked step is 0. By default it is the output of the step
            /// before.
            pub fn zero_output_for_mask(mut self, zero: bool) -> Self {
                self.rnn.zero_output_for_mask = zero;
                self
            }
        }

        crate::layer::weight_options::weight_setters!(
            $layer,
            rnn.kernel,
            "kernel",
            "as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule": kernel_initializer,
            kernel_regularizer,
            kernel_constraint
        );
        crate::layer::weight_options::weight_setters!(
            $layer,
            rnn.bias,
            "bias",
            "as [`Defaults`](crate::Defaults) say, or at 0": bias_initializer,
            bias_regularizer,
            bias_constraint
        );
        crate::layer::weight_options::weight_setters!(
            $layer,
            rnn.recurrent,
            "recurrent kernel",
            "orthogonal": recurrent_initializer,
            recurrent_regularizer,
            recurrent_constraint
        );

        impl super::RecurrentLayer for $layer {
            fn rnn(&self) -> &super::Rnn {
                &self.rnn
            }
        }
    };
}
pub(super) use rnn_setters;
