//! Steps that run a recurrent cell over sequences, forwards or backwards.

use estimand_graph::op::Recurrent;
use estimand_graph::slots::{KERNEL, Slots};
use estimand_tensor::Result;
use estimand_tensor::cpu::recurrent::{self, Gradients, Inputs, Results, Sizes, Upstream};

use super::operands::{KernelCall, View, floats};

fn sizes(x: &[&[usize]]) -> Sizes {
    Sizes { batch: x[0][0], time: x[0][1], units: x[KERNEL][0] }
}

/// Floats of scratch memory of a recurrent op, and of its gradient.
pub(super) fn scratch(step: &Recurrent, x: &[&[usize]]) -> usize {
    recurrent::forward_scratch_len(step, sizes(x))
}

pub(super) fn gradient_scratch(step: &Recurrent, x: &[&[usize]]) -> usize {
    recurrent::backward_scratch_len(step, sizes(x))
}

/// The inputs that the op and its gradient share.
fn inputs<'a>(x: &[View<'a>], slots: &Slots) -> Inputs<'a> {
    let floats = |at: Option<usize>| at.map_or(&[][..], |at| x[at].as_slice());
    let mut states = slots.states.clone();
    Inputs {
        kernel: x[KERNEL].as_slice(),
        bias: floats(slots.bias),
        states: [floats(states.next()), floats(states.next())],
        mask: slots.mask.map(|at| x[at].as_slice()),
        keep: slots.keep.map(|at| x[at].as_slice()),
    }
}

impl KernelCall<'_, '_> {
    fn sequence_sizes(&self) -> Sizes {
        Sizes { batch: self.x[0].dims[0], time: self.x[0].dims[1], units: self.x[KERNEL].dims[0] }
    }

    /// The floats of every output and of the scratch memory.
    fn parts(&mut self) -> (impl Iterator<Item = &mut [f32]>, &mut [f32]) {
        (self.y.iter_mut().map(|y| y.as_mut_slice()), floats(self.scratch))
    }

    pub(super) fn recurrent(&mut self, step: &Recurrent) -> Result<()> {
        let (pool, sizes, x) = (self.pool, self.sequence_sizes(), self.x[0].as_slice());
        let inputs = inputs(self.x, &Slots::of(step));
        let (mut y, scratch) = self.parts();
        let mut next = |yes: bool| if yes { y.next().unwrap_or_default() } else { &mut [] };
        let (sequence, last) = (next(true), [next(true), next(step.n_states() == 2)]);
        let results = Results { sequence, last, kept: next(true) };
        recurrent::forward(pool, step, sizes, x, inputs, results, scratch);
        Ok(())
    }

    pub(super) fn recurrent_gradient(&mut self, step: &Recurrent) -> Result<()> {
        let (pool, sizes, slots) = (self.pool, self.sequence_sizes(), Slots::of(step));
        let inputs = inputs(self.x, &slots);
        let first = slots.upstream(step).start;
        let d_c = self.x.get(first + 2).map_or(&[][..], |d_c| d_c.as_slice());
        let upstream = Upstream {
            kept: self.x[0].as_slice(),
            sequence: self.x[slots.sequence()].as_slice(),
            d_sequence: self.x[first].as_slice(),
            d_last: [self.x[first + 1].as_slice(), d_c],
        };
        let (mut y, scratch) = self.parts();
        let mut next = |yes: bool| if yes { y.next().unwrap_or_default() } else { &mut [] };
        let (x, kernel, bias) = (next(true), next(true), next(step.has_bias()));
        let gradients = Gradients { x, kernel, bias, states: [next(true), next(step.n_states() == 2)] };
        recurrent::backward(pool, step, sizes, inputs, upstream, gradients, scratch);
        Ok(())
    }
}
