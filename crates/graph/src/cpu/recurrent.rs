//! Steps that take a recurrent cell through sequences, or back.

use estimand_tensor::Result;
use estimand_tensor::cpu::recurrent::{self, Gradients, Inputs, Results, Sizes, Upstream};

use super::call::{Call, View};
use crate::op::{Op, Recurrent};
use crate::slots::{KERNEL, Slots};

fn sizes(x: &[&[usize]]) -> Sizes {
    Sizes { batch: x[0][0], time: x[0][1], units: x[KERNEL][0] }
}

/// Whether the sizes of a recurrent op's inputs agree, or of its gradient's.
pub(super) fn fits(step: &Recurrent, x: &[&[usize]]) -> bool {
    let Sizes { batch, time, units } = sizes(x);
    let slots = Slots::of(step);
    let is_gradient = x.len() > slots.n;
    let width = if is_gradient { step.n_kept() } else { step.n_gates() } * units;
    let sequences = if is_gradient { slots.sequence()..slots.upstream(step).start + 1 } else { 0..0 };
    let last = if is_gradient { slots.upstream(step).start + 1..x.len() } else { 0..0 };
    x[0] == [batch, time, width]
        && slots.states.chain(slots.keep).chain(last).all(|at| x[at] == [batch, units])
        && slots.mask.is_none_or(|mask| x[mask] == [batch, time])
        && sequences.into_iter().all(|at| x[at] == [batch, time, units])
}

/// Bytes of scratch memory of a recurrent op.
pub(super) fn scratch_bytes(op: &Op, x: &[&[usize]]) -> usize {
    let floats = match op {
        Op::Recurrent(step) => recurrent::forward_scratch_len(step, sizes(x)),
        Op::RecurrentGrad(step) => recurrent::backward_scratch_len(step, sizes(x)),
        _ => 0,
    };
    floats * size_of::<f32>()
}

/// The inputs that the op and its gradient have in common.
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

impl Call<'_> {
    fn sequence_sizes(&self) -> Sizes {
        Sizes { batch: self.x[0].dims[0], time: self.x[0].dims[1], units: self.x[KERNEL].dims[0] }
    }

    /// The floats of every output and of the scratch memory.
    fn parts(&mut self) -> (impl Iterator<Item = &mut [f32]>, &mut [f32]) {
        // SAFETY: scratch buffers are aligned to 64 bytes; any bits are a float.
        let scratch =
            unsafe { std::slice::from_raw_parts_mut(self.scratch.as_mut_ptr().cast::<f32>(), self.scratch.len() / 4) };
        (self.y.iter_mut().map(|y| y.as_mut_slice()), scratch)
    }

    pub(super) fn recurrent(&mut self, step: &Recurrent) -> Result<()> {
        let (pool, sizes, x) = (self.pool, self.sequence_sizes(), self.x[0].as_slice());
        let inputs = inputs(&self.x, &Slots::of(step));
        let (mut y, scratch) = self.parts();
        let mut next = |yes: bool| if yes { y.next().unwrap_or_default() } else { &mut [] };
        let (sequence, last) = (next(true), [next(true), next(step.n_states() == 2)]);
        let results = Results { sequence, last, kept: next(true) };
        recurrent::forward(pool, step, sizes, x, inputs, results, scratch);
        Ok(())
    }

    pub(super) fn recurrent_gradient(&mut self, step: &Recurrent) -> Result<()> {
        let (pool, sizes, slots) = (self.pool, self.sequence_sizes(), Slots::of(step));
        let inputs = inputs(&self.x, &slots);
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
