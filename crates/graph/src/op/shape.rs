//! Shapes computed from other shapes, and helpers for shape rules.

use estimand_tensor::{DType, Dim, Error, MAX_RANK, Result, Shape, TensorSpec, element_count};
use smallvec::{SmallVec, smallvec};

use crate::symbols::{SymbolDef, Symbols};
use crate::value::{NodeId, Value};
use crate::variables::Variables;

/// The results of a node.
pub(crate) type Specs = SmallVec<[TensorSpec; 1]>;

/// The context of shape inference for one node.
pub struct Inference<'a> {
    /// The sizes that are known only at run time.
    pub symbols: &'a mut Symbols,
    /// The graph's variables.
    pub variables: &'a Variables,
    /// The node that the op will become.
    pub node: NodeId,
}

impl Inference<'_> {
    /// The size of a result's axis that only the data determines.
    pub(crate) fn axis(&mut self, output: u16, axis: usize) -> Dim {
        let value = Value { node: self.node, output };
        Dim::Sym(self.symbols.intern(SymbolDef::Axis(value, axis)))
    }
}

/// Specs of one result.
pub(crate) fn one(dtype: DType, shape: Shape) -> Result<Specs> {
    Ok(smallvec![TensorSpec { dtype, shape }])
}

/// Specs of one result that is like an input.
pub(crate) fn same(x: &TensorSpec) -> Result<Specs> {
    Ok(smallvec![x.clone()])
}

/// Checks that a shape has at most eight axes, existing symbols, and known sizes that fit the
/// address space.
pub(crate) fn check_shape(shape: &Shape, symbols: &Symbols) -> Result<()> {
    if shape.rank() > MAX_RANK {
        return Err(Error::shape(format!("{shape} has {} axes, at most {MAX_RANK} are supported", shape.rank())));
    }
    for dim in shape.dims() {
        if let Dim::Sym(s) = dim
            && s.0 as usize >= symbols.defs().len()
        {
            return Err(Error::shape(format!("{shape} uses a size that belongs to another graph")));
        }
    }
    let known: SmallVec<[usize; 8]> = shape.dims().iter().filter_map(|d| d.known()).collect();
    element_count(&known).map(drop)
}

/// The shape that two shapes are broadcast to.
pub(crate) fn broadcast(a: &Shape, b: &Shape, symbols: &mut Symbols) -> Result<Shape> {
    let rank = a.rank().max(b.rank());
    let at = |s: &Shape, i: usize| (i + s.rank()).checked_sub(rank).map_or(Dim::Known(1), |k| s.dims()[k]);
    let dims: Option<Vec<Dim>> = (0..rank).map(|i| symbols.broadcast(at(a, i), at(b, i))).collect();
    dims.map(|d| d.into_iter().collect()).ok_or_else(|| {
        Error::shape(format!("{a} and {b} cannot be broadcast: sizes must be equal or 1, aligned at the last axis"))
    })
}

/// Whether sizes can be broadcast to the sizes `space`.
pub fn spreads_to(dims: &[usize], space: &[usize]) -> bool {
    dims.len() <= space.len() && dims.iter().rev().zip(space.iter().rev()).all(|(d, s)| d == s || *d == 1)
}
