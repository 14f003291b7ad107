//! A bound on the sizes of tensors that a graph creates.
//!
//! A few bytes of a file can request any amount of memory: with a `Fill`, a `Tile`, a `OneHot`, or
//! with sixty nodes that each concatenate a tensor with itself. Real models stay far below the
//! bounds. Tensors that are large for a reason (a variable, a batch) are not affected: a node may
//! always produce a multiple of its inputs' size, and all nodes a multiple of the sizes that the
//! graph begins with.

use estimand_graph::looks::look;
use estimand_graph::{Body, Op, SymbolDef, Symbols};
use estimand_tensor::{Dim, Error, Result, Shape};

use super::limits::{FACTOR, ReadLimits};

/// Elements that any node may produce, for each row of a batch.
const FREE: usize = 1 << 24;

/// The known sizes of a graph while it is read.
#[derive(Default)]
pub(super) struct Growth {
    /// The value of each symbol if everything known only at run time is 1.
    least: Vec<usize>,
    /// Elements of all placeholders, constants and variables.
    sources: usize,
    n_checked: usize,
}

impl Growth {
    /// Checks the nodes that were added since the last call.
    pub(super) fn check(&mut self, body: &Body, limits: &ReadLimits) -> Result<()> {
        self.extend(body.symbols());
        for node in &body.nodes()[self.n_checked..] {
            look(1);
            if matches!(node.op, Op::Placeholder(_) | Op::Constant(_) | Op::Variable(_)) {
                let made = node.outputs.iter().map(|spec| self.least(&spec.shape));
                self.sources = made.fold(self.sources, usize::saturating_add);
                continue;
            }
            let given = node.inputs.iter().map(|&input| self.least(&body.spec(input).shape));
            let given = given.fold(0, usize::saturating_add);
            for spec in &node.outputs {
                let makes = self.least(&spec.shape);
                if makes > FREE && makes > given.saturating_mul(FACTOR) {
                    return Err(Error::unsupported(format!(
                        "{} makes {spec} of at least {makes} elements from {given} elements; the limit is {FREE}",
                        node.op.name()
                    ))
                    .help("the file may be damaged: export the model again"));
                }
                limits
                    .check_elements(makes, self.sources)
                    .map_err(|e| e.context(format!("in {} `{}`, which makes {spec}", node.op.name(), node.name)))?;
            }
        }
        self.n_checked = body.nodes().len();
        Ok(())
    }

    /// Evaluates new symbols. A symbol uses only earlier ones.
    fn extend(&mut self, symbols: &Symbols) {
        for def in &symbols.defs()[self.least.len()..] {
            look(1);
            let of = |dim: Dim| self.least_size(dim);
            let least = match *def {
                SymbolDef::Batch | SymbolDef::Axis(..) | SymbolDef::Number(_) => 1,
                SymbolDef::Add(a, b) => of(a).saturating_add(of(b)),
                SymbolDef::Sub(a, b) => of(a).saturating_sub(of(b)),
                SymbolDef::Mul(a, b) => of(a).saturating_mul(of(b)),
                SymbolDef::Div(a, b) => of(a) / of(b).max(1),
                SymbolDef::CeilDiv(a, b) => of(a).div_ceil(of(b).max(1)),
                SymbolDef::Broadcast(a, b) => of(a).max(of(b)),
            };
            self.least.push(least);
        }
    }

    fn least_size(&self, dim: Dim) -> usize {
        match dim {
            Dim::Known(n) => n,
            Dim::Sym(symbol) => self.least.get(symbol.0 as usize).copied().unwrap_or(1),
        }
    }

    /// The number of elements of a shape if everything known only at run time is 1.
    fn least(&self, shape: &Shape) -> usize {
        shape.dims().iter().map(|&dim| self.least_size(dim)).fold(1, usize::saturating_mul)
    }
}
