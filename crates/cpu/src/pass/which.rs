//! Makes a max pooling return the index of the largest element, if its gradient is computed.
//!
//! The gradient then needs neither the pooling's input nor its result. The input is the largest
//! value of a network's first layers and no longer in the cache.

use std::collections::HashMap;
use std::sync::Arc;

use estimand_graph::op::{MaxPool, MaxPoolGrad, Op};
use estimand_graph::{Kernel, Node, Program, Value};
use smallvec::smallvec;

use crate::kernel::Fused;

pub(crate) fn remember_the_largest(mut program: Program) -> Program {
    // Poolings by their input and result. A gradient names both.
    let mut poolings: HashMap<(Value, Value), usize> = HashMap::new();
    for i in 0..program.n_compute {
        let step = &program.steps[i];
        let Kernel::Node(id) = step.kernel else { continue };
        match &program.body.node(id).op {
            Op::MaxPool(_) => {
                poolings.insert((step.inputs[0], step.outputs[0]), i);
            }
            Op::MaxPoolGrad(MaxPoolGrad { window }) => {
                let Some(&at) = poolings.get(&(step.inputs[0], step.inputs[1])) else { continue };
                if !matches!(&program.body.node(program.steps[at].kernel.node()).op, Op::MaxPool(MaxPool { window: w }) if w == window)
                {
                    continue;
                }
                let dy = step.inputs[2];
                let which = which(&mut program, at);
                let gradient = &mut program.steps[i];
                gradient.kernel = Fused::Which(id).into();
                gradient.inputs = smallvec![which, dy];
            }
            _ => {}
        }
    }
    program
}

/// Returns the second output of the pooling at step `at`. Adds it if it does not exist.
fn which(program: &mut Program, at: usize) -> Value {
    if let Some(&which) = program.steps[at].outputs.get(1) {
        return which;
    }
    let body = Arc::make_mut(&mut program.body);
    let original = body.node(program.steps[at].kernel.node()).clone();
    // Only the second output is new: the result keeps its value, so its readers do not change.
    let outputs = smallvec![original.outputs[0].clone(), original.outputs[0].clone()];
    let id = body.push(Node { outputs, ..original });
    let which = Value { node: id, output: 1 };
    let pooling = &mut program.steps[at];
    pooling.kernel = Fused::Which(id).into();
    pooling.outputs.push(which);
    which
}
