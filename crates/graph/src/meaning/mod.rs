//! The meaning of a graph beyond names and shapes: vocabularies, boundaries, hash sizes,
//! normalisation.
//!
//! Weights are trained on ids and numbers. No variable records which term has id 3: two graphs with
//! the same variables can read the same weights and interpret them differently. A graph therefore
//! keeps *facts*. Host ops state theirs automatically (`HostRules::meaning`, which every op must
//! implement). Columns and model functions state more with [`Tensor::means`]. While a
//! [`Graph::about`] guard lives, facts belong to its column. Otherwise they belong to the inputs
//! that the op reads.
//!
//! [`Body::facts`](crate::Body::facts) (`facts.rs`) lists the facts for code that saves or loads
//! weights. `listing.rs` is a list of values with its digest.
//!
//! ```
//! use estimand_graph::meaning::Meaning;
//! use estimand_graph::{Graph, Initializer, LookupTable, RaggedTensor};
//! use estimand_tensor::{DType, Dim};
//!
//! let g = Graph::new();
//! let job = g.placeholder("job", DType::Str, [Dim::BATCH]);
//! let ids = LookupTable::from_list(["cook", "clerk"])?.lookup(&job);
//! g.variable("weights", [2, 1], Initializer::Zeros).lookup(&RaggedTensor::from_rows(&ids), estimand_graph::Combiner::Sum);
//! let facts = g.body().facts();
//! assert_eq!((facts[0].aspect.as_str(), &facts[0].variables[..]), ("vocabulary", &["weights".to_string()][..]));
//! assert_eq!(facts[0].value.to_string(), "2 terms (`cook`, `clerk`)");
//! # Ok::<(), estimand_tensor::Error>(())
//! ```

mod facts;
mod listing;

use std::fmt;
use std::sync::Arc;

pub use listing::{Listed, Listing};

use crate::graph::Graph;
use crate::op::{Constant, Op};
use crate::tensor::Tensor;
use crate::value::{NodeId, Value};

/// The value of a fact.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// A whole number: a hash size, a number of buckets.
    Int(i64),
    /// A number: the mean of a normalisation. Compared bit by bit.
    Float(f64),
    /// A word: how vectors are combined.
    Text(String),
    /// Values in order: a vocabulary, boundaries.
    List(Listing),
}

/// Compares bit by bit.
impl PartialEq for Meaning {
    fn eq(&self, other: &Meaning) -> bool {
        match (self, other) {
            (Meaning::Int(a), Meaning::Int(b)) => a == b,
            (Meaning::Float(a), Meaning::Float(b)) => a.to_bits() == b.to_bits(),
            (Meaning::Text(a), Meaning::Text(b)) => a == b,
            (Meaning::List(a), Meaning::List(b)) => a == b,
            (Meaning::Int(_) | Meaning::Float(_) | Meaning::Text(_) | Meaning::List(_), _) => false,
        }
    }
}

/// The subject of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A column: its name, and the scope of its nodes and variables.
    Column {
        /// The column's name.
        name: String,
        /// The scope.
        scope: String,
    },
    /// Values computed from inputs without a column.
    Inputs,
    /// Values computed from the model's results, such as class names.
    Outputs,
}

/// One fact of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The subject of the fact.
    pub subject: Subject,
    /// The inputs that the op reads, in its order: the kind and the name of each, such as
    /// (`feature`, `age`).
    pub inputs: Vec<(String, String)>,
    /// The name of the fact: `vocabulary`, `boundaries`, `mean`.
    pub aspect: String,
    /// Its value.
    pub value: Meaning,
    /// The variables whose rows or columns depend on the fact: the first variables combined with
    /// values computed from it. For results, the variables that the results were last computed
    /// with.
    pub variables: Vec<String>,
}

/// A value in which a column states what it made of its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnValue {
    /// The column's name.
    pub column: String,
    /// The scope of its nodes and variables.
    pub scope: String,
    /// The inputs that it reads: the kind and the name of each, such as (`feature`, `age`).
    pub inputs: Vec<(String, String)>,
    /// What is fixed about the value: a vocabulary, the number of hash buckets, boundaries.
    pub facts: Vec<(String, Meaning)>,
    /// The ids or the numbers of buckets.
    pub value: Value,
}

