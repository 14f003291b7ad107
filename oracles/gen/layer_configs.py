"""Writes oracles/fixtures/layer_configs_keras2.jsonl, layer_configs_keras3.jsonl or layer_configs_keras3_15.jsonl: layers as Keras writes
them down, with what they compute.

Run as `python oracles/gen/layer_configs.py` in an environment with tensorflow 2.15 (whose Keras is 2.15), and in ones with keras 3.6 and
keras 3.15 and jax or tensorflow, as `KERAS_BACKEND=jax python oracles/gen/layer_configs.py`. Of each layer: the JSON of `keras.layers.serialize`, its inputs
`in:<number>`, its weights `weight:<number>` in Keras's order, and its result `out` outside of training.
"""

import json

import keras
import numpy as np

from fixture import Fixture, generation

IS_3 = keras.__version__.startswith("3.")
SEED = 17
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L, R, I, C = keras.layers, keras.regularizers, keras.initializers, keras.constraints


def floats(*sizes):
    return random.uniform(-1, 1, sizes).astype(np.float32)


def layer(made, *inputs):
    """One case."""
    document = json.dumps(L.serialize(made))
    # A merge takes a list, attention takes query, value and key one by one.
    given = [list(inputs)] if isinstance(made, MERGES) else inputs
    # A cell takes one step; its states begin at 0.
    is_cell = type(made).__name__.endswith(("Cell", "Cells"))
    states = dict(states=made.get_initial_state(batch_size=len(inputs[0]), **({} if IS_3 else dict(dtype="float32")))) if is_cell else {}
    made(*given, **states)
    # Other weights than the initial ones, of which many are 0.
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), np.float32) for w in made.get_weights()])
    out = made(*given, **states, training=False)
    out = np.asarray(out[0] if is_cell else out)
    fixture.case(type(made).__name__, json=document)
    for i, x in enumerate(inputs):
        fixture.put(f"in:{i}", x)
    for i, w in enumerate(made.get_weights()):
        fixture.put(f"weight:{i}", np.asarray(w))
    fixture.put("out", out)


MERGES = (L.Add, L.Subtract, L.Multiply, L.Average, L.Maximum, L.Minimum, L.Concatenate, L.Dot, L.Attention, L.AdditiveAttention)
rows, steps, images = (3, 4), (2, 6, 4), (2, 5, 4, 4)
options = dict(kernel_initializer=I.HeNormal(seed=3), kernel_regularizer=R.L2(0.1), kernel_constraint=C.MaxNorm(2, axis=0),
               bias_initializer=I.Constant(0.5), bias_regularizer=R.L1(0.2), bias_constraint=C.NonNeg(), activity_regularizer=R.L1L2(0.1, 0.2))

layer(L.Dense(5), floats(*rows))
layer(L.Dense(3, activation="tanh", name="named", trainable=False, **options), floats(*rows))
layer(L.Dense(3, activation=L.LeakyReLU(0.1), use_bias=False), floats(*steps))
for activation in ["relu", "relu6", "elu", "selu", "softplus", "softsign", "sigmoid", "softmax", "gelu", "swish", "exponential", "leaky_relu"]:
    if activation == "relu6" and not IS_3:
        continue
    layer(L.Activation(activation), floats(*rows))
layer(L.Conv1D(4, 3, strides=2, padding="same", groups=2, activation="relu", **options), floats(*steps))
layer(L.Conv1D(4, 2, padding="causal", dilation_rate=2), floats(*steps))
layer(L.Conv2D(4, (2, 3), strides=(2, 1), padding="same", groups=2, **options), floats(*images))
layer(L.Conv2D(3, 2, dilation_rate=2, use_bias=False), floats(*images))
layer(L.Conv2DTranspose(3, (2, 3), strides=2, padding="same", **options), floats(*images))
layer(L.DepthwiseConv2D(3, depth_multiplier=2, activation="elu", depthwise_initializer=I.Orthogonal(2.0)), floats(*images))
layer(L.SeparableConv2D(3, 2, depth_multiplier=2, pointwise_regularizer=R.L2(0.1)), floats(*images))
layer(L.BatchNormalization(axis=1, momentum=0.5, epsilon=0.01, beta_initializer=I.RandomNormal(0.5, 0.2)), floats(*images))
layer(L.BatchNormalization(center=False, scale=False), floats(*rows))
layer(L.LayerNormalization(axis=[1, 2], epsilon=0.01), floats(*steps))
layer(L.LayerNormalization(center=False), floats(*rows))
layer(L.Embedding(7, 3, embeddings_initializer=I.RandomUniform(-1, 1), embeddings_constraint=C.UnitNorm(axis=1)),
      random.integers(0, 7, (2, 5)).astype(np.int64))
