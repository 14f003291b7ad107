//! The interface that every op implements.

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
pub(super) use crate::body::Node;
pub(crate) use crate::cost::{Cost, Operands};
pub(super) use crate::cost::{count, product};
pub(super) use crate::gradient::{Backprop, Found, Gradient, dense, not_differentiable};
pub(super) use crate::tensor::Tensor;

/// The rules of one kind of op that do not depend on the executor. Its fields are its attributes.
///
/// Methods that most ops must implement have no default, so that none is forgotten.
pub trait OpRules: fmt::Debug {
    /// A short name for messages and text forms: TensorFlow's, except for our own ops.
    fn name(&self) -> &'static str;

    /// Dtypes and shapes of the results. The error names the input that does not fit.
    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs>;

    /// Whether the sizes of the inputs and of the first result agree. A run calls it when the
    /// symbols of `infer` have values.
    fn fits(&self, x: &[&[usize]], y: &[usize]) -> bool;

    /// The gradients of the inputs, as new nodes.
    fn gradient(&self, back: &Backprop<'_>) -> Result<Found>;

    /// The bytes a run of it moves and the operations it computes.
    fn cost(&self, operands: &Operands<'_>) -> Cost;

    /// Completes a GraphDef node that has its name, its op and our inputs. Writes the extra nodes
    /// it needs first.
    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef>;

    /// The sizes among its attributes, beyond those of its results.
    fn sizes(&self) -> SmallVec<[Dim; 4]> {
        SmallVec::new()
    }

    /// Whether running it changes state or the outside world, so that equal nodes must not be
    /// merged.
    fn has_effect(&self) -> bool {
        false
    }

    /// Whether its result consists only of elements of its inputs, so that it also works on
    /// strings.
    fn moves_elements(&self) -> bool {
        false
    }

    /// TensorFlow's ops that are read as this one. Other TensorFlow ops become compositions of
    /// ours; their rules are in `saved_model`.
    fn readers() -> Vec<(&'static str, ReadRule)>
    where
        Self: Sized,
    {
        Vec::new()
    }
}
