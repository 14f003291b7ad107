//! Host ops, which run before a step: strings, tables, and results whose size depends on the data.
//!
//! A host op is a small value with its rules, its kernel and its TensorFlow spelling
//! ([`HostRules`]). Each has its own file. The cut (`pass/cut.rs`) collects the host ops and all
//! their inputs into the first part of a program, which `estimand-engine` runs. This part is a pure
//! function of the feeds, so any number of threads may call it. Host ops that depend on variables
//! run after the step.

mod agree;
pub mod assertion;
mod bucketize;
pub mod check;
pub mod parse_example;
pub mod ragged;
pub mod sparse;
pub mod table;
pub mod text;
mod unique;

use std::any::Any;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, Result, TensorSpec};
use estimand_wire::NodeDef;

use crate::body::Node;
use crate::cost::{Cost, Operands};
use crate::gradient::{Backprop, Found};
use crate::meaning::Meaning;
use crate::op::rules::OpRules;
pub(crate) use crate::op::shape::{Inference, Specs};
use crate::op::spelling::Spelling;

pub use agree::Agree;
pub use bucketize::Bucketize;
pub(crate) use ragged::RowIds;
pub use unique::Unique;

/// The rules of one kind of host op. Its fields are its attributes. Equal ops on equal inputs are
/// computed once.
pub trait HostRules: fmt::Debug + Send + Sync + 'static {
    /// TensorFlow's name of the op, or of the composition that implements it.
    fn name(&self) -> &'static str;

    /// Dtypes and shapes of the results.
    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs>;

    /// Computes the results. Dtypes and known sizes of the inputs have been checked; values have
    /// not.
    fn run(&self, x: &[&Array]) -> Result<Vec<Array>>;

    /// Returns the facts, beyond names and shapes, that weights trained on the results depend on:
    /// which term has which id, where ranges end, the number of hash buckets. Empty for an op that
    /// only moves or measures its input. There is no default, so that every op must answer.
    fn meaning(&self) -> Vec<Said>;

    /// Completes a node that has its name, its op and our inputs. Writes the extra nodes it needs
    /// first.
    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef>;
}

/// A fact that an op states: its name and its value.
pub type Said = (&'static str, Meaning);

/// A pool of the calling thread alone: many threads already call the host part.
pub(crate) fn alone() -> &'static Pool {
    static ALONE: LazyLock<Pool> = LazyLock::new(|| Pool::new(1));
    &ALONE
}

/// A host op as an attribute of a node.
#[derive(Clone)]
pub struct HostOp(Arc<dyn Erased>);

impl HostOp {
    pub fn new<T: HostRules + Eq + Hash>(op: T) -> HostOp {
        HostOp(Arc::new(op))
    }

    pub fn rules(&self) -> &dyn HostRules {
        self.0.rules()
    }

    /// The op, if it is of this kind.
    pub fn get<T: HostRules>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }
}

impl OpRules for HostOp {
    fn name(&self) -> &'static str {
        self.rules().name()
    }

    fn infer(&self, x: &[&TensorSpec], inference: &mut Inference<'_>) -> Result<Specs> {
        self.rules().infer(x, inference)
    }

    /// A host op checks the sizes of its inputs itself.
    fn fits(&self, _x: &[&[usize]], _y: &[usize]) -> bool {
        true
    }

    fn gradient(&self, back: &Backprop<'_>) -> Result<Found> {
        back.nothing()
    }

    fn cost(&self, operands: &Operands<'_>) -> Cost {
        operands.all(0)
    }

    fn spell(&self, def: NodeDef, node: &Node, writer: &mut dyn Spelling) -> Result<NodeDef> {
        self.rules().spell(def, node, writer)
    }
}

impl fmt::Debug for HostOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules().fmt(f)
    }
}

impl PartialEq for HostOp {
    fn eq(&self, other: &HostOp) -> bool {
        self.0.equals(&*other.0)
    }
}

impl Eq for HostOp {}

impl Hash for HostOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.digest());
    }
}

/// Equality and hashing of attributes through a trait object.
trait Erased: Send + Sync {
    fn rules(&self) -> &dyn HostRules;
    fn as_any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn Erased) -> bool;
    fn digest(&self) -> u64;
}

impl<T: HostRules + Eq + Hash> Erased for T {
    fn rules(&self) -> &dyn HostRules {
        self
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn equals(&self, other: &dyn Erased) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.name().hash(&mut hasher);
        self.hash(&mut hasher);
        hasher.finish()
    }
}
