//! The nodes that the fetches need, one step each, in the order of building; what writes variables comes last.

use std::sync::Arc;

use estimand_tensor::Dim;
use smallvec::SmallVec;

use crate::graph::{Body, Node, NodeId, Value};
use crate::op::Op;
use crate::program::{Kernel, Program, Step};
use crate::symbols::{SymbolDef, Symbols};

pub(crate) fn prune(body: Arc<Body>, roots: &[Value]) -> Program {
    let mut needed = vec![false; body.nodes().len()];
    for root in roots {
        needed[root.node.0 as usize] = true;
    }
    let mut batch = false;
    for i in (0..needed.len()).rev() {
        if needed[i] {
            let node = &body.nodes()[i];
            for input in &node.inputs {
                needed[input.node.0 as usize] = true;
            }
            each_size(node, &mut |dim| mark_source(dim, body.symbols(), &mut needed, &mut batch));
        }
    }
    mark_batch(&body, batch, &mut needed);
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
    let fetches = roots.iter().copied().filter(|f| !body.node(f.node).outputs.is_empty()).collect();
    let n_compute = compute.len();
    compute.append(&mut apply);
    Program { body, steps: compute, feeds, fetches, roots: roots.to_vec(), n_compute }
}

/// Every size that running a node asks for.
fn each_size(node: &Node, f: &mut impl FnMut(Dim)) {
    let outputs = node.outputs.iter().flat_map(|spec| spec.shape.dims());
    match &node.op {
        Op::DimSize(dim, _) => f(*dim),
        Op::Pad { before, after } => before.dims().iter().chain(after.dims()).for_each(|&dim| f(dim)),
        _ => {}
    }
    outputs.for_each(|&dim| f(dim));
}

/// A placeholder may be needed for its size alone: the gradient of `x.sum()` reads nothing of x but how large it is.
fn mark_source(dim: Dim, symbols: &Symbols, needed: &mut [bool], batch: &mut bool) {
    let Dim::Sym(symbol) = dim else { return };
    match symbols.def(symbol) {
        SymbolDef::Batch => *batch = true,
        SymbolDef::Fed(node, _) => needed[node.0 as usize] = true,
        SymbolDef::Add(a, b)
        | SymbolDef::Sub(a, b)
        | SymbolDef::Mul(a, b)
        | SymbolDef::Div(a, b)
        | SymbolDef::CeilDiv(a, b)
        | SymbolDef::Broadcast(a, b) => {
            mark_source(a, symbols, needed, batch);
            mark_source(b, symbols, needed, batch);
        }
    }
}

/// Any placeholder with a batch axis tells its size; the first is taken if none is needed for its value.
fn mark_batch(body: &Body, batch: bool, needed: &mut [bool]) {
    let tells = |node: &Node| node.op == Op::Placeholder && node.outputs[0].shape.dims().contains(&Dim::BATCH);
    let mut tellers = body.nodes().iter().enumerate().filter(|(_, node)| tells(node)).map(|(i, _)| i);
    if batch
        && !tellers.clone().any(|i| needed[i])
        && let Some(first) = tellers.next()
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
            prune(Arc::new(g.body().clone()), &[dx.value()]).feeds
        };
        assert_eq!(fed(&x.sum(), &x), [x.value().node]);
        assert_eq!(fed(&rows.sum(), &rows), [x.value().node]);
        assert_eq!(fed(&rows.square().sum(), &rows), [rows.value().node]);
    }
}
