//! `Lstm`: a recurrent layer whose gates control what enters, stays in and leaves its state.

use estimand_graph::Tensor;
use estimand_graph::op::Cell;

use super::super::{Build, Config, Layer, LayerCall, config_setters};
use super::{Rnn, rnn_setters};

/// Long short-term memory over `[batch, time, inputs]`: `c = f c + i tanh(..)`, `h = o tanh(c)`.
/// The input gate i, forget gate f and output gate o depend on the input and the last `h`.
///
/// Variables: `lstm_cell/kernel` `[inputs, 4 units]`, `lstm_cell/recurrent_kernel`
/// `[units, 4 units]` and `lstm_cell/bias` `[4 units]`, in the order i, f, candidate, o.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Layer, Lstm, RecurrentLayer};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 7.into(), 4.into()]);
/// let lengths = g.placeholder("lengths", DType::I64, [Dim::BATCH]);
/// assert_eq!(Lstm::new(3).lengths(&lengths).apply(&x).shape().to_string(), "[batch, 3]");
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

impl Layer for Lstm {
    fn kind(&self) -> &'static str {
        "lstm"
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn build(&self, build: &mut Build<'_>) {
        self.rnn.build(build);
    }

    fn call(&self, call: &LayerCall<'_>) -> Tensor {
        self.rnn.run(call, self.rnn.way()).0
    }
}
