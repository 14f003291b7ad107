//! Precision-recall curves, with one point for each of evenly spaced thresholds.
//!
//! Each batch gives a histogram, which can be summed over batches: the weights of true and of false
//! labels by the highest threshold that their prediction reaches.

use estimand_graph::Tensor;
use estimand_tensor::{Array, DType, Dim, Error, Result};
use estimand_wire::event::Value;
use estimand_wire::plugin::PrCurvePluginData;
use estimand_wire::{Message, TensorProto};

/// Checks that a curve can be made of these tensors.
pub(super) fn check(labels: &Tensor, predictions: &Tensor, n: usize, weights: Option<&Tensor>) -> Result<()> {
    check_thresholds(n)?;
    let tensors = || [labels, predictions].into_iter().chain(weights);
    if let Some(text) = tensors().find(|tensor| tensor.dtype() == DType::Str) {
        return Err(Error::dtype(
            Some(DType::F32),
            DType::Str,
            format!("the tensor is {}; expected numbers", text.describe()),
        ));
    }
    let dims = predictions.shape().dims();
    let stretches = |weights: &Tensor| {
        let own = weights.shape().dims();
        own.is_empty() || own.len() == dims.len() && own.iter().zip(dims).all(|(a, b)| a == b || *a == Dim::Known(1))
    };
    if labels.shape().dims() != dims || !weights.is_none_or(stretches) {
        let given: Vec<String> = tensors().map(Tensor::describe).collect();
        let message = format!("the labels, predictions and weights are {}; expected one shape", given.join(", "));
        return Err(Error::shape(message).help("reshape them, for instance with .reshape([-1])"));
    }
    Ok(())
}

pub(super) fn check_thresholds(n: usize) -> Result<()> {
    match n {
        0 | 1 => Err(Error::config(format!("the curve has {n} thresholds; expected at least 2"))),
        _ => Ok(()),
    }
}

/// `[2, n]`: the weights of true and of false labels for each of `n` thresholds.
#[track_caller]
pub(super) fn buckets(labels: &Tensor, predictions: &Tensor, n: usize, weights: Option<&Tensor>) -> Tensor {
    let predictions = predictions.cast(DType::F32);
    let truth = match labels.dtype() {
        DType::Bool => labels.cast(DType::F32),
        _ => labels.not_equal(0.0).cast(DType::F32),
    };
    let (mut positive, mut negative) = (truth.clone(), 1.0 - &truth);
    if let Some(weights) = weights {
        let weights = weights.cast(DType::F32);
        (positive, negative) = (positive * &weights, negative * &weights);
    }
    let reached = (predictions.clip(0.0, 1.0) * (n - 1) as f64).floor();
    // NaN reaches no threshold: ids below 0 are not counted.
    let reached = predictions.equal(&predictions).select(reached, -1.0).cast(DType::I32).reshape([-1]);
    let [positive, negative] = [positive, negative].map(|weights| weights.reshape([-1]).segment_sum(&reached, n));
    Tensor::stack(&[&positive, &negative], 0)
}

/// Same as `buckets`, for arrays.
pub(super) fn buckets_of(labels: &Array, predictions: &Array, n: usize, weights: Option<&Array>) -> Result<Vec<f64>> {
    let dims: Vec<_> = [Some(labels), weights].into_iter().flatten().map(Array::dims).collect();
    if dims.iter().any(|&dims| dims != predictions.dims()) {
        let shapes =
            format!("the predictions have the shape {:?}, the labels and weights {dims:?}", predictions.dims());
        return Err(Error::shape(format!("{shapes}; expected one shape")));
    }
    let (labels, predictions) = (labels.to_f64_vec()?, predictions.to_f64_vec()?);
    let weights = weights.map(Array::to_f64_vec).transpose()?.unwrap_or_else(|| vec![1.0; labels.len()]);
    let mut buckets = vec![0.0; 2 * n];
    for ((label, prediction), weight) in labels.into_iter().zip(predictions).zip(weights) {
        if prediction.is_nan() {
            continue;
        }
        // The product is computed in f32, as in a graph.
        let reached = (prediction.clamp(0.0, 1.0) as f32 * (n - 1) as f32).floor() as usize;
        buckets[if label != 0.0 { reached } else { n + reached }] += weight;
    }
    Ok(buckets)
}

/// Makes the curve: true positives, false positives, true negatives, false negatives, precision and
/// recall at each threshold.
pub(super) fn curve(tag: &str, buckets: &[f64]) -> Value {
    const LEAST: f64 = 1e-7;
    let (positive, negative) = buckets.split_at(buckets.len() / 2);
    let at_least = |weights: &[f64]| {
        let mut sums = weights.to_vec();
        (0..sums.len().saturating_sub(1)).rev().for_each(|i| sums[i] += sums[i + 1]);
        sums
    };
    let (tp, fp) = (at_least(positive), at_least(negative));
    let rest = |found: &[f64]| -> Vec<f64> { found.iter().map(|n| found[0] - n).collect() };
    let share = |others: &[f64]| -> Vec<f64> { tp.iter().zip(others).map(|(tp, n)| tp / LEAST.max(tp + n)).collect() };
    let (tn, fn_) = (rest(&fp), rest(&tp));
    let (precision, recall) = (share(&fp), share(&fn_));
    let n = positive.len();
    let rows: Vec<u8> =
        [tp, fp, tn, fn_, precision, recall].iter().flatten().flat_map(|&value| (value as f32).to_le_bytes()).collect();
    let tensor = TensorProto {
        dtype: estimand_wire::DataType::Float.into(),
        tensor_shape: Some(estimand_wire::TensorShapeProto::of([6, n as i64])),
        tensor_content: rows,
        ..TensorProto::default()
    };
    let content = PrCurvePluginData { version: 0, num_thresholds: n as u32 };
    Value::tensor(tag, tensor).shown_by("pr_curves", content.encode_to_vec())
}
