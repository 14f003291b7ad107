//! Merges: several tensors become one.
//!
//! A [`Layer`](crate::Layer) has one input; a merge has a list of inputs and no weights. Merges
//! connect layers where branches of a model meet. This file defines the `Merge` trait; the other
//! files hold the merges.

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

/// A merge: combines the tensors of several branches into one.
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
    /// The kind of merge in Keras's words, such as `concatenate`.
    fn kind(&self) -> &'static str;

    /// Computes the result. There is at least one input, and all inputs belong to one graph.
    #[track_caller]
    fn call(&self, inputs: &[&Tensor]) -> Tensor;

    /// Merges the inputs into one tensor.
    #[track_caller]
    fn apply(&self, inputs: &[&Tensor]) -> Tensor {
        let Some(first) = inputs.first() else {
            // Without inputs there is no graph to record the error in. A new empty graph reports it
            // when it is used.
            return Graph::new().error(Error::config(format!("{} got no tensors; expected at least one", self.kind())));
        };
        if let Some(poisoned) = inputs.iter().find(|t| t.is_poisoned()) {
            return (*poisoned).clone();
        }
        if let Some(other) = inputs.iter().find(|t| !t.graph().same(first.graph())) {
            let text = format!(
                "{} got {} and {}, which belong to different graphs",
                self.kind(),
                first.describe(),
                other.describe()
            );
            return first.graph().error(Error::config(text));
        }
        let graph = first.graph();
        let _scope = graph.reopen(&name::made(graph, self.kind()));
        self.call(inputs)
    }
}

/// Every merge of this crate, in its simplest form.
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

/// Describes the inputs for error messages.
fn described(inputs: &[&Tensor]) -> String {
    inputs.iter().map(|t| t.describe()).collect::<Vec<_>>().join(", ")
}

/// The two inputs of a binary merge, or the tensor that stands for the error.
#[track_caller]
fn pair<'a>(kind: &str, inputs: &[&'a Tensor]) -> Result<(&'a Tensor, &'a Tensor), Tensor> {
    match inputs {
        [a, b] => Ok((a, b)),
        _ => {
            let text = format!("{kind} got {} tensors: {}; expected two", inputs.len(), described(inputs));
            Err(inputs[0].graph().error(Error::config(text)))
        }
    }
}
