//! The nodes that the fetches need, one step each, in the order of building; what writes variables comes last.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::graph::{Body, NodeId, Value};
use crate::op::Op;
use crate::program::{Kernel, Program, Step};

pub(crate) fn prune(body: Arc<Body>, fetches: &[Value]) -> Program {
    let mut needed = vec![false; body.nodes().len()];
    for fetch in fetches {
        needed[fetch.node.0 as usize] = true;
    }
    for i in (0..needed.len()).rev() {
        if needed[i] {
            for input in &body.nodes()[i].inputs {
                needed[input.node.0 as usize] = true;
            }
        }
    }
    let (mut compute, mut apply, mut feeds) = (Vec::new(), Vec::new(), Vec::new());
    for (i, node) in body.nodes().iter().enumerate().filter(|(i, _)| needed[*i]) {
        let id = NodeId(i as u32);
        let step = || Step {
            kernel: Kernel::Node(id),
            inputs: node.inputs.clone(),
            outputs: (0..node.outputs.len()).map(|o| Value { node: id, output: o as u16 }).collect::<SmallVec<_>>(),
        };
        match node.op {
            Op::Placeholder => feeds.push(id),
            Op::Constant(_) | Op::Variable(_) | Op::Group => {}
            Op::Assign(_) | Op::Apply(_) => apply.push(step()),
            _ => compute.push(step()),
        }
    }
    // A train op has no value: fetching it only makes it run.
    let fetches = fetches.iter().copied().filter(|f| !body.node(f.node).outputs.is_empty()).collect();
    let n_compute = compute.len();
    compute.append(&mut apply);
    Program { body, steps: compute, feeds, fetches, n_compute }
}
