//! `Gru`: a recurrent layer in which a gate replaces part of the state at each step.

use estimand_graph::Tensor;
use estimand_graph::op::Cell;
use estimand_tensor::Result;

use super::super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use super::{NAMED_INPUTS, Rnn, rnn_setters};
use crate::config::{self, Described, Fields, Json};

/// Gated recurrent unit over `[batch, time, inputs]`: `h = z h + (1 - z) tanh(..)`. The update gate
/// z and the reset gate r (used in the candidate) depend on the input and the last `h`.
///
/// Variables: `gru_cell/kernel` `[inputs, 3 units]`, `gru_cell/recurrent_kernel` `[units, 3 units]`
/// and `gru_cell/bias`. The bias is `[2, 3 units]`, for the input's product and for the state's, or
/// `[3 units]` if `reset_after` is false. The order is z, r, candidate.
#[derive(Clone, Debug)]
#[must_use]
pub struct Gru {
    rnn: Rnn,
    config: Config,
}

impl Gru {
    /// A layer of `units` units. Its result is the last state.
    pub fn new(units: usize) -> Gru {
        Gru { rnn: Rnn::new(Cell::Gru { reset_after: true }, units), config: Config::default() }
    }

    /// The activation of the gates. By default the sigmoid.
    pub fn recurrent_activation(mut self, activation: crate::Activation) -> Gru {
        self.rnn.recurrent_activation = activation;
        self
    }

    /// Whether the reset gate is applied to the state's product instead of to the state. By default
    /// it is, as in cuDNN. Without it a step takes two products.
    pub fn reset_after(mut self, reset_after: bool) -> Gru {
        self.rnn.cell = Cell::Gru { reset_after };
        self
    }
}

config_setters!(Gru);
rnn_setters!(Gru);

impl Described for Gru {
    const CLASS: &'static str = "GRU";

    fn template() -> Gru {
        Gru::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Gru {
        Gru { rnn: self.rnn.fields(fields), config: self.config.fields(fields) }
    }
}

impl Layer for Gru {
    fn kind(&self) -> &'static str {
        "gru"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn supports_masking(&self) -> bool {
        self.rnn.return_sequences
    }

    fn to_json(&self) -> Result<Json> {
        config::write(MODULE, self)
    }

    fn build(&self, build: &mut Build<'_>) {
        self.rnn.build(build);
    }

    fn named_inputs(&self) -> &'static [&'static str] {
        &NAMED_INPUTS
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.rnn.run(call, self.rnn.way()).0
    }
}
