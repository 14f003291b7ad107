//! `Lstm`: a recurrent layer whose gates control what enters, stays in and leaves its state.

use estimand_graph::Tensor;
use estimand_graph::op::Cell;
use estimand_tensor::Result;

use super::super::{Build, Config, Layer, LayerCall, MODULE, config_setters};
use super::{NAMED_INPUTS, Rnn, rnn_setters};
use crate::config::{self, Described, Fields, Json};

/// Long short-term memory over `[batch, time, inputs]`: `c = f c + i tanh(..)`, `h = o tanh(c)`.
/// The input gate i, forget gate f and output gate o depend on the input and the last `h`.
///
/// Variables: `lstm_cell/kernel` `[inputs, 4 units]`, `lstm_cell/recurrent_kernel`
/// `[units, 4 units]` and `lstm_cell/bias` `[4 units]`, in the order i, f, candidate, o.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::layer::LayerInputs;
/// use estimand_nn::{Layer, Lstm, RecurrentLayer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let lengths = g.placeholder("lengths", DType::I64, [Dim::BATCH]);
/// let last = Lstm::new(3).apply(&LayerInputs::of(&x).lengths(&lengths));
/// assert_eq!(last.shape().to_string(), "[batch, 3]");
/// let (steps, states) = Lstm::new(3).return_sequences(true).apply_states(&x);
/// assert_eq!(steps.shape().to_string(), "[batch, 7, 3]");
/// assert_eq!(states.len(), 2);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Lstm {
    rnn: Rnn,
    config: Config,
}

impl Lstm {
    /// A layer of `units` units. Its result is the last `h`.
    pub fn new(units: usize) -> Lstm {
        Lstm { rnn: Rnn::new(Cell::Lstm, units), config: Config::default() }
    }

    /// The activation of the gates. By default the sigmoid.
    pub fn recurrent_activation(mut self, activation: crate::Activation) -> Lstm {
        self.rnn.recurrent_activation = activation;
        self
    }

    /// Whether the bias of the forget gate starts at 1 instead of the bias initializer's value. By
    /// default it does.
    pub fn unit_forget_bias(mut self, unit_forget_bias: bool) -> Lstm {
        self.rnn.unit_forget_bias = unit_forget_bias;
        self
    }
}

config_setters!(Lstm);
rnn_setters!(Lstm);

impl Described for Lstm {
    const CLASS: &'static str = "LSTM";

    fn template() -> Lstm {
        Lstm::new(1)
    }

    fn fields(&self, fields: &mut Fields<'_>) -> Lstm {
        Lstm { rnn: self.rnn.fields(fields), config: self.config.fields(fields) }
    }
}

impl Layer for Lstm {
    fn kind(&self) -> &'static str {
        "lstm"
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
