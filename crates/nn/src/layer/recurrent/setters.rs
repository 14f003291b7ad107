//! The options that recurrent layers and cells have.

/// The setters of a layer or cell with these options of a cell:
/// `cell_setters!(Lstm, cell.options)`.
macro_rules! cell_setters {
    ($layer:ty, $($options:ident).+) => {
        impl $layer {
            /// The activation of candidates and results. By default the hyperbolic tangent.
            ///
            /// Softmax, gelu, swish and leaky relu are computed step by step. The number of steps
            /// must then be known when the graph is built.
            pub fn activation(mut self, activation: crate::Activation) -> Self {
                self.$($options).+.activation = activation;
                self
            }

            /// Whether there is a bias. By default there is.
            pub fn use_bias(mut self, use_bias: bool) -> Self {
                self.$($options).+.use_bias = use_bias;
                self
            }

            /// In training, drops this fraction of the inputs, the same ones at all steps. By
            /// default none.
            pub fn dropout(mut self, rate: f64) -> Self {
                self.$($options).+.dropout = rate;
                self
            }

            /// In training, drops this fraction of the state before the product with the recurrent
            /// kernel. The same units are dropped at all steps and for all gates. By default none.
            pub fn recurrent_dropout(mut self, rate: f64) -> Self {
                self.$($options).+.recurrent_dropout = rate;
                self
            }
        }

        crate::layer::weight_options::weight_setters!(
            $layer,
            $($options).+.kernel,
            "kernel",
            "as [`Defaults`](crate::Defaults) say, or uniform by Glorot's rule": kernel_initializer,
            kernel_regularizer,
            kernel_constraint
        );
        crate::layer::weight_options::weight_setters!(
            $layer,
            $($options).+.bias,
            "bias",
            "as [`Defaults`](crate::Defaults) say, or at 0": bias_initializer,
            bias_regularizer,
            bias_constraint
        );
        crate::layer::weight_options::weight_setters!(
            $layer,
            $($options).+.recurrent,
            "recurrent kernel",
            "orthogonal": recurrent_initializer,
            recurrent_regularizer,
            recurrent_constraint
        );
    };
}
pub(super) use cell_setters;

/// The setter of the activation of gates.
macro_rules! gate_setters {
    ($layer:ty, $($options:ident).+) => {
        impl $layer {
            /// The activation of the gates. By default the sigmoid.
            pub fn recurrent_activation(mut self, activation: crate::Activation) -> Self {
                self.$($options).+.recurrent_activation = activation;
                self
            }
        }
    };
}
pub(super) use gate_setters;

/// The setters of a layer with a field `reading: Reading`.
macro_rules! reading_setters {
    ($layer:ty) => {
        impl $layer {
            /// Whether the result holds the output of every step, `[batch, time, ...]`. By default
            /// it holds only the last output.
            pub fn return_sequences(mut self, return_sequences: bool) -> Self {
                self.reading.return_sequences = return_sequences;
                self
            }

            /// Whether the layer has the last states as further results in a Keras model. By
            /// default off. `apply` returns the result alone, `apply_states` always both.
            pub fn return_state(mut self, return_state: bool) -> Self {
                self.reading.return_state = return_state;
                self
            }

            /// Whether to read the last step first. The outputs are then in that order too. By
            /// default off.
            pub fn go_backwards(mut self, go_backwards: bool) -> Self {
                self.reading.go_backwards = go_backwards;
                self
            }

            /// Whether the output of a masked step is 0. By default it is the output of the step
            /// before.
            pub fn zero_output_for_mask(mut self, zero: bool) -> Self {
                self.reading.zero_output_for_mask = zero;
                self
            }
        }
    };
}
pub(super) use reading_setters;

