//! Moves the gradient of a relu before the gradient of a max pooling, where there are fewer
//! elements.
//!
//! `relu_grad(max_pool_grad(y, p, dy), y)` is `max_pool_grad(y, p, relu_grad(dy, p))`: a window's
//! gradient goes to an element that equals its maximum, so the element is above zero exactly when
//! the maximum is.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use estimand_graph::looks::look;
use estimand_graph::{Kernel, Node, Op, Program, Step, Value};
use estimand_tensor::Binary;
use smallvec::smallvec;

pub(crate) fn pool_after_relu(mut program: Program) -> Program {
    let uses = program.use_counts();
    let mut pooled: HashMap<Value, usize> = HashMap::new();
    // Steps to insert before another step, by the index of that step; and the steps that are
    // removed.
    let mut before: HashMap<usize, Step> = HashMap::new();
    let mut removed: HashSet<usize> = HashSet::new();
    for i in 0..program.n_compute {
        look(1);
        let step = &program.steps[i];
        let Kernel::Node(id) = step.kernel else { continue };
        match program.body.node(id).op {
            Op::MaxPoolGrad(_) if uses.get(&step.outputs[0]) == Some(&1) => {
                pooled.insert(step.outputs[0], i);
            }
            Op::Binary(Binary::ReluGrad) => {
                let (gradient, activation) = (step.inputs[0], step.inputs[1]);
                if let Some(&at) = pooled.get(&gradient)
                    && program.steps[at].inputs[0] == activation
                {
                    before.insert(at, swap(&mut program, at, i));
                    removed.insert(i);
                }
            }
            _ => {}
        }
    }
    let steps = std::mem::take(&mut program.steps);
    for (i, step) in steps.into_iter().enumerate().filter(|(i, _)| !removed.contains(i)) {
        program.steps.extend(before.remove(&i));
        program.steps.push(step);
    }
    program
}

/// Makes the pooling gradient at `at` compute the result of the relu gradient at `relu`. Returns
/// the relu gradient of the pooled values, which must run before it.
fn swap(program: &mut Program, at: usize, relu: usize) -> Step {
    let (maximum, dy) = (program.steps[at].inputs[1], program.steps[at].inputs[2]);
    let body = Arc::make_mut(&mut program.body);
    let original = body.node(program.steps[relu].kernel.node()).clone();
    let outputs = smallvec![body.spec(dy).clone()];
    let id = body.push(Node { inputs: smallvec![dy, maximum], outputs, ..original });
    let small = Value { node: id, output: 0 };
    let outputs = program.steps[relu].outputs.clone();
    let pool = &mut program.steps[at];
    pool.inputs[2] = small;
    pool.outputs = outputs;
    Step { kernel: Kernel::Node(id), inputs: smallvec![dy, maximum], outputs: smallvec![small] }
}
