//! Losses: they measure the error of predictions as one number to minimize.
//!
//! A loss is a plain value. Its `elements` method computes the loss of each element or example.
//! Weights and [`Reduction`] work the same for all losses and follow `tf.compat.v1.losses`. This
//! file defines the `Loss` trait, `reduction` the arithmetic of weights and reductions, `json`
//! reads losses; the other files hold one loss each.

mod absolute_error;
mod categorical_hinge;
mod cosine_similarity;
mod hinge;
mod huber;
mod json;
mod kl_divergence;
mod log_cosh;
mod log_loss;
mod log_poisson;
mod mean_absolute_percentage_error;
mod mean_squared_error;
mod mean_squared_logarithmic_error;
mod poisson;
mod reduction;
mod sigmoid_cross_entropy;
mod softmax_cross_entropy;
mod sparse_softmax_cross_entropy;

use std::fmt;

use estimand_graph::Tensor;
use estimand_tensor::{Error, Result, Shape};

use crate::alignment::matched;
use crate::config::Json;
use json::{MODULE, OWN_MODULE};

pub use absolute_error::AbsoluteError;
pub use categorical_hinge::CategoricalHinge;
pub use cosine_similarity::CosineSimilarity;
pub use hinge::{Hinge, SquaredHinge};
pub use huber::Huber;
pub(crate) use json::reader;
pub use json::{from_json, read};
pub use kl_divergence::KlDivergence;
pub use log_cosh::LogCosh;
pub use log_loss::LogLoss;
pub use log_poisson::LogPoisson;
pub use mean_absolute_percentage_error::MeanAbsolutePercentageError;
pub use mean_squared_error::MeanSquaredError;
pub use mean_squared_logarithmic_error::MeanSquaredLogarithmicError;
pub use poisson::Poisson;
pub use reduction::Reduction;
pub use sigmoid_cross_entropy::SigmoidCrossEntropy;
pub use softmax_cross_entropy::SoftmaxCrossEntropy;
pub use sparse_softmax_cross_entropy::SparseSoftmaxCrossEntropy;

/// A loss: measures the error of predictions.
///
/// ```
/// use estimand_engine::Eval;
/// use estimand_graph::Graph;
/// use estimand_nn::{AbsoluteError, Loss, Reduction};
/// let g = Graph::new();
/// let (labels, predictions) = (g.constant([1.0f32, 2.0, 3.0]), g.constant([2.0f32, 2.0, 6.0]));
/// let loss = AbsoluteError::new();
/// // (1 + 0 + 3) / 3
/// assert_eq!(loss.apply(&labels, &predictions).eval()?.item::<f32>()?, 4.0 / 3.0);
/// // Two weights are not 0: (1 * 1 + 2 * 3) / 2
/// let weights = g.constant([1.0f32, 0.0, 2.0]);
/// assert_eq!(loss.apply_weighted(&labels, &predictions, &weights).eval()?.item::<f32>()?, 3.5);
/// assert_eq!(loss.reduction(Reduction::Sum).apply(&labels, &predictions).eval()?.item::<f32>()?, 4.0);
/// # Ok::<(), estimand_tensor::Error>(())
/// ```
pub trait Loss: fmt::Debug + Send + Sync {
    /// TensorFlow's name of the loss.
    fn name(&self) -> &'static str;

    /// The way the losses of elements are reduced to one number.
    fn loss_reduction(&self) -> Reduction;

    /// The smallest possible loss of an element, for valid inputs. By default 0.
    fn min_value(&self) -> f64 {
        0.0
    }

    /// The loss of each element, or of each example if the loss is defined on whole rows.
    #[track_caller]
    fn elements(&self, labels: &Tensor, predictions: &Tensor) -> Tensor;

    /// The loss as JSON, with the keys of Keras; [`from_json`] reads it back. A loss of one's own
    /// implements [`Described`](crate::config::Described) and calls
    /// [`config::write`](crate::config::write). By default it cannot be written.
    fn to_json(&self) -> Result<Json> {
        let text = format!("the loss `{}` cannot be written as JSON", self.name());
        Err(Error::unsupported(text).help("implement `Described` for it, and `to_json` with `config::write`"))
    }

