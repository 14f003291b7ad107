//! Recurrent networks: a cell that is applied step after step to the rows of a sequence, and its
//! gradient.
//!
//! The product of the inputs with their kernel is done before, for all steps at once; a step adds
//! the product of the last state with the recurrent kernel and computes the gates. Rows of a batch
//! know nothing of each other, so a task takes some rows through all steps (`forward`, `backward`);
//! what happens to a row in a step is in `row`, the functions of the gates in `function`.
//!
//! Arrays are row-major: sequences `[batch, time, ...]`, states `[batch, units]`, the recurrent
//! kernel `[units, gates * units]`.

mod backward;
mod forward;
mod function;
mod row;
#[cfg(test)]
mod tests;

pub use backward::{Gradients, Upstream, backward, backward_scratch_len};
pub use forward::{Results, forward, forward_scratch_len};
pub use function::CellFunction;

use super::size::product;

/// What is computed from an input and the last state. Gates are in Keras's order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cell {
    /// `h = f(x + h R)`
    Simple,
    /// Long short-term memory: input gate, forget gate, candidate, output gate.
    Lstm,
    /// Gated recurrent unit: update gate, reset gate, candidate.
    Gru {
        /// The reset gate is applied to the product with the recurrent kernel, which then has a
        /// bias, and not to the state.
        reset_after: bool,
    },
}

/// A cell with its functions and the inputs it has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Recurrent {
    /// The cell.
    pub cell: Cell,
    /// The function of candidates and results.
    pub activation: CellFunction,
    /// The function of gates.
    pub recurrent_activation: CellFunction,
    /// Whether a mask says which steps count; the others leave the states as they are.
    pub masked: bool,
    /// Whether states are multiplied by something before they meet the recurrent kernel: dropout,
    /// the same for all steps.
    pub dropped: bool,
}

impl Recurrent {
    /// Numbers that the cell computes for each unit from a product with a kernel.
    pub fn n_gates(&self) -> usize {
        match self.cell {
            Cell::Simple => 1,
            Cell::Lstm => 4,
            Cell::Gru { .. } => 3,
        }
    }

    /// Arrays that a step hands to the next: `h`, and `c` of an LSTM.
    pub fn n_states(&self) -> usize {
        if self.cell == Cell::Lstm { 2 } else { 1 }
    }

    /// Whether the product with the recurrent kernel has a bias of its own.
    pub fn has_bias(&self) -> bool {
        self.cell == Cell::Gru { reset_after: true }
    }

    /// Numbers that the gradient needs for each unit and step.
    pub fn n_kept(&self) -> usize {
        match self.cell {
            // Its function's slope follows from the state.
            Cell::Simple => 0,
            // The four gates, the new `c`, and its function.
            Cell::Lstm => 6,
            // The two gates, the candidate, and the product that the reset gate was applied to.
            Cell::Gru { reset_after: true } => 4,
            Cell::Gru { reset_after: false } => 3,
        }
    }
}

/// How many rows, steps and units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Rows of the batch.
    pub batch: usize,
    /// Steps of a row.
    pub time: usize,
    /// Units of the state.
    pub units: usize,
}

impl Sizes {
    /// Rows that a task takes through all steps: about as many as a tile of a product has, in an
    /// even number of tasks.
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

/// What a cell reads beside the sequence. Arrays that the cell does not have are empty.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// `[units, gates * units]`
    pub kernel: &'a [f32],
    /// `[gates * units]`, if the cell has one.
    pub bias: &'a [f32],
    /// What the first step begins with: `h`, and `c` if the cell has one.
    pub states: [&'a [f32]; 2],
    /// `[batch, time]`: which steps count.
    pub mask: Option<&'a [bool]>,
    /// `[batch, units]`: what states are multiplied by before they meet the kernel.
    pub keep: Option<&'a [f32]>,
}

impl Inputs<'_> {
    fn counts(&self, row: usize, step: usize, sizes: Sizes) -> bool {
        self.mask.is_none_or(|mask| mask[row * sizes.time + step])
    }

    /// A state as the kernel sees it.
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

/// Takes the first `n` floats off a piece of scratch memory.
fn take<'a>(scratch: &mut &'a mut [f32], n: usize) -> &'a mut [f32] {
    let (taken, rest) = std::mem::take(scratch).split_at_mut(n);
    *scratch = rest;
    taken
}
