//! Merges a max pooling with the convolution before it, and its gradient with the gradients of that convolution's filter and bias.
//!
//! What lies between them is the largest value of a network's first layers. If nobody else reads it, one kernel makes it image
//! by image and nobody writes it to memory. Only poolings whose gradient is asked for are merged (see `which`): with a
//! single image, which a prediction may have, the convolution alone can use more threads.

use std::collections::HashMap;

use smallvec::smallvec;

use crate::graph::Value;
use crate::op::{Op, Reduction};
use crate::program::{Kernel, Program, Step};

pub(crate) fn gradients_of_pooled(mut program: Program) -> Program {
    let mut i = 0;
    while i < program.n_compute {
        if let Some((filter, sum)) = readers(&program, i) {
            merge(&mut program, i, filter, sum);
        } else {
            i += 1;
        }
    }
    program
}

pub(crate) fn pool_what_is_convolved(mut program: Program) -> Program {
    let uses = program.use_counts();
    let mut convolved: HashMap<Value, usize> = HashMap::new();
    let mut i = 0;
    while i < program.n_compute {
        let step = &program.steps[i];
        let node = step.kernel.node();
        match (&step.kernel, &program.body.node(node).op) {
            (Kernel::Node(_) | Kernel::Product { .. }, Op::Conv2d(_)) if uses.get(&step.outputs[0]) == Some(&1) => {
                convolved.insert(step.outputs[0], i);
            }
            (Kernel::Which(pool), Op::MaxPool(_)) => {
                if let Some(&at) = convolved.get(&step.inputs[0]) {
                    let (pool, outputs) = (Some(*pool), step.outputs.clone());
                    let product = &mut program.steps[at];
                    let (bias, relu) = match product.kernel {
                        Kernel::Product { bias, relu, .. } => (bias, relu),
                        _ => (false, false),
                    };
                    product.kernel = Kernel::Product { node: product.kernel.node(), bias, relu, pool };
                    product.outputs = outputs;
                    program.steps.remove(i);
                    program.n_compute -= 1;
                    continue;
                }
            }
            _ => {}
        }
        i += 1;
    }
    program
}

fn op(program: &Program, step: usize) -> Option<&Op> {
    match program.steps[step].kernel {
        Kernel::Node(id) => Some(&program.body.node(id).op),
        _ => None,
    }
}

/// If step `pool` is the gradient of a max pooling that exactly a filter gradient and a sum over all pixels read: those.
fn readers(program: &Program, pool: usize) -> Option<(usize, usize)> {
    let Kernel::Which(id) = program.steps[pool].kernel else { return None };
    let Op::MaxPoolGrad(_) = program.body.node(id).op else { return None };
    let gradient = program.steps[pool].outputs[0];
    let reads = |v: &Value, step: &Step| step.inputs.contains(v);
    let mut found = (pool + 1..program.steps.len()).filter(|&j| reads(&gradient, &program.steps[j]));
    let (first, second) = (found.next()?, found.next()?);
    if found.next().is_some() || program.fetches.contains(&gradient) || second >= program.n_compute {
        return None;
    }
    // All is done where the later one stands, so nobody may want the earlier one's result before.
    let early = program.steps[first].outputs[0];
    if program.steps[first..second].iter().any(|step| reads(&early, step)) {
        return None;
    }
    let is_filter = |j: usize| {
        matches!(op(program, j), Some(Op::Conv2dBackpropFilter(..))) && program.steps[j].inputs[0] != gradient
    };
    let is_sum =
        |j: usize| matches!(op(program, j), Some(Op::Reduce { kind: Reduction::Sum, axes, .. }) if axes.0 == 0b0111);
    match (is_filter(first) && is_sum(second), is_sum(first) && is_filter(second)) {
        (true, _) => Some((first, second)),
        (_, true) => Some((second, first)),
        _ => None,
    }
}

/// Puts one step in the place of the later of the two and takes the others out.
fn merge(program: &mut Program, pool: usize, filter: usize, sum: usize) {
    let steps = &program.steps;
    let kernel = Kernel::PooledGradient { node: steps[filter].kernel.node(), pool: steps[pool].kernel.node() };
    let inputs = smallvec![steps[filter].inputs[0], steps[pool].inputs[0], steps[pool].inputs[1]];
    let outputs = smallvec![steps[filter].outputs[0], steps[sum].outputs[0]];
    program.steps[filter.max(sum)] = Step { kernel, inputs, outputs };
    program.steps.remove(filter.min(sum));
    program.steps.remove(pool);
    program.n_compute -= 2;
}
