"""Writes oracles/fixtures/masks.jsonl: what Keras's layers do with the masks of their inputs, and which masks they return.

Run as `python oracles/gen/masks.py` in an environment with tensorflow 2.15. Of each layer: the JSON of `keras.layers.serialize`, whether it
is called in training, its inputs `in:<number>`, their masks `mask:<number>`, its weights `weight:<number>`, `out`, and the mask `out_mask`
of the result, if it has one.
"""

import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import Fixture

SEED = 29
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L = tf.keras.layers


def floats(*sizes):
    return np.round(random.standard_normal(sizes), 3).astype(np.float32)


def layer(made, inputs, masks, training=False, is_merge=False):
    document = json.dumps(L.serialize(made))
    tensors = [tf.constant(x) for x in inputs]
    for x, mask in zip(tensors, masks):
        if mask is not None:
            x._keras_mask = tf.constant(mask)
    given = [tensors] if is_merge else tensors
    made(*given)
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), np.float32) for w in made.get_weights()])
    fixture.case(type(made).__name__, json=document, training=training)
    for i, w in enumerate(made.get_weights()):
        fixture.put(f"weight:{i}", np.asarray(w))
    out = made(*given, training=True) if training else made(*given)
    for i, (x, mask) in enumerate(zip(inputs, masks)):
        fixture.put(f"in:{i}", x)
        if mask is not None:
            fixture.put(f"mask:{i}", mask)
    fixture.put("out", out)
    mask = getattr(out, "_keras_mask", None)
    if mask is not None:
        fixture.put("out_mask", mask)


mask, other = np.array([[1, 1, 0, 0], [1, 0, 1, 1]], bool), np.array([[1, 0, 1, 0], [1, 1, 1, 0]], bool)
steps = lambda: floats(2, 4, 3)
single = [
    L.Activation("relu"), L.AlphaDropout(0.5), L.AveragePooling1D(2), L.BatchNormalization(), L.Conv1D(3, 2), L.Conv1D(3, 2, padding="same"),
    L.Cropping1D(1), L.Dense(3), L.Dropout(0.5), L.ELU(), L.Flatten(), L.GaussianDropout(0.5), L.GaussianNoise(0.5),
    L.GlobalAveragePooling1D(), L.GlobalAveragePooling1D(keepdims=True), L.GlobalMaxPooling1D(), L.LayerNormalization(), L.LeakyReLU(),
    L.MaxPooling1D(2), L.PReLU(), L.Permute((2, 1)), L.ReLU(), L.Reshape((12,)), L.SpatialDropout1D(0.5), L.ThresholdedReLU(0.5),
    L.TimeDistributed(L.Dense(2)), L.UpSampling1D(2), L.ZeroPadding1D(1), L.Rescaling(0.5),
    L.Normalization(mean=0.0, variance=4.0), L.Masking(0.0),
]
single += [make(2, return_sequences=sequences, go_backwards=backwards) for make in [L.SimpleRNN, L.LSTM, L.GRU]
           for sequences in [False, True] for backwards in [False, True]]
single += [L.Bidirectional(L.LSTM(2, return_sequences=sequences)) for sequences in [False, True]]
for made in single:
    layer(made, [steps()], [mask])
layer(L.BatchNormalization(), [steps()], [mask], training=True)
layer(L.Softmax(), [floats(2, 4)], [mask])
ids = np.array([[1, 3, 0, 0], [0, 2, 4, 1]], np.int64)
layer(L.Embedding(5, 2, mask_zero=True), [ids], [None])
layer(L.Embedding(5, 2), [ids], [None])
layer(L.Masking(-1.0), [np.where(mask[:, :, None], 0.5, -1.0).repeat(3, axis=2).astype(np.float32)], [None])
for masks in [(mask, other), (mask, None), (None, other), (None, None)]:
    for make in [L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum, L.Concatenate, lambda: L.Dot(2)]:
        layer(make(), [steps(), steps()], masks, is_merge=True)
    layer(L.MultiHeadAttention(2, 3), [steps(), steps()], masks)
    layer(L.Attention(), [steps(), steps()], masks, is_merge=True)
    layer(L.AdditiveAttention(), [steps(), steps()], masks, is_merge=True)
layer(L.Concatenate(axis=1), [steps(), steps()], (mask, other), is_merge=True)
layer(L.MultiHeadAttention(2, 3), [steps(), floats(2, 4, 5), floats(2, 4, 2)], (None, mask, other))
layer(L.Attention(use_scale=True, score_mode="concat"), [steps(), steps(), steps()], (mask, other, None), is_merge=True)
layer(L.UnitNormalization(), [steps()], [mask])
# A mask of the parts of steps, and one of the steps of rows.
parts = np.array([[[1, 1, 0], [0, 0, 0], [1, 0, 1]], [[1, 0, 0], [1, 1, 1], [0, 0, 0]]], bool)
for inner in [L.LSTM(2), L.LSTM(2, return_sequences=True), L.Bidirectional(L.GRU(2)), L.Dense(2), L.TimeDistributed(L.Dense(2))]:
    layer(L.TimeDistributed(inner), [floats(2, 3, 3, 2)], [parts])
layer(L.TimeDistributed(L.BatchNormalization()), [steps()], [mask], training=True)
layer(L.TimeDistributed(L.LSTM(2)), [floats(2, 4, 3, 2)], [None])
layer(L.TimeDistributed(L.Masking(0.0)), [np.where(parts[..., None], floats(2, 3, 3, 2), 0)], [None])
layer(L.BatchNormalization(axis=1), [steps()], [mask], training=True)

fixture.write("masks", tf, np)
