//! `SimpleRnn`: a recurrent layer whose state is a function of the input and the last state.

use estimand_graph::Tensor;
use estimand_graph::op::Cell;
use estimand_tensor::Result;

use super::super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use super::{NAMED_INPUTS, Rnn, rnn_setters};
use crate::config::{self, Described, Fields, Json};

/// `h = activation(x . kernel + h . recurrent_kernel + bias)` for every step of
/// `[batch, time, inputs]`.
///
/// Variables: `simple_rnn_cell/kernel` `[inputs, units]`, `simple_rnn_cell/recurrent_kernel`
/// `[units, units]` and `simple_rnn_cell/bias` `[units]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct SimpleRnn {
    rnn: Rnn,
    config: Config,
}

impl SimpleRnn {
    /// A layer of `units` units. Its result is the last state.
    pub fn new(units: usize) -> SimpleRnn {
        SimpleRnn { rnn: Rnn::new(Cell::Simple, units), config: Config::default() }
    }
}

config_setters!(SimpleRnn);
rnn_setters!(SimpleRnn);

impl Described for SimpleRnn {
    const CLASS: &'static str = "SimpleRNN";

    fn template() -> SimpleRnn {
        SimpleRnn::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> SimpleRnn {
        SimpleRnn { rnn: self.rnn.fields(fields), config: self.config.fields(fields) }
    }
}

impl Layer for SimpleRnn {
    fn kind(&self) -> &'static str {
        "simple_rnn"
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
