//! Moves the gradient of a relu from before a max pooling to behind it, where there are fewer elements.
//!
//! `relu_grad(max_pool_grad(y, p, dy), y)` is `max_pool_grad(y, p, relu_grad(dy, p))`: a window's gradient goes to an element that
//! equals its maximum, so one is above zero exactly when the other is.

use std::collections::HashMap;
use std::sync::Arc;

use estimand_tensor::Binary;
use smallvec::smallvec;

use crate::graph::{Node, NodeId, Value};
use crate::op::Op;
use crate::program::{Kernel, Program, Step};

pub(crate) fn pool_after_relu(mut program: Program) -> Program {
    let uses = program.use_counts();
    let mut pooled: HashMap<Value, usize> = HashMap::new();
    let mut i = 0;
    while i < program.n_compute {
        let step = &program.steps[i];
        let Kernel::Node(id) = step.kernel else {
            i += 1;
            continue;
        };
        match program.body.node(id).op {
            Op::MaxPoolGrad(_) if uses.get(&step.outputs[0]) == Some(&1) => {
                pooled.insert(step.outputs[0], i);
            }
            Op::Binary(Binary::ReluGrad) => {
                let (gradient, activation) = (step.inputs[0], step.inputs[1]);
                if let Some(&at) = pooled.get(&gradient)
                    && program.steps[at].inputs[0] == activation
                {
                    swap(&mut program, at, i);
                    // Later pools have moved by one place.
                    pooled.values_mut().filter(|p| **p >= at).for_each(|p| *p += 1);
                }
            }
            _ => {}
        }
        i += 1;
    }
    program
}

/// Puts a relu gradient of the pooled values before the pooling gradient at `at`, which then makes what step `relu` made.
fn swap(program: &mut Program, at: usize, relu: usize) {
    let (maximum, dy) = (program.steps[at].inputs[1], program.steps[at].inputs[2]);
    let removed = program.steps.remove(relu);
    let body = Arc::make_mut(&mut program.body);
    let original = body.node(removed.kernel.node()).clone();
    let id = NodeId(body.nodes.len() as u32);
    body.nodes.push(Node { inputs: smallvec![dy, maximum], outputs: smallvec![body.spec(dy).clone()], ..original });
    let small = Value { node: id, output: 0 };
    let pool = &mut program.steps[at];
    pool.inputs[2] = small;
    pool.outputs = removed.outputs;
    let step = Step { kernel: Kernel::Node(id), inputs: smallvec![dy, maximum], outputs: smallvec![small] };
    program.steps.insert(at, step);
}