    /// The loss without weights.
    #[track_caller]
    fn apply(&self, labels: &Tensor, predictions: &Tensor) -> Tensor {
        let _scope = predictions.graph().scope(self.name());
        self.loss_reduction().of(&self.elements(labels, predictions), None)
    }

    /// The loss with weights: a single number, one for each example, or any shape that broadcasts
    /// to the elements.
    #[track_caller]
    fn apply_weighted(&self, labels: &Tensor, predictions: &Tensor, weights: &Tensor) -> Tensor {
        let _scope = predictions.graph().scope(self.name());
        self.loss_reduction().of(&self.elements(labels, predictions), Some(weights))
    }
}

/// Every loss of this crate, in its simplest form and from probabilities.
pub const ALL_LOSSES: [fn() -> Box<dyn Loss>; 20] = [
    || Box::new(AbsoluteError::new()),
    || Box::new(CategoricalHinge::new()),
    || Box::new(CosineSimilarity::new()),
    || Box::new(Hinge::new()),
    || Box::new(Huber::new()),
    || Box::new(KlDivergence::new()),
    || Box::new(LogCosh::new()),
    || Box::new(LogLoss::new()),
    || Box::new(LogPoisson::new()),
    || Box::new(MeanAbsolutePercentageError::new()),
    || Box::new(MeanSquaredError::new()),
    || Box::new(MeanSquaredLogarithmicError::new()),
    || Box::new(Poisson::new()),
    || Box::new(SigmoidCrossEntropy::new()),
    || Box::new(SigmoidCrossEntropy::new().from_probabilities()),
    || Box::new(SoftmaxCrossEntropy::new()),
    || Box::new(SoftmaxCrossEntropy::new().from_probabilities()),
    || Box::new(SparseSoftmaxCrossEntropy::new()),
    || Box::new(SparseSoftmaxCrossEntropy::new().from_probabilities()),
    || Box::new(SquaredHinge::new()),
];

/// Probabilities are kept at least this far from 0 and 1: Keras's `epsilon`.
const EPSILON: f64 = 1e-7;

/// Labels moved by `smoothing` towards `middle`: `labels * (1 - smoothing) + smoothing * middle`.
#[track_caller]
fn smoothed(labels: Tensor, smoothing: f64, middle: f64) -> Tensor {
    match smoothing {
        0.0 => labels,
        s if (0.0..=1.0).contains(&s) => labels * (1.0 - s) + s * middle,
        s => labels.graph().error(Error::config(format!("the label smoothing is {s}; expected 0 to 1"))),
    }
}

/// One loss for each row, without the rows' last axis.
#[track_caller]
fn rows_of(predictions: &Tensor, losses: &Tensor) -> Tensor {
    match predictions.shape().dims() {
        [rows @ .., _] => losses.reshape_as(rows.iter().copied().collect::<Shape>()),
        [] => losses.clone(),
    }
}

/// The setter of a loss with a field `reduction`.
macro_rules! reduction_setter {
    ($loss:ty) => {
        impl $loss {
            /// The way the losses of elements are reduced to one number. By default
            /// `SumByNonzeroWeights`: without weights, their mean.
            pub fn reduction(mut self, reduction: crate::Reduction) -> Self {
                self.reduction = reduction;
                self
            }
        }
    };
}
use reduction_setter;

/// The description of a loss whose only option is its reduction.
macro_rules! described_by_reduction {
    ($loss:ident, $class:literal, $of:ident) => {
        impl crate::config::Described for $loss {
            const CLASS: &'static str = $class;

            fn template() -> $loss {
                $loss { reduction: crate::Reduction::SumOverBatchSize }
            }

            fn fields(&self, fields: &mut crate::config::Fields<'_>) -> $loss {
                $loss { reduction: self.reduction.$of(fields) }
            }
        }
    };
}
use described_by_reduction;
