//! Model functions over sequences, for the exports to SavedModels and to ONNX. Their columns
//! differ: ONNX has no hashes.

use estimand::nn::column::sequence_input_layer;
use estimand::nn::{Bidirectional, Gru, LayerNorm, MultiHeadAttention, SimpleRnn};
use estimand::prelude::*;

pub fn adam() -> Optimizer {
    Optimizer::new(Adam::default(), 0.01)
}

pub fn lstm(cx: &ModelFnContext<'_>, columns: Columns) -> Result<EstimatorSpec> {
    let (x, lengths) = sequence_input_layer(cx.features(), columns);
    let last = Lstm::new(6).dropout(0.2).recurrent_dropout(0.2).apply(&LayerInputs::of(&x).lengths(&lengths));
    BinaryClassHead::new().spec(cx, &Dense::new(1).apply(&last), adam())
}

/// A loop after a loop, both ways through time, and a loop without a mask.
pub fn recurrent(cx: &ModelFnContext<'_>, columns: Columns) -> Result<EstimatorSpec> {
    let (x, lengths) = sequence_input_layer(cx.features(), columns);
    let all = Lstm::new(5).return_sequences(true).apply(&LayerInputs::of(&x).lengths(&lengths));
    let both = Bidirectional::new(Gru::new(3)).apply(&LayerInputs::of(&all).lengths(&lengths));
    let plain = SimpleRnn::new(3).apply(&x);
    let joined = Tensor::concat(&[&both, &plain], 1);
    RegressionHead::new().spec(cx, &Dense::new(1).apply(&joined), adam())
}

pub fn attention(cx: &ModelFnContext<'_>, columns: Columns) -> Result<EstimatorSpec> {
    let (x, lengths) = sequence_input_layer(cx.features(), columns);
    let is_step = cx.graph().range(x.shape().dims()[1], DType::I64).less(lengths.expand_dims(1));
    let seen = MultiHeadAttention::new(2, 3).apply(&LayerInputs::of(&x).attention_mask(&is_step.expand_dims(1)));
    let seen = LayerNorm::new().apply(&(seen + &x));
    let counted = (seen * is_step.cast(DType::F32).expand_dims(2)).sum_axes(1);
    let pooled = counted / lengths.cast(DType::F32).maximum(1.0).expand_dims(1);
    MultiClassHead::new(3).spec(cx, &Dense::new(3).apply(&pooled), adam())
}