layer(L.PReLU(shared_axes=[1], alpha_initializer=I.Constant(0.3)), floats(*steps))
layer(L.LeakyReLU(0.25), floats(*rows))
layer(L.ELU(0.5), floats(*rows))
layer(L.ReLU(max_value=0.5, negative_slope=0.1, threshold=0.2), floats(*rows))
layer(L.Softmax(axis=1), floats(*steps))
layer(L.MaxPooling1D(3, strides=2, padding="same"), floats(*steps))
layer(L.AveragePooling1D(2), floats(*steps))
layer(L.MaxPooling2D((2, 3)), floats(*images))
layer(L.AveragePooling2D(2, strides=1, padding="same"), floats(*images))
layer(L.GlobalMaxPooling1D(), floats(*steps))
layer(L.GlobalAveragePooling1D(keepdims=True), floats(*steps))
layer(L.GlobalMaxPooling2D(keepdims=True), floats(*images))
layer(L.GlobalAveragePooling2D(), floats(*images))
layer(L.ZeroPadding1D((1, 2)), floats(*steps))
layer(L.ZeroPadding2D(((1, 2), (0, 1))), floats(*images))
layer(L.Cropping1D(1), floats(*steps))
layer(L.Cropping2D(((1, 2), (0, 1))), floats(*images))
layer(L.UpSampling1D(2), floats(*steps))
layer(L.UpSampling2D((2, 3), interpolation="bilinear"), floats(*images))
layer(L.Flatten(), floats(*images))
layer(L.Reshape((2, -1)), floats(*rows))
layer(L.Permute((2, 1)), floats(*steps))
layer(L.RepeatVector(3), floats(*rows))
layer(L.Masking(-1.0), floats(*steps))
layer(L.Dropout(0.3, noise_shape=[None, 1, 4], seed=5), floats(*steps))
layer(L.SpatialDropout1D(0.3), floats(*steps))
layer(L.SpatialDropout2D(0.3), floats(*images))
layer(L.GaussianNoise(0.3), floats(*rows))
layer(L.GaussianDropout(0.3), floats(*rows))
layer(L.AlphaDropout(0.3), floats(*rows))
layer(L.SimpleRNN(3, return_sequences=True, go_backwards=True, recurrent_regularizer=R.L2(0.1)), floats(*steps))
layer(L.LSTM(3, activation="relu", recurrent_activation="tanh", unit_forget_bias=False), floats(*steps))
layer(L.LSTM(3, dropout=0.1, recurrent_dropout=0.2, use_bias=False, recurrent_constraint=C.MinMaxNorm(0.1, 2, 0.5, axis=[0, 1])), floats(*steps))
layer(L.GRU(3, return_sequences=True), floats(*steps))
layer(L.GRU(3, reset_after=False, kernel_initializer=I.VarianceScaling(2.0, "fan_in", "uniform")), floats(*steps))
layer(L.Bidirectional(L.LSTM(3, return_sequences=True), merge_mode="ave"), floats(*steps))
layer(L.Bidirectional(L.GRU(2)), floats(*steps))
layer(L.TimeDistributed(L.Dense(3, activation="relu")), floats(*steps))
layer(L.MultiHeadAttention(2, 3, value_dim=2, output_shape=5, dropout=0.1), floats(2, 4, 3), floats(2, 5, 3))
layer(L.MultiHeadAttention(2, 3, use_bias=False), floats(2, 4, 3), floats(2, 5, 3), floats(2, 5, 6))
layer(L.Add(), floats(*rows), floats(*rows), floats(*rows))
layer(L.Subtract(), floats(*rows), floats(*rows))
layer(L.Multiply(), floats(*rows), floats(*rows))
layer(L.Average(), floats(*rows), floats(*rows))
layer(L.Maximum(), floats(*rows), floats(*rows))
layer(L.Minimum(), floats(*rows), floats(*rows))
layer(L.Concatenate(axis=1), floats(2, 3, 4), floats(2, 2, 4))
layer(L.Dot((2, 1), normalize=True), floats(2, 3, 4), floats(2, 4, 5))
layer(L.Dot(1), floats(*rows), floats(*rows))
if not IS_3:
    layer(L.ThresholdedReLU(0.5), floats(*rows))
