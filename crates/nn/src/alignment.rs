//! Shape alignment of labels and weights for losses and metrics. It allows only the broadcasts that
//! are meant, and reports an error for the others.

use estimand_graph::Tensor;
use estimand_tensor::{Dim, Error, Shape};

/// Casts the labels to the predictions' dtype. Reports an error unless both have the same sizes:
/// broadcasting `[n]` against `[n, 1]` would silently compare every label with every prediction.
#[track_caller]
pub(crate) fn matched(name: &str, labels: &Tensor, predictions: &Tensor) -> Tensor {
    if let Some(error) = [labels, predictions].into_iter().find(|t| t.is_poisoned()) {
        return error.clone();
    }
    let apart = |(a, b): (&Dim, &Dim)| a.known().is_some() && b.known().is_some() && a != b;
    let (l, p) = (labels.shape().dims(), predictions.shape().dims());
    if l.len() != p.len() || l.iter().zip(p).any(apart) {
        let text =
            format!("{name} got the labels {} and the predictions {}", labels.describe(), predictions.describe());
        let error = Error::shape(text + "; expected the same shape");
        return labels.graph().error(error.help("use labels.expand_dims(-1) for predictions with a last axis of 1"));
    }
    labels.cast(predictions.dtype())
}

/// Checks that labels are class numbers, one for each row (the last axis) of the predictions. A
/// last axis of size 1 is dropped. `otherwise` names the item that takes rows of probabilities as
/// labels; the error message suggests it.
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
        let text = format!("the labels {} do not fit the predictions {}", labels.describe(), predictions.describe());
        let error = Error::shape(text + "; expected one class number for each row");
        return labels.graph().error(error.help(format!("pass labels that are rows of probabilities to {otherwise}")));
    }
    labels
}

/// Reshapes weights so that they broadcast against `values`. Weights may be a single number, have
/// fewer axes than the values (they then match the leading ones), or have the same number of axes.
/// `plural` names the values in the error message.
#[track_caller]
pub(crate) fn beside(weights: &Tensor, values: &Tensor, plural: &str) -> Tensor {
    let (w, l) = (weights.shape().dims(), values.shape().dims());
    let fits = |(w, l): (&Dim, &Dim)| w == l || *w == Dim::Known(1) || w.known().is_none() || l.known().is_none();
    // Weights [n, 1] apply to the rows of values [n], as in Keras.
    let extra = w.len() > l.len() && w[l.len()..].iter().all(|d| *d == Dim::Known(1));
    if !(weights.is_poisoned() || (w.len() <= l.len() || extra) && w.iter().zip(l).all(fits)) {
        let error =
            Error::shape(format!("the weights {} do not fit the {plural} {}", weights.describe(), values.shape()));
        return values.graph().error(
            error.help(format!(
                "give one number, one weight for each example, or weights with the shape of the {plural}"
            )),
        );
    }
    let mut shape: Shape = w.iter().take(l.len()).copied().collect();
    if !w.is_empty() {
        shape.0.resize(l.len(), Dim::Known(1));
    }
    weights.cast(values.dtype()).reshape_as(shape)
}
