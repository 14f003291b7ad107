//! `Lstm`: a recurrent layer whose gates control what enters, stays in and leaves its state.

use estimand_graph::op::Cell;

use super::super::Config;
use super::cell::CellOptions;
use super::reading::Reading;
use super::setters::{gate_setters, layer_and_cell};

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
    cell: LstmCell,
    reading: Reading,
    config: Config,
}

impl Lstm {
    /// A layer of `units` units. Its result is the last `h`.
    pub fn new(units: usize) -> Lstm {
        Lstm { cell: LstmCell::new(units), reading: Reading::default(), config: Config::default() }
    }

    /// Whether the bias of the forget gate starts at 1 instead of the bias initializer's value. By
    /// default it does.
    pub fn unit_forget_bias(mut self, unit_forget_bias: bool) -> Lstm {
        self.cell = self.cell.unit_forget_bias(unit_forget_bias);
        self
    }
}

/// One step of an [`Lstm`]. Its states are `h` and `c`.
#[derive(Clone, Debug)]
#[must_use]
pub struct LstmCell {
    options: CellOptions,
    config: Config,
}

impl LstmCell {
    /// A cell of `units` units.
    pub fn new(units: usize) -> LstmCell {
        LstmCell { options: CellOptions::new(Cell::Lstm, units), config: Config::default() }
    }

    /// Whether the bias of the forget gate starts at 1 instead of the bias initializer's value. By
    /// default it does.
    pub fn unit_forget_bias(mut self, unit_forget_bias: bool) -> LstmCell {
        self.options.unit_forget_bias = unit_forget_bias;
        self
    }
}

gate_setters!(Lstm, cell.options);
gate_setters!(LstmCell, options);
layer_and_cell!(Lstm, "LSTM", "lstm", LstmCell, "LSTMCell", "lstm_cell");
