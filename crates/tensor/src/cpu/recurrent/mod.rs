//! Recurrent networks: a cell that is applied step by step to the rows of a sequence, and its
//! gradient.
//!
//! The product of the inputs with their kernel is computed before, for all steps at once. A step
//! adds the product of the last state with the recurrent kernel and computes the gates. Rows of a
//! batch are independent, so a task computes some rows for all steps (`forward`, `backward`), rows
//! of similar length together (`order`). `row` computes one row in one step, `function` holds the
//! functions of the gates.
//!
//! Arrays are row-major: sequences `[batch, time, ...]`, states `[batch, units]`, the recurrent
//! kernel `[units, gates * units]`.

mod backward;
mod forward;
mod function;
mod order;
mod row;
#[cfg(test)]
mod tests;

pub use backward::{Gradients, Upstream, backward, backward_scratch_len};
pub use forward::{Results, forward, forward_scratch_len};
pub use function::CellFunction;
pub use order::ends;

use super::size::product;

/// A recurrent cell, which computes from an input and the last state. Gates are in Keras's order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cell {
    /// `h = f(x + h R)`
    Simple,
    /// Long short-term memory: input gate, forget gate, candidate, output gate.
    Lstm,
    /// Gated recurrent unit: update gate, reset gate, candidate.
    Gru {
        /// Whether the reset gate is applied to the product with the recurrent kernel, which then
        /// has a bias, and not to the state.
        reset_after: bool,
    },
}

/// A cell with its functions and optional inputs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Recurrent {
    /// The cell.
    pub cell: Cell,
    /// The function of candidates and results.
    pub activation: CellFunction,
    /// The function of gates.
    pub recurrent_activation: CellFunction,
    /// Whether there is a mask. Masked steps leave the states unchanged.
    pub masked: bool,
    /// Whether states are multiplied by dropout factors before the product with the recurrent
    /// kernel. The factors are the same for all steps.
    pub dropped: bool,
}

impl Recurrent {
    /// The number of values that the cell computes for each unit from a product with a kernel.
    pub fn n_gates(&self) -> usize {
        match self.cell {
            Cell::Simple => 1,
            Cell::Lstm => 4,
            Cell::Gru { .. } => 3,
        }
    }

    /// The number of arrays that a step passes to the next: `h`, and `c` of an LSTM.
    pub fn n_states(&self) -> usize {
        if self.cell == Cell::Lstm { 2 } else { 1 }
    }

    /// Whether the product with the recurrent kernel has its own bias.
    pub fn has_bias(&self) -> bool {
        self.cell == Cell::Gru { reset_after: true }
    }

    /// The number of values that the gradient needs for each unit and step.
    pub fn n_kept(&self) -> usize {
        match self.cell {
            // The slope of its function follows from the state.
            Cell::Simple => 0,
            // The four gates, the new `c`, and the function of `c`.
            Cell::Lstm => 6,
            // The two gates, the candidate, and the product that the reset gate was applied to.
            Cell::Gru { reset_after: true } => 4,
            Cell::Gru { reset_after: false } => 3,
        }
    }
}

/// The numbers of rows, steps and units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// The number of rows of the batch.
    pub batch: usize,
    /// The number of steps of a row.
    pub time: usize,
    /// The number of units of the state.
    pub units: usize,
}

impl Sizes {
    /// The number of rows that a task computes for all steps: about as many as a tile of a product
    /// has, in an even number of tasks.
    fn rows_per_task(&self) -> usize {
        const ROWS: usize = 12;
        match self.batch.div_ceil(ROWS) {
            0 | 1 => self.batch.max(1),
            n_tasks => self.batch.div_ceil(n_tasks.next_multiple_of(2)),
        }
    }

    fn n_tasks(&self) -> usize {
        self.batch.div_ceil(self.rows_per_task())
    }
}

/// The inputs of a cell besides the sequence. Arrays that the cell does not have are empty.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// `[units, gates * units]`
    pub kernel: &'a [f32],
    /// `[gates * units]`, if the cell has one.
    pub bias: &'a [f32],
    /// The states before the first step: `h`, and `c` if the cell has one.
    pub states: [&'a [f32]; 2],
    /// `[batch, time]`: true for steps that count.
    pub mask: Option<&'a [bool]>,
    /// `[batch, units]`: the factors of states before the product with the kernel.
    pub keep: Option<&'a [f32]>,
}

impl Inputs<'_> {
    /// Whether a step of a row counts, by its place among all steps of all rows.
    fn counts(&self, place: usize) -> bool {
        self.mask.is_none_or(|mask| mask[place])
    }

    /// The state after dropout, as the kernel sees it.
    fn dropped(&self, row: usize, state: &[f32], to: &mut [f32]) {
        let units = state.len();
        match self.keep {
            None => to.copy_from_slice(state),
            Some(keep) => {
                for ((to, state), keep) in to.iter_mut().zip(state).zip(&keep[row * units..]) {
                    *to = state * keep;
                }
            }
        }
    }

    fn check(&self, step: &Recurrent, sizes: Sizes) {
        let Sizes { batch, time, units } = sizes;
        let width = product(&[step.n_gates(), units]);
        let expected = |yes: bool, n: usize| if yes { n } else { 0 };
        assert_eq!(self.kernel.len(), product(&[units, width]), "recurrent kernel");
        assert_eq!(self.bias.len(), expected(step.has_bias(), width), "recurrent bias");
        let states = product(&[batch, units]);
        assert_eq!(self.states[0].len(), states, "first state");
        assert_eq!(self.states[1].len(), expected(step.n_states() == 2, states), "second state");
        assert_eq!(self.mask.map_or(0, |mask| mask.len()), expected(step.masked, product(&[batch, time])), "mask");
        assert_eq!(self.keep.map_or(0, |keep| keep.len()), expected(step.dropped, states), "dropout");
    }
}

/// Splits the first `n` floats off a piece of scratch memory.
fn take<'a>(scratch: &mut &'a mut [f32], n: usize) -> &'a mut [f32] {
    let (taken, rest) = std::mem::take(scratch).split_at_mut(n);
    *scratch = rest;
    taken
}
