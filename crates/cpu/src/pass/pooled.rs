//! Merges a max pooling with the convolution before it, and its gradient with the gradients of that
//! convolution's filter and bias.
//!
//! The value between them is the largest one in a network's first layers. If nothing else reads it,
//! one kernel computes it image by image without writing it to memory. Only poolings whose gradient
//! is computed are merged (see `which`): for a single image, as in a prediction, the convolution
//! alone can use more threads.

use std::collections::{HashMap, HashSet};

use estimand_graph::looks::look;
use estimand_graph::op::{Op, Reduce, Reduction};
use estimand_graph::{Kernel, Program, Step, Value};
use smallvec::smallvec;

use crate::kernel::{After, Fused, fused};

pub(crate) fn gradients_of_pooled(mut program: Program) -> Program {
    let mut readers: HashMap<Value, Vec<usize>> = HashMap::new();
    for (i, step) in program.steps.iter().enumerate() {
        for input in &step.inputs {
            let list = readers.entry(*input).or_default();
            if list.last() != Some(&i) {
                list.push(i);
            }
        }
    }
    let fetched: HashSet<Value> = program.fetches.iter().copied().collect();
    let mut is_removed = vec![false; program.steps.len()];
    for i in 0..program.n_compute {
        look(1);
        if let Some((filter, sum)) = pair(&program, i, &readers, &fetched) {
            merge(&mut program, i, filter, sum);
            is_removed[filter.min(sum)] = true;
            is_removed[i] = true;
        }
    }
    remove(&mut program, &is_removed);
    program
}

/// Removes computing steps.
pub(super) fn remove(program: &mut Program, is_removed: &[bool]) {
    let mut removed = is_removed.iter();
    program.steps.retain(|_| !*removed.next().unwrap_or(&false));
    program.n_compute -= is_removed.iter().filter(|removed| **removed).count();
}

pub(crate) fn pool_what_is_convolved(mut program: Program) -> Program {
    let uses = program.use_counts();
    let mut convolved: HashMap<Value, usize> = HashMap::new();
    let mut is_removed = vec![false; program.steps.len()];
    for (i, is_removed) in is_removed.iter_mut().enumerate().take(program.n_compute) {
        look(1);
        let step = &program.steps[i];
        let node = step.kernel.node();
        match (fused(&step.kernel), &program.body.node(node).op) {
            (None | Some(Fused::Product { .. }), Op::Conv2d(_)) if uses.get(&step.outputs[0]) == Some(&1) => {
                convolved.insert(step.outputs[0], i);
            }
            (Some(Fused::Which(pool)), Op::MaxPool(_)) => {
                if let Some(&at) = convolved.get(&step.inputs[0]) {
                    let (pool, outputs) = (Some(*pool), step.outputs.clone());
                    let product = &mut program.steps[at];
                    let after = After::of(&product.kernel).unwrap_or_default();
                    product.kernel = Fused::Product { node: product.kernel.node(), after, pool }.into();
                    product.outputs = outputs;
                    *is_removed = true;
                }
            }
            _ => {}
        }
    }
    remove(&mut program, &is_removed);
    program
}

fn op(program: &Program, step: usize) -> Option<&Op> {
    match program.steps[step].kernel {
        Kernel::Node(id) => Some(&program.body.node(id).op),
        _ => None,
    }
}

/// If step `pool` is the gradient of a max pooling, and its only readers are a filter gradient and
/// a sum over all pixels, returns these two.
///
/// `readers` lists the steps that read each value, in order.
fn pair(
    program: &Program,
    pool: usize,
    readers: &HashMap<Value, Vec<usize>>,
    fetched: &HashSet<Value>,
) -> Option<(usize, usize)> {
    let Some(Fused::Which(id)) = fused(&program.steps[pool].kernel) else { return None };
    let Op::MaxPoolGrad(_) = program.body.node(*id).op else { return None };
    let gradient = program.steps[pool].outputs[0];
    let [first, second] = readers.get(&gradient)?[..] else { return None };
    if fetched.contains(&gradient) || second >= program.n_compute {
        return None;
    }
    // Both run at the position of the later one, so nothing may read the result of the earlier one
    // before.
    let early = program.steps[first].outputs.first()?;
    if readers.get(early).is_some_and(|readers| readers.iter().any(|&reader| reader < second)) {
        return None;
    }
    let is_filter = |j: usize| {
        matches!(op(program, j), Some(Op::Conv2dBackpropFilter(_))) && program.steps[j].inputs[0] != gradient
    };
    let is_sum = |j: usize| matches!(op(program, j), Some(Op::Reduce(Reduce { kind: Reduction::Sum, axes, .. })) if axes.0 == 0b0111);
    match (is_filter(first) && is_sum(second), is_sum(first) && is_filter(second)) {
        (true, _) => Some((first, second)),
        (_, true) => Some((second, first)),
        _ => None,
    }
}

/// Replaces the later of the two with the merged step. The caller removes the others.
fn merge(program: &mut Program, pool: usize, filter: usize, sum: usize) {
    let steps = &program.steps;
    let (node, pool_node) = (steps[filter].kernel.node(), steps[pool].kernel.node());
    let kernel = Fused::PooledGradient { node, pool: pool_node }.into();
    let inputs = smallvec![steps[filter].inputs[0], steps[pool].inputs[0], steps[pool].inputs[1]];
    let outputs = smallvec![steps[filter].outputs[0], steps[sum].outputs[0]];
    program.steps[filter.max(sum)] = Step { kernel, inputs, outputs };
}
