//! Adds up results of element-wise groups over all axes but the last while they are computed: the
//! statistics of batch normalisation and its gradients. A result that nobody else reads is never
//! written to memory.

use std::collections::HashMap;

use estimand_graph::op::AxisSet;
use estimand_graph::{Kernel, Op, Program, Step, Value};
use estimand_tensor::cpu::elementwise::{MAX_SUM_WIDTH, MAX_SUMS};
use estimand_tensor::{DType, Dim, Reduction};

use super::singles::group_singles;
use crate::kernel::{Fused, Sum, fused};

pub(crate) fn sum_what_is_computed(program: Program) -> Program {
    let mut program = group_singles(program);
    let n = program.n_compute;
    let uses = program.use_counts();
    // The reductions of each value, by the indices of their steps.
    let mut reductions: HashMap<Value, Vec<usize>> = HashMap::new();
    for (i, step) in program.steps[..n].iter().enumerate() {
        if reduction(&program, step).is_some() {
            reductions.entry(step.inputs[0]).or_default().push(i);
        }
    }
    let mut removed = vec![false; program.steps.len()];
    for i in 0..n {
        let step = &program.steps[i];
        let Some(Fused::Elementwise(members)) = fused(&step.kernel) else { continue };
        // The space of the group is read off an input.
        let shape = &program.spec(step.outputs[0]).shape;
        if !step.inputs.iter().any(|&input| program.spec(input).shape == *shape) {
            continue;
        }
        let (mut sums, mut results): (Vec<Sum>, Vec<Value>) = (Vec::new(), Vec::new());
        let mut stored = Vec::new();
        for (of, value) in step.outputs.iter().enumerate() {
            let mut n_readers = uses.get(value).copied().unwrap_or(0);
            let free = MAX_SUMS - sums.len();
            for &at in reductions.get(value).into_iter().flatten().take(free) {
                let reducing = &program.steps[at];
                let Some(kind) = reduction(&program, reducing) else { continue };
                sums.push(Sum { node: reducing.kernel.node(), kind, of });
                results.push(reducing.outputs[0]);
                removed[at] = true;
                n_readers -= 1;
            }
            if n_readers > 0 {
                stored.push(*value);
            }
        }
        if sums.is_empty() {
            continue;
        }
        let kernel = Fused::Summed { members: members.clone(), made: step.outputs.to_vec(), sums };
        let step = &mut program.steps[i];
        step.kernel = kernel.into();
        step.outputs = stored.into_iter().chain(results).collect();
    }
    let mut keep = removed.iter().map(|r| !r);
    program.steps.retain(|_| keep.next().unwrap_or(true));
    program.n_compute -= removed.iter().filter(|r| **r).count();
    program
}

/// What a step reduces to its last axis, if it is a sum or mean of `f32` that can be added up on
/// the way.
fn reduction(program: &Program, step: &Step) -> Option<Reduction> {
    let Kernel::Node(node) = step.kernel else { return None };
    let (x, y) = (program.spec(*step.inputs.first()?), program.spec(*step.outputs.first()?));
    let Some((Dim::Known(width), others)) = x.shape.dims().split_last() else { return None };
    if x.dtype != DType::F32 || others.is_empty() || !(2..=MAX_SUM_WIDTH).contains(width) {
        return None;
    }
    match &program.body().node(node).op {
        Op::Reduce(op) if op.axes == AxisSet((1 << others.len()) - 1) => {
            matches!(op.kind, Reduction::Sum | Reduction::Mean).then_some(op.kind)
        }
        Op::SumTo(_) => {
            let (last, ones) = y.shape.dims().split_last()?;
            (*last == Dim::Known(*width) && ones.iter().all(|dim| *dim == Dim::Known(1))).then_some(Reduction::Sum)
        }
        _ => None,
    }
}
