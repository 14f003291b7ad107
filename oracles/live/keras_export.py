"""Models that `model.export` of Keras 3 wrote must predict the same numbers here.

usage: keras_export.py EXAMPLE_PROGRAM EMPTY_FOLDER

Each model has one output for each of many layers or operations, with seeded weights. Random requests go through TensorFlow and through
the example program (its header describes the files). Floats are equal within RELATIVE and ABSOLUTE of saved_model.py, ids exactly.
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L
from keras import ops

from saved_model import difference, ours

BATCHES = [2, 1, 5]
WORDS = ["a", "b", "zz", "hello world", "the Hello, größe", ""]
ACTIVATIONS = """relu relu6 elu selu softplus softsign tanh sigmoid exponential leaky_relu gelu silu hard_sigmoid hard_silu mish log_softmax
softmax celu glu hard_tanh hard_shrink soft_shrink tanh_shrink squareplus log_sigmoid sparse_plus sparse_sigmoid sparsemax"""
UNARY = """abs acosh asinh arctanh ceil cos cosh erf exp expm1 floor isfinite isinf isnan log log10 log1p log2 negative reciprocal round rsqrt
sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc nan_to_num relu softplus silu gelu elu selu any all max min mean var std prod
sum median argmax argmin argsort sort cumsum cumprod logsumexp flip diff ravel tril triu count_nonzero"""
ALONG = "argmax argmin argsort sort cumsum mean max logsumexp var std median any prod softmax log_softmax"
BINARY = """add subtract multiply divide floor_divide mod power maximum minimum logaddexp hypot equal greater less_equal logical_and logical_or
logical_xor divide_no_nan"""
MORE = {
    "split": lambda x: ops.split(x, 3, axis=1)[2],
    "clip": lambda x: ops.clip(x, -1, 1),
    "einsum": lambda x: ops.einsum("bij,bkj->bik", x, x),
    "matmul": lambda x: ops.matmul(x, ops.transpose(x, (0, 2, 1))),
    "take": lambda x: ops.take(x, [0, 2], axis=1),
    "linspace": lambda x: x + ops.linspace(0.0, 1.0, 4),
    "one_hot": lambda x: ops.one_hot(ops.argmax(x, -1), 4),
    "pad": lambda x: ops.pad(x, [[0, 0], [1, 2], [0, 1]]),
    "reflect": lambda x: ops.pad(x, [[0, 0], [1, 2], [0, 1]], mode="reflect"),
    "repeat": lambda x: ops.repeat(x, 2, axis=1),
    "roll": lambda x: ops.roll(x, 2, axis=1),
    "stack": lambda x: ops.stack([x, x], 1),
    "along": lambda x: ops.take_along_axis(x, ops.argsort(x, -1), -1),
    "top_k": lambda x: ops.top_k(x, 2)[0],
    "where": lambda x: ops.where(x > 0, x, -x),
    "slices": lambda x: x[:, ::2, 1:],
    "backwards": lambda x: x[:, ::-1],
    "norm": lambda x: ops.norm(x, axis=-1),
    "segments": lambda x: ops.segment_sum(x[:, 0], ops.argmax(x[:, 0], -1), 4),
    "quantile": lambda x: ops.quantile(x, 0.5, axis=-1),
    "resize": lambda x: ops.image.resize(ops.expand_dims(x, -1), (3, 8)),
    "nearest": lambda x: ops.image.resize(ops.expand_dims(x, -1), (3, 8), interpolation="nearest"),
    "attention": lambda x: ops.dot_product_attention(*[ops.reshape(x, (-1, 6, 2, 2))] * 3),
    "steps": lambda x: ops.fori_loop(0, 3, lambda i, y: y + 1.0, x),
}


def steps():
    x = keras.Input((6, 4))
    made = {
        "lstm": L.LSTM(3), "lstm_steps": L.LSTM(3, return_sequences=True), "gru": L.GRU(3), "gru_before": L.GRU(3, reset_after=False),
        "simple": L.SimpleRNN(3), "both": L.Bidirectional(L.LSTM(3)), "both_steps": L.Bidirectional(L.GRU(3, return_sequences=True)),
        "back": L.LSTM(3, go_backwards=True), "unrolled": L.LSTM(3, unroll=True), "each": L.TimeDistributed(L.Dense(2)),
        "conv": L.Conv1D(3, 2), "causal": L.Conv1D(3, 2, padding="causal", dilation_rate=2), "strides": L.Conv1D(3, 3, strides=2, padding="same"),
        "transposed": L.Conv1DTranspose(3, 3, strides=2), "depthwise": L.DepthwiseConv1D(3), "separable": L.SeparableConv1D(3, 2),
        "max": L.MaxPooling1D(), "average": L.AveragePooling1D(3, strides=2, padding="same"), "layer": L.LayerNormalization(),
        "batch": L.BatchNormalization(), "group": L.GroupNormalization(2), "unit": L.UnitNormalization(), "rms": L.RMSNormalization(),
        "prelu": L.PReLU(), "relu": L.ReLU(max_value=2.0, negative_slope=0.1, threshold=0.5), "softmax": L.Softmax(axis=1),
        "dropout": L.Dropout(0.5), "rescaling": L.Rescaling(0.5, 1.0), "normal": L.Normalization(mean=1.0, variance=4.0),
        "einsum": L.EinsumDense("abc,cd->abd", output_shape=(None, 5), bias_axes="d"), "masked": keras.Sequential([L.Masking(0.0), L.LSTM(3)]),
    } | {f"activation_{name}": L.Dense(4, activation=name) for name in ACTIVATIONS.split()}
    outputs = {name: layer(x) for name, layer in made.items()}
    outputs["heads"] = L.MultiHeadAttention(2, 3)(x, x)
    outputs["causal_heads"] = L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)
    outputs["groups_of_heads"] = L.GroupQueryAttention(3, 4, 2)(x, x)
    for name, layer in {"attention": L.Attention(), "additive": L.AdditiveAttention(), "dot": L.Dot(axes=2), "add": L.Add(), "join": L.Concatenate()}.items():
        outputs[name] = layer([x, outputs["rescaling"]])
    return keras.Model(x, outputs)


def images():
    x = keras.Input((9, 8, 3))
    made = {
        "conv": L.Conv2D(4, 3), "strides": L.Conv2D(4, 3, strides=2, padding="same"), "dilated": L.Conv2D(4, 3, dilation_rate=2, padding="same"),
        "groups": L.Conv2D(6, 3, groups=3), "transposed": L.Conv2DTranspose(4, 3, strides=2, padding="same"),
        "transposed_more": L.Conv2DTranspose(4, 3, strides=2, output_padding=1), "depthwise": L.DepthwiseConv2D(3, depth_multiplier=2),
        "separable": L.SeparableConv2D(4, 3), "max": L.MaxPooling2D(), "average": L.AveragePooling2D(3, strides=2, padding="same"),
        "mean": L.GlobalAveragePooling2D(keepdims=True), "crop": L.Cropping2D(((1, 2), (0, 1))), "pad": L.ZeroPadding2D((1, 2)),
        "nearest": L.UpSampling2D(2), "bilinear": L.UpSampling2D(2, interpolation="bilinear"), "batch": L.BatchNormalization(),
        "resized": L.Resizing(5, 7), "resized_nearest": L.Resizing(5, 7, interpolation="nearest"), "center": L.CenterCrop(5, 5),
    }
    return keras.Model(x, {name: layer(x) for name, layer in made.items()} | {"half": L.Conv2D(4, 1, groups=2)(L.Conv2D(6, 1)(x))})


def ids():
    x = keras.Input((5,), dtype="int32")
    masked = L.Embedding(10, 4, mask_zero=True)(x)
    return keras.Model(x, {
        "plain": L.Embedding(10, 3)(x),
        "last": L.LSTM(4)(masked),
        "both": L.GlobalAveragePooling1D()(L.Bidirectional(L.GRU(4, return_sequences=True))(masked)),
        "heads": L.GlobalAveragePooling1D()(L.MultiHeadAttention(2, 3)(masked, masked)),
        "counts": L.CategoryEncoding(10, output_mode="count")(x),
        "set": L.CategoryEncoding(10, output_mode="multi_hot")(x),
        "lookup": L.IntegerLookup(vocabulary=[3, 5, 7])(x),
    })


def words():
    x = keras.Input((1,), dtype="string")
    terms = ["hello", "world", "the", "a"]
    return keras.Model(x, {
        "lookup": L.StringLookup(vocabulary=terms)(x),
        "set": L.StringLookup(vocabulary=terms, output_mode="multi_hot")(x),
        "hash": L.Hashing(7)(x),
        "text": L.TextVectorization(vocabulary=terms, output_sequence_length=5)(x),
        "bag": L.TextVectorization(vocabulary=terms, output_mode="multi_hot")(x),
    })


def operations():
    x = keras.Input((6, 4))
    outputs = {f"unary_{name}": getattr(ops, name)(x) for name in UNARY.split() if hasattr(ops, name)}
    outputs |= {f"along_{name}": getattr(ops, name)(x, axis=-1) for name in ALONG.split()}
    outputs |= {f"binary_{name}": getattr(ops, name)(x, ops.flip(x, -1)) for name in BINARY.split()}
    return keras.Model(x, outputs | {f"more_{name}": function(x) for name, function in MORE.items()})


def request(signature, n, random):
    """Random inputs of a signature, `n` rows."""
    inputs = {}
    for name, spec in signature.structured_input_signature[1].items():
        shape = [n, *spec.shape[1:]]
        if spec.dtype == tf.string:
            inputs[name] = np.array(random.choice(WORDS, shape), dtype=object)
        elif spec.dtype.is_integer:
            inputs[name] = random.integers(0, 9, shape).astype(spec.dtype.as_numpy_dtype)
        else:
            inputs[name] = random.standard_normal(shape).astype(np.float32)
    return inputs


def main():
    program, folder = sys.argv[1:3]
    failures, n_outputs, random = [], 0, np.random.default_rng(5)
    for make in [steps, images, ids, words, operations]:
        keras.utils.set_random_seed(5)
        path = os.path.join(folder, make.__name__)
        make().export(path, verbose=False)
        signature = tf.saved_model.load(path).signatures["serving_default"]
        requests = [request(signature, n, random) for n in BATCHES]
        n_outputs += len(signature.structured_outputs)
        for inputs, mine in zip(requests, ours(program, path, "serving_default", requests, folder), strict=True):
            theirs = signature(**{name: tf.constant(value) for name, value in inputs.items()})
            theirs = {name: value.numpy() for name, value in theirs.items()}
            found = difference(mine, theirs)
            if found:
                failures.append(f"{make.__name__}: {found}")
    for failure in failures:
        print("  " + failure)
    if failures or n_outputs < 200:
        sys.exit(f"{len(failures)} failures, {n_outputs} outputs")
    print(f"  Keras {keras.__version__}: {n_outputs} outputs of exported models are the same here")


main()
