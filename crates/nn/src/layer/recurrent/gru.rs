//! `Gru`: a recurrent layer in which a gate replaces part of the state at each step.

use estimand_graph::op::Cell;

use super::super::Config;
use super::cell::CellOptions;
use super::reading::Reading;
use super::setters::{gate_setters, layer_and_cell};

/// Gated recurrent unit over `[batch, time, inputs]`: `h = z h + (1 - z) tanh(..)`. The update gate
/// z and the reset gate r (used in the candidate) depend on the input and the last `h`.
///
/// Variables: `gru_cell/kernel` `[inputs, 3 units]`, `gru_cell/recurrent_kernel` `[units, 3 units]`
/// and `gru_cell/bias`. The bias is `[2, 3 units]`, for the input's product and for the state's, or
/// `[3 units]` if `reset_after` is false. The order is z, r, candidate.
#[derive(Clone, Debug)]
#[must_use]
pub struct Gru {
    cell: GruCell,
    reading: Reading,
    config: Config,
}

impl Gru {
    /// A layer of `units` units. Its result is the last state.
    pub fn new(units: usize) -> Gru {
        Gru { cell: GruCell::new(units), reading: Reading::default(), config: Config::default() }
    }

    /// Whether the reset gate is applied to the state's product instead of to the state. By default
    /// it is, as in cuDNN. Without it a step takes two products.
    pub fn reset_after(mut self, reset_after: bool) -> Gru {
        self.cell = self.cell.reset_after(reset_after);
        self
    }
}

/// One step of a [`Gru`].
#[derive(Clone, Debug)]
#[must_use]
pub struct GruCell {
    options: CellOptions,
    config: Config,
}

impl GruCell {
    /// A cell of `units` units.
    pub fn new(units: usize) -> GruCell {
        GruCell { options: CellOptions::new(Cell::Gru { reset_after: true }, units), config: Config::default() }
    }

    /// Whether the reset gate is applied to the state's product instead of to the state. By default
    /// it is, as in cuDNN. Without it a step takes two products.
    pub fn reset_after(mut self, reset_after: bool) -> GruCell {
        self.options.cell = Cell::Gru { reset_after };
        self
    }
}

gate_setters!(Gru, cell.options);
gate_setters!(GruCell, options);
layer_and_cell!(Gru, "GRU", "gru", GruCell, "GRUCell", "gru_cell");
