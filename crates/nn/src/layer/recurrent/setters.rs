//! The options that all recurrent layers have.

/// The setters of a layer with a field `rnn: Rnn`.
macro_rules! rnn_setters {
    ($layer:ty) => {
        impl $layer {
            /// The function of candidates and results. By default the hyperbolic tangent.
            ///
            /// Softmax, gelu, swish and leaky relu are computed step by step, for a number of steps
            /// that is known when the graph is built.
            pub fn activation(mut self, activation: crate::Activation) -> Self {
                self.rnn.activation = activation;
                self
            }

            /// Whether there is a bias. By default there is.
            pub fn use_bias(mut self, use_bias: bool) -> Self {
                self.rnn.use_bias = use_bias;
                self
            }

            /// In training, leaves out this part of the inputs: the same ones at all steps. By
            /// default none.
            pub fn dropout(mut self, rate: f64) -> Self {
                self.rnn.dropout = rate;
                self
            }

            /// In training, leaves out this part of the state before it meets the recurrent kernel:
            /// the same units at all steps and for all gates. By default none.
            pub fn recurrent_dropout(mut self, rate: f64) -> Self {
                self.rnn.recurrent_dropout = rate;
                self
            }

            /// Whether the result is `[batch, time, units]`, the output of every step, and not only
            /// the last. By default it is the last.
            pub fn return_sequences(mut self, return_sequences: bool) -> Self {
                self.rnn.return_sequences = return_sequences;
                self
            }

            /// Whether to begin with the last step; the outputs then are in that order too. By
            /// default not.
            pub fn go_backwards(mut self, go_backwards: bool) -> Self {
                self.rnn.go_backwards = go_backwards;
                self
            }

            /// Whether the output of a step that does not count is 0. By default it is that of the
            /// step before.
            pub fn zero_output_for_mask(mut self, zero: bool) -> Self {
                self.rnn.zero_output_for_mask = zero;
                self
            }

            /// Which steps count, as booleans `[batch, time]`: the others leave the states as they
            /// are. By default all do.
            pub fn mask(mut self, mask: &estimand_graph::Tensor) -> Self {
                self.rnn.mask = Some(super::mask::Mask::Steps(mask.clone()));
                self
            }

            /// How many steps of each sequence count, `[batch]`, as
            /// [`sequence_input_layer`](crate::column::sequence_input_layer) has them. By default
            /// all do.
            pub fn lengths(mut self, lengths: &estimand_graph::Tensor) -> Self {
                self.rnn.mask = Some(super::mask::Mask::Lengths(lengths.clone()));
                self
            }

            /// What the first step begins with, `[batch, units]`: `h`, and `c` of an LSTM; inside
            /// [`Bidirectional`](crate::Bidirectional) those of the backward layer after them. By
            /// default 0.
            pub fn initial_state(mut self, states: &[estimand_graph::Tensor]) -> Self {
                self.rnn.initial_state = states.to_vec();
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
