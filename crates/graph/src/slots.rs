//! The positions of a recurrent op's inputs and outputs, which depend on its cell and options.

use std::ops::Range;

use crate::op::Recurrent;

/// The positions of the inputs. The sequence is the first input, the recurrent kernel the second.
///
/// The gradient op has the same inputs, with the kept values in place of the sequence. They are
/// followed by the states of all steps, their gradient and the gradients of the last states.
#[derive(Clone, Debug)]
pub struct Slots {
    pub bias: Option<usize>,
    /// The initial states.
    pub states: Range<usize>,
    pub mask: Option<usize>,
    pub keep: Option<usize>,
    /// The number of inputs.
    pub n: usize,
}

/// The position of the recurrent kernel.
pub const KERNEL: usize = 1;

impl Slots {
    pub fn of(step: &Recurrent) -> Slots {
        let bias = step.has_bias().then_some(KERNEL + 1);
        let first = bias.unwrap_or(KERNEL) + 1;
        let states = first..first + step.n_states();
        let mask = step.masked.then_some(states.end);
        let keep = step.dropped.then_some(mask.map_or(states.end, |mask| mask + 1));
        let n = keep.or(mask).map_or(states.end, |last| last + 1);
        Slots { bias, states, mask, keep, n }
    }

    /// In the gradient op: the position of the states of all steps.
    pub fn sequence(&self) -> usize {
        self.n
    }

    /// In the gradient op: the positions of the gradients of all steps' states and of the last
    /// states.
    pub fn upstream(&self, step: &Recurrent) -> Range<usize> {
        self.n + 1..self.n + 2 + step.n_states()
    }

    /// The inputs that have a gradient, in the order of the gradient op's outputs.
    pub fn differentiated(&self) -> impl Iterator<Item = usize> {
        [0, KERNEL].into_iter().chain(self.bias).chain(self.states.clone())
    }
}
