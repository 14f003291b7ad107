//! Labels and weights brought beside what they belong to, for losses and metrics: by broadcasting,
//! but never by chance.

use estimand_graph::Tensor;
use estimand_tensor::{Dim, Error, Shape};

/// The labels in the predictions' dtype: an error unless both have the same sizes. Broadcasting
/// `[n]` against `[n, 1]` would quietly compare everything with everything.
#[track_caller]
pub(crate) fn matched(name: &str, labels: &Tensor, predictions: &Tensor) -> Tensor {
    if let Some(error) = [labels, predictions].into_iter().find(|t| t.is_poisoned()) {
        return error.clone();
    }
    let apart = |(a, b): (&Dim, &Dim)| a.known().is_some() && b.known().is_some() && a != b;
    let (l, p) = (labels.shape().dims(), predictions.shape().dims());
    if l.len() != p.len() || l.iter().zip(p).any(apart) {
        let text = format!("{name} of labels {} and predictions {}", labels.describe(), predictions.describe());
        let error = Error::shape(text + "; expected the same shape");
        return labels.graph().error(error.help("use labels.expand_dims(-1) for predictions with a last axis of 1"));
    }
    labels.cast(predictions.dtype())
}

/// Labels that are class numbers, one for each row (the last axis) of the predictions; a last axis
/// of 1 is dropped. `otherwise` says who takes labels that are rows themselves.
#[track_caller]
pub(crate) fn one_for_each_row(labels: &Tensor, predictions: &Tensor, otherwise: &str) -> Tensor {
    if let Some(error) = [labels, predictions].into_iter().find(|t| t.is_poisoned()) {
        return error.clone();
    }
    let labels = match labels.shape().dims() {
        [.., Dim::Known(1)] if labels.rank() == predictions.rank() => labels.squeeze(&[-1]),
        _ => labels.clone(),
    };
    if labels.rank() + 1 != predictions.rank() {
        let text = format!("labels {} for predictions {}", labels.describe(), predictions.describe());
        let error = Error::shape(text + "; expected one class number for each row");
        return labels.graph().error(error.help(format!("labels that are rows of probabilities go to {otherwise}")));
    }
    labels
}

/// Weights in a shape that stands beside some values, which the error calls by their plural: a
/// number, as many leading axes as there are, or the same number of axes.
#[track_caller]
pub(crate) fn beside(weights: &Tensor, values: &Tensor, plural: &str) -> Tensor {
    let (w, l) = (weights.shape().dims(), values.shape().dims());
    let fits = |(w, l): (&Dim, &Dim)| w == l || *w == Dim::Known(1) || w.known().is_none() || l.known().is_none();
    // [n, 1] weighs the rows of [n], as Keras has it.
    let extra = w.len() > l.len() && w[l.len()..].iter().all(|d| *d == Dim::Known(1));
    if !(weights.is_poisoned() || (w.len() <= l.len() || extra) && w.iter().zip(l).all(fits)) {
        let error = Error::shape(format!("weights {} for {plural} {}", weights.describe(), values.shape()));
        return values
            .graph()
            .error(error.help(format!("expected a number, one weight for each example, or the {plural}' shape")));
    }
    let mut shape: Shape = w.iter().take(l.len()).copied().collect();
    if !w.is_empty() {
        shape.0.resize(l.len(), Dim::Known(1));
    }
    weights.cast(values.dtype()).reshape_as(shape)
}
