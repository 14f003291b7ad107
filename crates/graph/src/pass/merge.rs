//! Common sub-expressions: equal ops on equal inputs are computed once.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::graph::Value;
use crate::op::Op;
use crate::program::{Kernel, Program};

/// What is computed: an op on its inputs.
type Computation<'a> = (&'a Op, SmallVec<[Value; 4]>);

pub(crate) fn merge(mut program: Program) -> Program {
    let body = program.body.clone();
    let mut first: HashMap<Computation<'_>, SmallVec<[Value; 1]>> = HashMap::new();
    let mut same: HashMap<Value, Value> = HashMap::new();
    // Constants and variables are no steps, but the same one may have several nodes.
    let mut sources: HashMap<&Op, Value> = HashMap::new();
    for (i, node) in body.nodes().iter().enumerate() {
        if matches!(node.op, Op::Constant(_) | Op::Variable(_)) {
            let value = Value { node: crate::graph::NodeId(i as u32), output: 0 };
            let known = *sources.entry(&node.op).or_insert(value);
            same.insert(value, known);
        }
    }
    let mut n_removed = 0;
    program.steps.retain_mut(|step| {
        for input in &mut step.inputs {
            *input = *same.get(input).unwrap_or(input);
        }
        let Kernel::Node(id) = &step.kernel else { return true };
        let op = &body.node(*id).op;
        if op.has_effect() {
            return true;
        }
        let Some(known) = first.get(&(op, step.inputs.clone())) else {
            first.insert((op, step.inputs.clone()), step.outputs.clone());
            return true;
        };
        for (output, known) in step.outputs.iter().zip(known) {
            same.insert(*output, *known);
        }
        n_removed += 1;
        false
    });
    program.n_compute -= n_removed;
    for fetch in &mut program.fetches {
        *fetch = *same.get(fetch).unwrap_or(fetch);
    }
    program
}
