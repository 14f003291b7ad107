//! Steps that only hand a value on are read past: `StopGradient(x)` is `x`, and an element-wise step that reads one number
//! spread over a shape reads the number.

use std::collections::HashMap;

use crate::graph::Value;
use crate::op::Op;
use crate::pass::is_elementwise;
use crate::program::{Kernel, Program};

pub(crate) fn reroute(mut program: Program) -> Program {
    let body = program.body.clone();
    let mut passed_on: HashMap<Value, Value> = HashMap::new();
    // Values that are one number everywhere, and a value of one element that holds it.
    let mut uniform: HashMap<Value, Value> = HashMap::new();
    let is_single = |v: Value| body.spec(v).shape.dims().iter().all(|d| d.known() == Some(1));
    for step in &mut program.steps {
        for input in &mut step.inputs {
            *input = *passed_on.get(input).unwrap_or(input);
        }
        if is_elementwise(&body, step) {
            let rank = body.spec(step.outputs[0]).shape.rank();
            for input in &mut step.inputs {
                if let Some(&number) = uniform.get(input)
                    && body.spec(number).shape.rank() <= rank
                {
                    *input = number;
                }
            }
        }
        let Kernel::Node(id) = &step.kernel else { continue };
        match body.node(*id).op {
            Op::StopGradient => {
                passed_on.insert(step.outputs[0], step.inputs[0]);
            }
            Op::BroadcastTo(_) | Op::Reshape(_) => {
                let input = step.inputs[0];
                if let Some(&number) = uniform.get(&input).or_else(|| is_single(input).then_some(&step.inputs[0])) {
                    uniform.insert(step.outputs[0], number);
                }
            }
            _ => {}
        }
    }
    for fetch in &mut program.fetches {
        *fetch = *passed_on.get(fetch).unwrap_or(fetch);
    }
    drop_unread(&mut program);
    program
}

/// Removes steps that nobody reads any more and that change nothing.
fn drop_unread(program: &mut Program) {
    let body = program.body.clone();
    let mut uses = program.use_counts();
    let mut keep = vec![true; program.steps.len()];
    for (i, step) in program.steps.iter().enumerate().take(program.n_compute).rev() {
        let read = step.outputs.iter().any(|v| uses.get(v).is_some_and(|n| *n > 0));
        if !read && !body.node(step.kernel.node()).op.has_effect() {
            keep[i] = false;
            for input in &step.inputs {
                *uses.entry(*input).or_default() -= 1;
            }
        }
    }
    let mut kept = keep.iter();
    program.steps.retain(|_| *kept.next().unwrap_or(&true));
    program.n_compute -= keep.iter().filter(|k| !**k).count();
}
