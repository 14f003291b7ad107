//! Examples as solvers of linear models see them: a loss that they know, labels and weights.

use estimand_graph::Tensor;

/// A loss of one logit and one label that solvers of linear models know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExampleLoss {
    /// The sigmoid cross entropy.
    Logistic,
    /// The squared error.
    Squared,
    /// `exp(logit) - label * logit`, up to a term of the label alone.
    Poisson,
}

/// Labels and weights of the examples of a batch.
#[derive(Clone, Debug)]
pub struct Examples {
    /// The labels as numbers, f32 `[batch, 1]`.
    pub labels: Tensor,
    /// The weights of examples and classes, f32 `[batch, 1]`. Without them, all weights are 1.
    pub weights: Option<Tensor>,
}
