//! Recurrent cells: one op back through all steps.

use estimand_tensor::Result;

use super::Gradient;
use super::rule::{Found, Rule, not_differentiable};
use crate::op::{Op, Recurrent};
use crate::slots::Slots;
use crate::tensor::Tensor;

impl Rule<'_> {
    pub(super) fn recurrent(&self, step: &Recurrent) -> Result<Found> {
        let slots = Slots::of(step);
        if slots.keep.is_some_and(|keep| self.wanted[keep]) {
            return Err(not_differentiable("what the states of a recurrent network are multiplied by"));
        }
        let last = step.n_states();
        if self.upstream[last + 1].is_some() {
            return Err(not_differentiable("what a recurrent network keeps for its gradient"));
        }
        let mut inputs = self.x.clone();
        inputs[0] = self.y[last + 1].clone();
        inputs.push(self.y[0].clone());
        inputs.extend((0..=last).map(|output| self.dy(output)));
        let first = self.node(Op::RecurrentGrad(*step), &inputs.iter().collect::<Vec<&Tensor>>());
        let mut found = vec![Gradient::None; self.x.len()];
        for (output, at) in slots.differentiated().enumerate() {
            found[at] = Gradient::Dense(self.graph.output(&first, output as u16));
        }
        Ok(found)
    }
}