layer(L.Attention(), floats(2, 3, 4), floats(2, 5, 4))
layer(L.Attention(use_scale=True, score_mode="concat", dropout=0.1), floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 4))
layer(L.AdditiveAttention(), floats(2, 3, 4), floats(2, 5, 4))
layer(L.AdditiveAttention(use_scale=False), floats(2, 3, 4), floats(2, 5, 6), floats(2, 5, 4))
layer(L.GroupNormalization(2, epsilon=0.01), floats(*images))
layer(L.GroupNormalization(3, axis=1, center=False), floats(*steps))
layer(L.GroupNormalization(-1, scale=False), floats(*rows))
volumes = (2, 4, 5, 3, 2)
layer(L.Conv3D(3, (2, 3, 1), strides=(2, 1, 2), padding="same", **options), floats(*volumes))
layer(L.Conv3D(3, 2, dilation_rate=(1, 2, 1), use_bias=False), floats(*volumes))
layer(L.MaxPooling3D(2, strides=1, padding="same"), floats(*volumes))
layer(L.AveragePooling3D((2, 3, 1), padding="same"), floats(*volumes))
layer(L.GlobalMaxPooling3D(), floats(*volumes))
layer(L.GlobalAveragePooling3D(keepdims=True), floats(*volumes))
layer(L.Cropping3D(((1, 2), (0, 1), (1, 1))), floats(*volumes))
layer(L.ZeroPadding3D((1, 0, 2)), floats(*volumes))
layer(L.UpSampling3D((2, 1, 3)), floats(*volumes))
layer(L.SpatialDropout3D(0.3), floats(*volumes))
layer(L.UnitNormalization(), floats(*rows))
layer(L.UnitNormalization(axis=[1, 2]), floats(*steps))
layer(L.Conv3DTranspose(3, (2, 3, 1), strides=(2, 1, 2), padding="same", **options), floats(*volumes))
layer(L.RNN(L.LSTMCell(3, dropout=0.1), return_sequences=True, go_backwards=True), floats(*steps))
layer(L.RNN([L.GRUCell(3, reset_after=False), L.SimpleRNNCell(2, activation="relu")]), floats(*steps))
layer(L.Bidirectional(L.RNN(L.LSTMCell(2, unit_forget_bias=False))), floats(*steps))
layer(L.LSTMCell(3, recurrent_regularizer=R.L2(0.1)), floats(*rows))
layer(L.GRUCell(3, use_bias=False), floats(*rows))
layer(L.SimpleRNNCell(3), floats(*rows))
layer(L.StackedRNNCells([L.LSTMCell(3), L.LSTMCell(2)]), floats(*rows))
layer(L.ConvLSTM2D(2, (2, 3), strides=2, padding="same", return_sequences=True, recurrent_activation="sigmoid"), floats(2, 3, 5, 4, 2))
layer(L.ConvLSTM2D(2, 2, dilation_rate=(1, 2), use_bias=False), floats(2, 3, 5, 4, 2))
layer(L.ConvLSTM1D(2, 3, strides=2, padding="same", return_sequences=True, recurrent_activation="sigmoid"), floats(2, 3, 6, 2))
layer(L.ConvLSTM3D(2, (2, 1, 3), padding="same", go_backwards=True), floats(2, 2, 3, 2, 3, 2))
# Keras 2 and Keras 3 have other functions of this name.
gates = dict(recurrent_activation="hard_sigmoid", return_sequences=True)
layer(L.Activation("hard_sigmoid"), floats(*rows) * 4)
layer(L.TimeDistributed(L.Dense(3, activation="hard_sigmoid")), floats(*steps))
layer(L.LSTM(3, **gates), floats(*steps))
layer(L.Bidirectional(L.GRU(2, **gates)), floats(*steps))
layer(L.ConvLSTM1D(2, 3, **gates), floats(2, 3, 6, 2))
layer(L.Dense(4, kernel_initializer=I.VarianceScaling(1 / 3, "fan_out", "uniform")), floats(*rows))
layer(L.Dense(4, kernel_initializer=I.VarianceScaling(2.0, "fan_avg", "untruncated_normal")), floats(*rows))
layer(L.Conv1DTranspose(3, 4, strides=3, padding="same", **options), floats(*steps))
layer(L.Conv1DTranspose(2, 3, dilation_rate=2, use_bias=False), floats(*steps))
layer(L.DepthwiseConv1D(3, strides=2, depth_multiplier=2, activation="elu", depthwise_initializer=I.Orthogonal(2.0)), floats(*steps))
layer(L.SeparableConv1D(3, 2, padding="same", dilation_rate=2, depth_multiplier=2, pointwise_regularizer=R.L2(0.1)), floats(*steps))
if not IS_3:
    layer(L.SeparableConv1D(3, 2, padding="causal"), floats(*steps))
LATER = ["celu", "hard_shrink", "hard_silu", "hard_tanh", "log_sigmoid", "log_softmax", "mish", "soft_shrink", "sparse_plus", "sparse_sigmoid", "squareplus", "tanh_shrink"]
for activation in LATER:
    if hasattr(keras.activations, activation) or activation == "log_softmax":
        layer(L.Activation(activation), floats(*rows) * 4)
layer(L.LSTM(3, activation="mish"), floats(*steps))

fixture.write(f"layer_configs_{generation(keras)}", keras, program="layer_configs")
