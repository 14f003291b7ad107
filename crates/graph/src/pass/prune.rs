//! Selects the nodes that the fetches need, one step each, in build order. Steps that write
//! variables come last.

use std::sync::Arc;

use estimand_tensor::Dim;
use smallvec::SmallVec;

use crate::body::{Body, Node};
use crate::looks::look;
use crate::op::Op;
use crate::program::{Kernel, Program, Step};
use crate::sources::Sources;
use crate::symbols::SymbolDef;
use crate::value::{NodeId, Value};

pub(crate) fn prune(body: Arc<Body>, roots: &[Value]) -> Program {
    let needed = needed(&body, roots);
    let (mut compute, mut apply, mut placeholders) = (Vec::new(), Vec::new(), Vec::new());
    for (i, node) in body.nodes().iter().enumerate().filter(|(i, _)| needed[*i]) {
        let id = NodeId(i as u32);
        let step = || Step {
            kernel: Kernel::Node(id),
            inputs: node.inputs.clone(),
            outputs: (0..node.outputs.len()).map(|o| Value { node: id, output: o as u16 }).collect::<SmallVec<_>>(),
        };
        match node.op {
            Op::Placeholder(_) => placeholders.push(id),
            Op::Constant(_) | Op::Variable(_) | Op::Group(_) => {}
            Op::Assign(_) | Op::Apply(_) => apply.push(step()),
            _ => compute.push(step()),
        }
    }
    // A train op has no value: fetching it only runs it.
    let fetches: Vec<Value> = roots.iter().copied().filter(|f| !body.node(f.node).outputs.is_empty()).collect();
    let n_compute = compute.len();
    compute.append(&mut apply);
    let feeds = placeholders.iter().map(|&node| Value { node, output: 0 }).collect();
    Program {
        body,
        host: Vec::new(),
        steps: compute,
        placeholders,
        feeds,
        results: fetches.clone(),
        fetches,
        after: Vec::new(),
        n_compute,
    }
}

/// Finds the nodes that these values are computed from, including nodes that determine sizes.
pub fn needed(body: &Body, roots: &[Value]) -> Vec<bool> {
    let mut needed = vec![false; body.nodes().len()];
    for root in roots {
        needed[root.node.0 as usize] = true;
    }
    let mut batch = false;
    let mut sources = Sources::default();
    for i in (0..needed.len()).rev() {
        if needed[i] {
            look(1);
            let node = &body.nodes()[i];
            for input in &node.inputs {
                needed[input.node.0 as usize] = true;
            }
            // A placeholder may be needed for its size alone: the gradient of `x.sum()` reads only
            // the size of x.
            each_source(body, node, &mut sources, &mut |source| match source {
                SymbolDef::Axis(value, _) | SymbolDef::Number(value) => needed[value.node.0 as usize] = true,
                _ => batch = true,
            });
        }
    }
    mark_batch(body, batch, &mut needed);
    needed
}

/// Calls `f` with each outside source of a node's sizes that has not been visited yet.
pub(crate) fn each_source(body: &Body, node: &Node, sources: &mut Sources, f: &mut impl FnMut(SymbolDef)) {
    each_dim(node, &mut |dim| sources.each(body.symbols(), dim, f));
}

/// Calls `f` with the sizes that a node needs: those of its results, and those among its op's
/// attributes.
pub fn each_dim(node: &Node, f: &mut impl FnMut(Dim)) {
    node.op.rules().sizes().iter().for_each(|&dim| f(dim));
    node.outputs.iter().flat_map(|spec| spec.shape.dims()).for_each(|&dim| f(dim));
}

/// Whether the size of a value determines the batch size.
pub(crate) fn tells_batch(body: &Body, value: Value) -> bool {
    body.spec(value).shape.dims().iter().any(|&dim| body.symbols().beyond_batch(dim).is_some())
}

/// Marks a placeholder that determines the batch size. Takes the first one if none is needed for
/// its value.
fn mark_batch(body: &Body, batch: bool, needed: &mut [bool]) {
    let tells = |i: &usize| {
        let value = Value { node: NodeId(*i as u32), output: 0 };
        body.nodes()[*i].op.is_placeholder() && tells_batch(body, value)
    };
    let mut size_sources = (0..needed.len()).filter(tells);
    if batch
        && !size_sources.clone().any(|i| needed[i])
        && let Some(first) = size_sources.next()
    {
        needed[first] = true;
    }
}

#[cfg(test)]
mod tests {
    use estimand_tensor::DType;

    use super::*;
    use crate::{Gradient, Graph, gradients};

    #[test]
    fn a_placeholder_is_fed_when_only_its_size_is_needed() {
        let g = Graph::new();
        let x = g.placeholder("x", DType::F32, [Dim::BATCH, Graph::ANY]);
        let rows = g.placeholder("rows", DType::F32, [Dim::BATCH]);
        let fed = |y: &crate::Tensor, x: &crate::Tensor| {
            let Gradient::Dense(dx) = gradients(y, &[x]).remove(0) else { panic!("a dense gradient") };
            prune(Arc::new(g.body().clone()), &[dx.value()]).placeholders
        };
        assert_eq!(fed(&x.sum(), &x), [x.value().node]);
        assert_eq!(fed(&rows.sum(), &rows), [x.value().node]);
        assert_eq!(fed(&rows.square().sum(), &rows), [rows.value().node]);
    }
}
