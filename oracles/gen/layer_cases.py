"""How cases of layers and losses are made: what `layers.py`, `keras_layers.py`, `losses.py` and `constraints.py` share. Not a program.

Of a layer: `in`, `weight:<name>` before the call, `out`, `coef` (as large as `out`), the gradients of sum(coef * out + losses)
`grad:in` and `grad:<name>`, `after:<name>` for what a call in training leaves in a variable, `loss` for what regularizers add.
Of a loss: `labels`, `in` (predictions), `weights` if there are some, `out`, `coef`, and `grad:in`, the gradient of sum(coef * out).
The test knows the names of cases.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import Fixture

random = np.random.default_rng(5)
fixture = Fixture(seed=5)
put = fixture.put
keras = tf.keras
L = keras.layers


def floats(*shape):
    return np.round(random.standard_normal(shape), 3).astype(np.float32)


def positive(*shape):
    return np.round(random.uniform(0.2, 2.0, shape), 3).astype(np.float32)


def layer(name, layer, x, training=False):
    """A layer called once, with weights drawn anew."""
    layer.build(x.shape)
    short = lambda w: w.name.split("/")[-1].split(":")[0]
    for w in layer.weights:
        w.assign(positive(*w.shape) if "variance" in w.name else floats(*w.shape))
    fixture.case(name)
    put("in", x)
    for w in layer.weights:
        put(f"weight:{short(w)}", w)
    before = {short(w): w.numpy() for w in layer.weights}
    x = tf.constant(x)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        for w in layer.weights:
            tape.watch(w)
        y = layer(x, training=training) if training else layer(x)
        coef = floats(*y.shape)
        total = tf.reduce_sum(coef * y)
        losses = tf.add_n(layer.losses) if layer.losses else None
        if losses is not None:
            total += losses
    put("out", y)
    put("coef", np.asarray(coef))
    if losses is not None:
        put("loss", losses)
    if x.dtype.is_floating:
        put("grad:in", tape.gradient(total, x))
    for w in layer.weights:
        gradient = tape.gradient(total, w)
        if gradient is not None and not short(w).startswith("moving"):
            put(f"grad:{short(w)}", tf.convert_to_tensor(gradient))
        if training and short(w).startswith("moving"):
            put(f"after:{short(w)}", w)
        elif not training:
            assert np.array_equal(before[short(w)], w.numpy()), f"{name} changes {w.name}"


def loss(name, reduction, special, labels, x, function, weights=None):
    """A loss of labels, predictions and weights, with the gradient of the predictions."""
    fixture.case("loss", loss=name, reduction=reduction, special=special, labels=labels)
    put("in", x)
    if weights is not None:
        put("weights", np.asarray(weights))
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(tf.constant(labels), x, 1.0 if weights is None else tf.constant(weights))
        coef = floats(*y.shape)
        total = tf.reduce_sum(coef * y)
    put("out", y)
    put("coef", np.asarray(coef))
    put("grad:in", tape.gradient(total, x))


def write(program):
    fixture.write(program, tf, np)
