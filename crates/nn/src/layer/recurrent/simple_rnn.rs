//! `SimpleRnn`: a recurrent layer whose state is a function of the input and the last state.

use estimand_graph::op::Cell;

use super::super::Config;
use super::cell::CellOptions;
use super::reading::Reading;
use super::setters::layer_and_cell;

/// `h = activation(x . kernel + h . recurrent_kernel + bias)` for every step of
/// `[batch, time, inputs]`.
///
/// Variables: `simple_rnn_cell/kernel` `[inputs, units]`, `simple_rnn_cell/recurrent_kernel`
/// `[units, units]` and `simple_rnn_cell/bias` `[units]`.
#[derive(Clone, Debug)]
#[must_use]
pub struct SimpleRnn {
    cell: SimpleRnnCell,
    reading: Reading,
    config: Config,
}

impl SimpleRnn {
    /// A layer of `units` units. Its result is the last state.
    pub fn new(units: usize) -> SimpleRnn {
        SimpleRnn { cell: SimpleRnnCell::new(units), reading: Reading::default(), config: Config::default() }
    }
}

/// One step of a [`SimpleRnn`].
#[derive(Clone, Debug)]
#[must_use]
pub struct SimpleRnnCell {
    options: CellOptions,
    config: Config,
}

impl SimpleRnnCell {
    /// A cell of `units` units.
    pub fn new(units: usize) -> SimpleRnnCell {
        SimpleRnnCell { options: CellOptions::new(Cell::Simple, units), config: Config::default() }
    }
}

layer_and_cell!(SimpleRnn, "SimpleRNN", "simple_rnn", SimpleRnnCell, "SimpleRNNCell", "simple_rnn_cell");