/// A stated fact: its node, and its value unless the node's op states it.
#[derive(Clone, Debug)]
pub(crate) struct Stated {
    pub(crate) node: NodeId,
    pub(crate) column: Option<Arc<(String, String)>>,
    pub(crate) said: Option<(String, Meaning)>,
}

/// The stored facts and inputs for [`Body::facts`](crate::Body::facts).
#[derive(Clone, Debug, Default)]
pub(crate) struct Meanings {
    pub(crate) stated: Vec<Stated>,
    /// Placeholders with their kinds and names.
    pub(crate) inputs: Vec<(NodeId, String, String)>,
}

/// A guard: while it lives, facts belong to a column.
#[must_use = "facts belong to the column until this is dropped: let _about = graph.about(..)"]
pub struct About {
    graph: Graph,
}

impl Drop for About {
    fn drop(&mut self) {
        self.graph.subjects().borrow_mut().pop();
    }
}

impl Graph {
    /// Assigns the facts of nodes built while the guard lives to a column, whose variables are in
    /// the open scope.
    pub fn about(&self, column: &str) -> About {
        self.subjects().borrow_mut().push(Arc::new((column.to_string(), self.scope_path())));
        About { graph: self.clone() }
    }

    /// Sets the kind of a placeholder, `feature` or `label`, and its name.
    pub fn name_input(&self, placeholder: &Tensor, what: &str, name: &str) {
        if !placeholder.is_poisoned() {
            let node = placeholder.value().node;
            self.meanings_mut(|meanings| meanings.inputs.push((node, what.to_string(), name.to_string())));
        }
    }

    /// Records a host op and the column it belongs to.
    pub(crate) fn note_host(&self, value: Value) {
        self.state(value, None);
    }

    fn state(&self, value: Value, said: Option<(String, Meaning)>) {
        let column = self.subjects().borrow().last().cloned();
        self.meanings_mut(|meanings| meanings.stated.push(Stated { node: value.node, column, said }));
    }

    /// Runs a function. Returns its result and the sorted constants of the nodes it adds: the
    /// parameters of a normaliser.
    pub fn constants_of<T>(&self, function: impl FnOnce() -> T) -> (T, Vec<f64>) {
        let before = self.body().nodes.len();
        let made = function();
        let body = self.body();
        let constants = body.nodes[before..].iter().filter_map(|node| match &node.op {
            Op::Constant(Constant(array)) => array.to_f64_vec().ok(),
            _ => None,
        });
        let mut numbers: Vec<f64> = constants.flatten().collect();
        numbers.sort_by(f64::total_cmp);
        (made, numbers)
    }
}

impl Tensor {
    /// States a fact about this tensor that weights trained on it depend on, such as the mean of a
    /// normalisation learnt from data. Loading the weights into a graph that states another value
    /// reports the difference.
    ///
    /// ```
    /// use estimand_graph::Graph;
    /// use estimand_tensor::{DType, Dim};
    ///
    /// let (mean, deviation) = (38.6, 13.6);
    /// let g = Graph::new();
    /// let age = (g.placeholder("age", DType::F32, [Dim::BATCH]) - mean) / deviation;
    /// age.means("mean", mean);
    /// age.means("deviation", deviation);
    /// assert_eq!(g.body().facts().len(), 2);
    /// ```
    pub fn means(&self, aspect: &str, value: impl Into<Meaning>) {
        if !self.is_poisoned() {
            self.graph().state(self.value(), Some((aspect.to_string(), value.into())));
        }
    }
}

macro_rules! meanings {
    ($($from:ty => |$v:ident| $made:expr),* $(,)?) => {$(
        impl From<$from> for Meaning {
            fn from($v: $from) -> Meaning {
                $made
            }
        }
    )*};
}

meanings! {
    i64 => |v| Meaning::Int(v),
    usize => |v| Meaning::Int(i64::try_from(v).unwrap_or(i64::MAX)),
    f64 => |v| Meaning::Float(v),
    f32 => |v| Meaning::Float(v.into()),
    &str => |v| Meaning::Text(v.to_string()),
    String => |v| Meaning::Text(v),
    Listing => |v| Meaning::List(v),
}

/// A short text for messages.
impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meaning::Int(v) => v.fmt(f),
            Meaning::Float(v) => v.fmt(f),
            Meaning::Text(v) => write!(f, "`{v}`"),
            Meaning::List(v) => v.fmt(f),
        }
    }
}
