//! Removes steps that only hand a value on: whoever reads `StopGradient(x)` reads `x`.

use std::collections::HashMap;

use crate::graph::Value;
use crate::op::Op;
use crate::program::{Kernel, Program};

pub(crate) fn reroute(mut program: Program) -> Program {
    let mut from: HashMap<Value, Value> = HashMap::new();
    let body = program.body.clone();
    let mut n_removed = 0;
    program.steps.retain_mut(|step| {
        for input in &mut step.inputs {
            *input = *from.get(input).unwrap_or(input);
        }
        if let Kernel::Node(id) = &step.kernel
            && matches!(body.node(*id).op, Op::StopGradient)
        {
            from.insert(step.outputs[0], step.inputs[0]);
            n_removed += 1;
            return false;
        }
        true
    });
    program.n_compute -= n_removed;
    for fetch in &mut program.fetches {
        *fetch = *from.get(fetch).unwrap_or(fetch);
    }
    program
}
