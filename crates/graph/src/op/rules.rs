//! What is asked of every op, and what an op's file is written with.

use std::fmt;

pub(super) use estimand_tensor::{Array, Binary, DType, Dim, Error, Reduction, Result, Shape, TensorSpec, Unary};
pub(super) use estimand_wire::NodeDef;
use smallvec::SmallVec;

pub(super) use super::attribute::{Axes, AxisSet};
pub(super) use super::expect::*;
pub(crate) use super::reading::{ReadRule, Reading};
pub(super) use super::reading::{axis, n_rows, refuse, with_rows};
pub(crate) use super::shape::{Inference, Specs};
pub(super) use super::shape::{broadcast, one, same, spreads_to};
pub(crate) use super::spelling::{Spelling, typed};
pub(crate) use crate::cost::{Cost, Operands};
pub(super) use crate::cost::{count, product};
pub(super) use crate::gradient::{Backprop, Found, Gradient, dense, not_differentiable};
pub(super) use crate::graph::Node;
pub(super) use crate::tensor::Tensor;

/// Everything about one kind of op that does not depend on who runs it. Its fields are its
/// attributes.
///
/// What most ops have something to say of has no default, so that no op forgets it.
pub trait OpRules: fmt::Debug {
    /// A short name for messages and text forms: TensorFlow's, except for our own ops.
    fn name(&self) -> &'static str;

    /// Dtypes and shapes of the results, or the error that says what does not fit.
    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs>;

    /// Whether the sizes of the inputs and of the first result agree, in a run that knows what was
    /// a symbol in `infer`.
    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool;

    /// The gradients of the inputs, as new nodes.
    fn gradient(&self, back: &Backprop<'_>) -> Result<Found>;

    /// What a run of it moves and computes.
    fn cost(&self, operands: &Operands<'_>) -> Cost;

    /// Completes a node of a GraphDef that has its name, its op and our inputs, after writing what
    /// it needs.
    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef>;

    /// The sizes that it holds, beyond those of its results.
    fn sizes(&self) -> SmallVec<[Dim; 4]> {
        SmallVec::new()
    }

    /// Whether running it changes state or the outside world, so that equal nodes are not one.
    fn has_effect(&self) -> bool {
        false
    }

    /// Whether its result holds elements of its inputs and nothing else, so that it is defined on
    /// strings too.
    fn moves_elements(&self) -> bool {
        false
    }

    /// TensorFlow's ops that are read as this one. Others are compositions of ours: `saved_model`
    /// has their rules.
    fn readers() -> Vec<(&'static str, ReadRule)>
    where
        Self: Sized,
    {
        Vec::new()
    }
}
