//! Merges: several tensors become one.
//!
//! A [`Layer`](crate::Layer) has one input; a merge has a list of them, and no weights. It sits
//! between layers where a model's branches meet. This file is the seam; the others hold the merges.

mod concat;
mod dot;
mod elementwise;

use std::fmt;

use estimand_graph::{Graph, Tensor};
use estimand_tensor::Error;

use crate::layer::name;
pub use concat::Concat;
pub use dot::Dot;
pub use elementwise::{Add, Average, Maximum, Minimum, Multiply, Subtract};

/// One place of a model where branches meet.
///
/// ```
/// use estimand_graph::Graph;
/// use estimand_nn::{Add, Concat, Dense, Layer, Merge};
/// use estimand_tensor::{DType, Dim};
/// let g = Graph::new();
/// let x = g.placeholder("x", DType::F32, [Dim::BATCH, 4.into()]);
/// let deep = Dense::new(4).relu().apply(&x);
/// assert_eq!(Add::new().apply(&[&x, &deep]).shape().to_string(), "[batch, 4]");
/// assert_eq!(Concat::new().apply(&[&x, &deep]).shape().to_string(), "[batch, 8]");
/// ```
pub trait Merge: fmt::Debug {
    /// What sort of merge it is, in Keras's words: `concatenate`.
    fn kind(&self) -> &'static str;

    /// Computes the result. There is at least one input, and all are of one graph.
    #[track_caller]
    fn call(&self, inputs: &[&Tensor]) -> Tensor;

    /// The inputs as one.
    #[track_caller]
    fn apply(&self, inputs: &[&Tensor]) -> Tensor {
        let Some(first) = inputs.first() else {
            // There is no graph to keep the error in: an empty graph of its own reports it when it
            // is used.
            return Graph::new().error(Error::config(format!("{} of no tensors; expected at least one", self.kind())));
        };
        if let Some(poisoned) = inputs.iter().find(|t| t.is_poisoned()) {
            return (*poisoned).clone();
        }
        if let Some(other) = inputs.iter().find(|t| !t.graph().same(first.graph())) {
            let text = format!("{} of {} and {} of another graph", self.kind(), first.describe(), other.describe());
            return first.graph().error(Error::config(text));
        }
        let graph = first.graph();
        let _scope = graph.reopen(&name::made(graph, self.kind()));
        self.call(inputs)
    }
}

/// Every merge of this crate, in its plainest form.
pub const ALL_MERGES: [fn() -> Box<dyn Merge>; 8] = [
    || Box::new(Add::new()),
    || Box::new(Average::new()),
    || Box::new(Concat::new()),
    || Box::new(Dot::new(-1)),
    || Box::new(Maximum::new()),
    || Box::new(Minimum::new()),
    || Box::new(Multiply::new()),
    || Box::new(Subtract::new()),
];

/// The inputs in words, for errors.
fn described(inputs: &[&Tensor]) -> String {
    inputs.iter().map(|t| t.describe()).collect::<Vec<_>>().join(", ")
}

/// The two inputs of a merge that has two, or the tensor that stands for the error.
#[track_caller]
fn pair<'a>(kind: &str, inputs: &[&'a Tensor]) -> Result<(&'a Tensor, &'a Tensor), Tensor> {
    match inputs {
        [a, b] => Ok((a, b)),
        _ => {
            let text = format!("{kind} of {} tensors: {}; expected two", inputs.len(), described(inputs));
            Err(inputs[0].graph().error(Error::config(text)))
        }
    }
}