/// A layer `Lstm { cell: LstmCell, reading: Reading, config: Config }`, and its cell
/// `LstmCell { options: CellOptions, config: Config }`: the parts that are the same for all.
macro_rules! layer_and_cell {
    ($layer:ident, $class:literal, $kind:literal, $cell:ident, $cell_class:literal, $cell_kind:literal) => {
        crate::layer::config_setters!($layer);
        crate::layer::config_setters!($cell);
        super::setters::cell_setters!($layer, cell.options);
        super::setters::cell_setters!($cell, options);
        super::setters::reading_setters!($layer);

        impl crate::config::Described for $layer {
            const CLASS: &'static str = $class;

            fn template() -> $layer {
                $layer::new(1)
            }

            fn fields(&self, fields: &mut crate::config::Fields<'_>) -> $layer {
                let options = self.cell.options.fields(fields, "units");
                fields.only("activity_regularizer", crate::config::Json::Null);
                $layer {
                    cell: $cell { options, config: self.cell.config.clone() },
                    reading: self.reading.fields(fields),
                    config: self.config.fields(fields),
                }
            }
        }

        impl crate::config::Described for $cell {
            const CLASS: &'static str = $cell_class;

            fn template() -> $cell {
                $cell::new(1)
            }

            fn fields(&self, fields: &mut crate::config::Fields<'_>) -> $cell {
                $cell { options: self.options.fields(fields, "units"), config: self.config.fields(fields) }
            }
        }

        impl crate::layer::Layer for $layer {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn config(&self) -> &crate::layer::Config {
                &self.config
            }

            fn supports_masking(&self) -> bool {
                self.reading.return_sequences
            }

            fn to_json(&self) -> estimand_tensor::Result<crate::config::Json> {
                crate::config::write(crate::layer::MODULE, self)
            }

            fn build(&self, build: &mut crate::layer::Build<'_>) {
                if self.cell.options.check(build) && build.takes(3..=3, "[batch, time, inputs]") {
                    let x = build.input().clone();
                    build.child(super::reading::CELL, $cell_kind, &self.cell, &x);
                }
            }

            fn named_inputs(&self) -> &'static [&'static str] {
                &super::reading::NAMED_INPUTS
            }

            fn call(&self, call: &crate::layer::LayerCall<'_>) -> estimand_graph::Tensor {
                super::RecurrentLayer::read(self, call, self.reading.way()).0
            }

            fn call_all(&self, call: &crate::layer::LayerCall<'_>) -> Vec<estimand_graph::Tensor> {
                self.reading.results(super::RecurrentLayer::read(self, call, self.reading.way()))
            }
        }

        impl super::RecurrentLayer for $layer {
            fn reading(&self) -> &super::Reading {
                &self.reading
            }

            fn n_states(&self) -> usize {
                self.cell.options.state_sizes().len()
            }

            fn read(
                &self,
                call: &crate::layer::LayerCall<'_>,
                way: super::reading::Way,
            ) -> (estimand_graph::Tensor, Vec<estimand_graph::Tensor>) {
                self.reading.run(call, &self.cell, way)
            }
        }

        impl crate::layer::Layer for $cell {
            fn kind(&self) -> &'static str {
                $cell_kind
            }

            fn config(&self) -> &crate::layer::Config {
                &self.config
            }

            fn to_json(&self) -> estimand_tensor::Result<crate::config::Json> {
                crate::config::write(crate::layer::MODULE, self)
            }

            fn build(&self, build: &mut crate::layer::Build<'_>) {
                if self.options.check(build) && build.takes(2..=3, "[batch, inputs]") {
                    self.options.build(build);
                }
            }

            fn named_inputs(&self) -> &'static [&'static str] {
                &[crate::layer::inputs::INITIAL_STATE]
            }

            fn call(&self, call: &crate::layer::LayerCall<'_>) -> estimand_graph::Tensor {
                super::RnnCell::call_cell(self, call)
            }
        }

        impl super::RnnCell for $cell {
            fn state_sizes(&self) -> Vec<usize> {
                self.options.state_sizes()
            }

            fn step(
                &self,
                call: &crate::layer::LayerCall<'_>,
                states: &[estimand_graph::Tensor],
            ) -> (estimand_graph::Tensor, Vec<estimand_graph::Tensor>) {
                self.options.step(call, states)
            }

            fn sequence(&self, call: &crate::layer::LayerCall<'_>) -> super::CellOutputs {
                self.options.sequence(call)
            }
        }
    };
}
pub(super) use layer_and_cell;
