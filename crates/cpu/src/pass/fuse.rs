//! Fuses chains of element-wise steps of one shape, so that intermediate values are never written
//! to memory.
//!
//! A group grows backwards from its last step. A step joins if it has the group's shape and every
//! reader of its result is in the group or runs after the group. In the second case its result is
//! stored as well.

use std::collections::{BinaryHeap, HashMap};

use estimand_graph::looks::look;
use estimand_graph::{Program, Step, Value};
use smallvec::SmallVec;

use super::group::Group;
use crate::kernel::{Fused, Member};

pub(crate) fn fuse(mut program: Program) -> Program {
    let body = program.body.clone();
    let n = program.n_compute;
    let mut users: HashMap<Value, Vec<usize>> = HashMap::new();
    let mut producer: HashMap<Value, usize> = HashMap::new();
    for (i, step) in program.steps.iter().enumerate() {
        for input in &step.inputs {
            users.entry(*input).or_default().push(i);
        }
        for output in &step.outputs {
            producer.insert(*output, i);
        }
    }
    // A fetch reads after all steps.
    for fetch in &program.fetches {
        users.entry(*fetch).or_default().push(usize::MAX);
    }
    let candidate: Vec<bool> = program.steps[..n].iter().map(|s| s.is_elementwise(&body)).collect();
    let mut group_of: Vec<Option<usize>> = vec![None; n];
    let mut replacement: HashMap<usize, Step> = HashMap::new();
    for root in (0..n).rev() {
        if !candidate[root] || group_of[root].is_some() {
            continue;
        }
        let shape = &body.spec(program.steps[root].outputs[0]).shape;
        let mut members = vec![root];
        let mut group = Group::new(&body, &program.steps[root]);
        group_of[root] = Some(root);
        // Producers are visited from the latest to the earliest, so that all readers of a step are
        // decided before the step.
        let mut queue: BinaryHeap<usize> = producers_of(&program.steps[root], &producer).collect();
        while let Some(next) = queue.pop() {
            look(1);
            while queue.peek() == Some(&next) {
                queue.pop();
            }
            if next >= n || !candidate[next] || group_of[next].is_some() {
                continue;
            }
            let step = &program.steps[next];
            let output = step.outputs[0];
            if body.spec(output).shape != *shape {
                continue;
            }
            // Every reader is in the group or runs after it. Readers are in order.
            let users = users.get(&output).map_or(&[][..], Vec::as_slice);
            let n_before = users.partition_point(|&u| u <= root);
            let n_inside = group.n_reads(output);
            if n_before == n_inside && n_inside > 0 && group.join(&body, step, users.len() > n_inside) {
                members.push(next);
                group_of[next] = Some(root);
                queue.extend(producers_of(step, &producer));
            }
        }
        members.sort_unstable();
        replacement.insert(root, assemble(&program, root, &members, &group_of, &producer, &users));
    }
    let steps = std::mem::take(&mut program.steps);
    for (i, step) in steps.into_iter().enumerate() {
        match group_of.get(i) {
            Some(Some(root)) if *root == i => program.steps.extend(replacement.remove(&i)),
            Some(Some(_)) => program.n_compute -= 1,
            _ => program.steps.push(step),
        }
    }
    program
}

fn producers_of(step: &Step, producer: &HashMap<Value, usize>) -> impl Iterator<Item = usize> {
    step.inputs.iter().filter_map(|v| producer.get(v).copied())
}

/// Builds the fused step. Its inputs are the values that members read from outside; its outputs are
/// the values that other steps read.
fn assemble(
    program: &Program,
    root: usize,
    members: &[usize],
    group_of: &[Option<usize>],
    producer: &HashMap<Value, usize>,
    users: &HashMap<Value, Vec<usize>>,
) -> Step {
    let is_member = |step: usize| group_of.get(step) == Some(&Some(root));
    let mut inputs: SmallVec<[Value; 4]> = SmallVec::new();
    for &m in members {
        for input in &program.steps[m].inputs {
            let is_made = producer.get(input).is_some_and(|&step| is_member(step));
            let outside = !is_made && program.body.scalar_constant(*input).is_none();
            if outside && !inputs.contains(input) {
                inputs.push(*input);
            }
        }
    }
    // Readers are in order: readers outside the group come after all members, or there are none.
    let read_outside = |value: &Value| users.get(value).is_none_or(|u| u.last().is_none_or(|&u| !is_member(u)));
    let outputs = members.iter().map(|&m| program.steps[m].outputs[0]).filter(read_outside).collect();
    let member = |&m: &usize| Member { node: program.steps[m].kernel.node(), reads: program.steps[m].inputs.clone() };
    Step { kernel: Fused::Elementwise(members.iter().map(member).collect()).into(), inputs, outputs }
}
