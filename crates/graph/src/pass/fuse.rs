//! Fuses chains of element-wise steps of one shape, so that what lies between them never reaches memory.
//!
//! A group grows from its last step backwards: a step joins if it has the group's shape and everybody who reads its result is
//! in the group, or comes after it (then the result is stored as well).

use std::collections::HashMap;

use estimand_tensor::DType;
use estimand_tensor::cpu::elementwise::TileProgram;
use smallvec::SmallVec;

use crate::cpu::tile;
use crate::graph::{Body, Value};
use crate::op::Op;
use crate::program::{Kernel, Member, Program, Step};

/// Whether a node runs in the tile interpreter.
pub(crate) fn is_elementwise(body: &Body, step: &Step) -> bool {
    let Kernel::Node(id) = &step.kernel else { return false };
    let node = body.node(*id);
    let plain = |v: &Value| body.spec(*v).dtype != DType::Str;
    matches!(node.op, Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast(_) | Op::BroadcastTo(_))
        && step.inputs.iter().all(plain)
}

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
    // A fetch reads after everything else.
    for fetch in &program.fetches {
        users.entry(*fetch).or_default().push(usize::MAX);
    }
    let candidate: Vec<bool> = program.steps[..n].iter().map(|s| is_elementwise(&body, s)).collect();
    let mut group_of: Vec<Option<usize>> = vec![None; n];
    let mut replacement: HashMap<usize, Step> = HashMap::new();
    for root in (0..n).rev() {
        if !candidate[root] || group_of[root].is_some() {
            continue;
        }
        let shape = &body.spec(program.steps[root].outputs[0]).shape;
        let mut members = vec![root];
        group_of[root] = Some(root);
        // Producers are visited from the latest to the earliest, so that a member's users are decided before it.
        let mut queue: Vec<usize> = producers_of(&program.steps[root], &producer);
        while let Some(next) = queue.iter().copied().max() {
            queue.retain(|&q| q != next);
            if next >= n || !candidate[next] || group_of[next].is_some() {
                continue;
            }
            let output = program.steps[next].outputs[0];
            let same_shape = body.spec(output).shape == *shape;
            let inside = |u: &usize| members.contains(u);
            let fits = users.get(&output).is_some_and(|users| users.iter().all(|u| inside(u) || *u > root));
            if !same_shape || !fits {
                continue;
            }
            members.push(next);
            if within_limits(&program, &members, &users) {
                group_of[next] = Some(root);
                queue.extend(producers_of(&program.steps[next], &producer));
            } else {
                members.pop();
            }
        }
        members.sort_unstable();
        replacement.insert(root, assemble(&program, &members, &users));
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

fn producers_of(step: &Step, producer: &HashMap<Value, usize>) -> Vec<usize> {
    step.inputs.iter().filter_map(|v| producer.get(v).copied()).collect()
}

/// The fused step: inputs are what the members read from outside, outputs what outsiders read.
fn assemble(program: &Program, members: &[usize], users: &HashMap<Value, Vec<usize>>) -> Step {
    let made: Vec<Value> = members.iter().map(|&m| program.steps[m].outputs[0]).collect();
    let mut inputs: SmallVec<[Value; 4]> = SmallVec::new();
    for &m in members {
        for input in &program.steps[m].inputs {
            let outside = !made.contains(input) && tile::scalar_constant(&program.body, *input).is_none();
            if outside && !inputs.contains(input) {
                inputs.push(*input);
            }
        }
    }
    let read_outside = |value: &&Value| users.get(value).is_none_or(|u| u.iter().any(|u| !members.contains(u)));
    let outputs = made.iter().filter(read_outside).copied().collect();
    let member = |&m: &usize| Member { node: program.steps[m].kernel.node(), reads: program.steps[m].inputs.clone() };
    Step { kernel: Kernel::Elementwise(members.iter().map(member).collect()), inputs, outputs }
}

/// Whether the tile interpreter can run the group.
fn within_limits(program: &Program, members: &[usize], users: &HashMap<Value, Vec<usize>>) -> bool {
    let mut sorted = members.to_vec();
    sorted.sort_unstable();
    let step = assemble(program, &sorted, users);
    let Kernel::Elementwise(members) = &step.kernel else { return false };
    step.inputs.len() <= TileProgram::MAX_INPUTS
        && step.outputs.len() <= TileProgram::MAX_OUTPUTS
        && tile::compile(&program.body, members, &step.inputs, &step.outputs).is_ok()
}
