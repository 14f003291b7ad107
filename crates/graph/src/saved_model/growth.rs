//! A bound on tensors that a graph makes out of nothing.
//!
//! A few bytes of a file can ask for any amount of memory: a `Fill`, a `Tile`, a `OneHot`. What models do is far below the bound, and
//! what is large for a reason (a variable, a batch) is not concerned: a node may always make some times of what it is given.

use estimand_tensor::{Dim, Error, Result, Shape};

use crate::graph::{Body, NodeId};
use crate::op::Op;
use crate::symbols::{SymbolDef, Symbols};

/// Elements that any node may make, for each row of a batch.
const FREE: usize = 1 << 24;

/// How many times the elements of its inputs a node may make beyond that.
const FACTOR: usize = 4;

/// Checks the nodes that were added since `first`.
pub(super) fn check(body: &Body, first: usize) -> Result<()> {
    for (i, node) in body.nodes().iter().enumerate().skip(first) {
        if matches!(node.op, Op::Placeholder | Op::Constant(_) | Op::Variable(_)) {
            continue;
        }
        let given = node.inputs.iter().map(|&input| least(&body.spec(input).shape, body.symbols()));
        let given = given.fold(0, usize::saturating_add);
        for spec in &node.outputs {
            let makes = least(&spec.shape, body.symbols());
            if makes > FREE && makes > given.saturating_mul(FACTOR) {
                let node = body.node(NodeId(i as u32));
                return Err(Error::unsupported(format!(
                    "{} makes {spec}, at least {makes} elements, from {given}; the limit is {FREE}",
                    node.op.name()
                ))
                .help("the file may be damaged"));
            }
        }
    }
    Ok(())
}

/// The number of elements of a shape if everything that only the run knows is 1.
fn least(shape: &Shape, symbols: &Symbols) -> usize {
    shape.dims().iter().map(|&dim| least_size(dim, symbols)).fold(1, usize::saturating_mul)
}

fn least_size(dim: Dim, symbols: &Symbols) -> usize {
    let Dim::Sym(symbol) = dim else { return dim.known().unwrap_or(1) };
    let of = |dim| least_size(dim, symbols);
    match symbols.def(symbol) {
        SymbolDef::Batch | SymbolDef::Axis(..) | SymbolDef::Number(_) => 1,
        SymbolDef::Add(a, b) => of(a).saturating_add(of(b)),
        SymbolDef::Sub(a, b) => of(a).saturating_sub(of(b)),
        SymbolDef::Mul(a, b) => of(a).saturating_mul(of(b)),
        SymbolDef::Div(a, b) => of(a) / of(b).max(1),
        SymbolDef::CeilDiv(a, b) => of(a).div_ceil(of(b).max(1)),
        SymbolDef::Broadcast(a, b) => of(a).max(of(b)),
    }
}
