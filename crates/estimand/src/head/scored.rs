//! The losses of a batch's examples, with the labels and weights they were computed from.

use estimand_graph::Tensor;
use estimand_nn::Reduction;
use estimand_nn::metric::{self, Metric};
use estimand_tensor::{Dim, Error, Result, Shape};

use super::batch::{LabelledBatch, fits, leading};
use super::settings::{LossContext, Settings};

/// Labels, losses without weights, and weights, all with the logits' number of axes.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) labels: Tensor,
    pub(super) losses: Tensor,
    weights: Option<Tensor>,
    class_weights: Option<Tensor>,
    reduction: Reduction,
}

/// The parts in which the losses of heads differ.
pub(super) struct LossKind {
    /// The size of the last axis of the losses.
    pub(super) width: usize,
    /// Whether each logit may have its own weight.
    pub(super) weights_by_logit: bool,
    /// The default loss of the head.
    pub(super) default: fn(&LossContext<'_>) -> Tensor,
}

impl Settings {
    /// Computes the losses of labels that are already numbers.
    pub(super) fn score(
        &self,
        batch: &LabelledBatch,
        logits: &Tensor,
        labels: Tensor,
        kind: &LossKind,
    ) -> Result<Scored> {
        let cx = LossContext { labels: &labels, logits, batch };
        let losses = match &self.loss_fn {
            Some(loss_fn) => loss_fn.call(&cx),
            None => (kind.default)(&cx),
        };
        // An earlier error has a better message than an error about its shape.
        logits.graph().check()?;
        let expected: Shape = leading(logits)?.iter().copied().chain([Dim::Known(kind.width)]).collect();
        if !fits(&losses, &expected) {
            let error = Error::shape(format!("the loss function returned {}; expected {expected}", losses.describe()));
            return Err(error.help("return the loss of each example: no mean or sum over the batch, a last axis of 1"));
        }
        let weights = batch.weights(self.weight_column.as_deref(), logits, kind.weights_by_logit)?;
        Ok(Scored { labels, losses, weights, class_weights: None, reduction: self.reduction })
    }
}

impl Scored {
    /// Adds weights that apply to the loss only, in the shape of the losses.
    pub(super) fn class_weights(mut self, weights: Option<Tensor>) -> Scored {
        self.class_weights = weights;
        self
    }

    /// The loss of the batch.
    pub(super) fn loss(&self) -> Tensor {
        let product = match (&self.weights, &self.class_weights) {
            (Some(own), Some(of_class)) => Some(own * of_class),
            (own, of_class) => own.clone().or(of_class.clone()),
        };
        self.reduction.of(&self.losses, product.as_ref())
    }

    /// Returns the weights of examples; with `rows`, rows that have a 0 there get no weight.
    pub(super) fn weights(&self, rows: Option<&Tensor>) -> Option<Tensor> {
        let Some(rows) = rows else { return self.weights.clone() };
        // One number per row, with axes of 1 appended up to the rank of the losses.
        let mut shape = rows.shape().clone();
        shape.0.resize(self.losses.rank(), Dim::Known(1));
        let rows = rows.reshape_as(shape);
        Some(match &self.weights {
            Some(weights) => weights * rows,
            None => {
                let mut shape = self.losses.shape().clone();
                if let Some(last) = shape.0.last_mut() {
                    *last = Dim::Known(1);
                }
                rows.broadcast_to(shape)
            }
        })
    }

    /// `average_loss`: the weighted mean over the evaluation.
    pub(super) fn average_loss(&self, weights: Option<&Tensor>) -> Metric {
        metric::mean(&self.losses, weights)
    }
}
