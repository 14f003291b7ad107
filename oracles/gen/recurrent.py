"""Writes oracles/fixtures/recurrent.jsonl: what Keras's recurrent layers, their cells and wrappers, and attention make of small arrays, with gradients.

Run as `python oracles/gen/recurrent.py` in an environment with tensorflow 2.15. A case is a kind
of layer with its options; the test builds the same. Its arrays: `in`, `mask` (1 where a step counts), `state:<i>` (first states), `value`, `key`, `weight:<name>`, `out`, `last:<i>` (last
states), `coef` and `coef:<i>` (as large as `out` and `last:<i>`), and the gradients of sum(coef * out) + sum(coef:<i> * last:<i>):
`grad:in`, `grad:state:<i>`, `grad:value`, `grad:key`, `grad:<name>`.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import Fixture

random = np.random.default_rng(11)
fixture = Fixture(seed=11)
put = fixture.put
L = tf.keras.layers
ACTIVATIONS = """linear relu relu6 elu selu softplus softsign sigmoid hard_sigmoid tanh softmax gelu swish leaky_relu
exponential""".split()

# Exponentials of exponentials have no digits left to compare.
TAME = [name for name in ACTIVATIONS if name != "exponential"]


def floats(*shape):
    return np.round(0.8 * random.standard_normal(shape), 2).astype(np.float32)


def flip():
    return bool(random.integers(2))


def function(name):
    return tf.nn.leaky_relu if name == "leaky_relu" else getattr(tf.keras.activations, name, name) if name != "relu6" else tf.nn.relu6


def short(w):
    """A variable's name inside its layer."""
    return w.name.split("/", 1)[1].split(":")[0]


def record(kind, options, layer, arrays, call):
    """A layer called once with weights drawn anew; `call` gets the arrays as tensors and returns (output, other outputs)."""
    tensors = {key: tf.constant(a) for key, a in arrays.items()}
    call(tensors)
    for w in layer.weights:
        w.assign(floats(*w.shape))
    fixture.case(kind, **options)
    for key, array in arrays.items():
        put(key, array)
    for w in layer.weights:
        put(f"weight:{short(w)}", w)
    watched = {key: t for key, t in tensors.items() if t.dtype.is_floating}
    with tf.GradientTape(persistent=True) as tape:
        for t in watched.values():
            tape.watch(t)
        out, last = call(tensors)
        coef = floats(*out.shape)
        coefs = [floats(*s.shape) for s in last]
        total = tf.reduce_sum(coef * out) + sum(tf.reduce_sum(c * s) for c, s in zip(coefs, last))
    put("out", out)
    put("coef", coef)
    for i, (c, s) in enumerate(zip(coefs, last)):
        put(f"last:{i}", s)
        put(f"coef:{i}", c)
    sources = list(watched.items()) + [(short(w), w) for w in layer.weights]
    for key, source in sources:
        gradient = tape.gradient(total, source)
        put(f"grad:{key}", tf.zeros_like(source) if gradient is None else gradient)


def recurrent(kind, wrap=None, **given):
    cls = {"simple_rnn": L.SimpleRNN, "lstm": L.LSTM, "gru": L.GRU}[kind]
    batch, time, inputs, units = random.integers(1, 4), random.integers(1, 6), random.integers(1, 4), random.integers(1, 4)
    keras = dict(units=int(units), return_state=True)
    words = dict(units=units)
    for key, value in given.items():
        words[key] = value
        keras[key] = function(value) if "activation" in key else value
    has_mask = words.pop("mask", flip())
    has_state = words.pop("initial_state", random.integers(4) == 0)
    keras.pop("mask", None), keras.pop("initial_state", None)
    layer = cls(**keras, name=kind)
    if wrap:
        layer = L.Bidirectional(layer, merge_mode=wrap)
        words["merge_mode"] = wrap
    arrays = {"in": floats(batch, time, inputs)}
    if has_mask:
        arrays["mask"] = (random.random((batch, time)) < 0.6).astype(np.int32)
    n_states = (2 if kind == "lstm" else 1) * (2 if wrap else 1)
    for i in range(n_states if has_state else 0):
        arrays[f"state:{i}"] = floats(batch, units)

    def call(t):
        mask = tf.cast(t["mask"], tf.bool) if has_mask else None
        state = [t[f"state:{i}"] for i in range(n_states)] if has_state else None
        out, *last = layer(t["in"], mask=mask, initial_state=state)
        return out, last

    options = {"layer": kind, **words} if wrap else words
    record("bidirectional" if wrap else kind, options, layer, arrays, call)


for kind in ["simple_rnn", "lstm", "gru"]:
    # Every option on its own, then at random.
    extra = dict(reset_after=False) if kind == "gru" else {}
    recurrent(kind, mask=False, initial_state=False)
    recurrent(kind, mask=True, initial_state=True, return_sequences=True)
    recurrent(kind, mask=True, initial_state=False, return_sequences=True, zero_output_for_mask=True)
    recurrent(kind, mask=True, initial_state=True, zero_output_for_mask=True)
    recurrent(kind, mask=True, initial_state=True, go_backwards=True)
    recurrent(kind, use_bias=False, return_sequences=True, go_backwards=True)
    for _ in range(5):
        options_of = dict(return_sequences=flip(), go_backwards=flip(), zero_output_for_mask=flip(), use_bias=flip())
        if kind == "gru":
            options_of["reset_after"] = flip()
        if flip():
            options_of["activation"] = str(random.choice(TAME))
        if flip() and kind != "simple_rnn":
            options_of["recurrent_activation"] = str(random.choice(TAME))
        recurrent(kind, **options_of)
    for merge in ["concat", "sum", "mul", "ave"]:
        recurrent(kind, wrap=merge, return_sequences=flip(), **extra)
for reset_after in [False, True]:
    recurrent("gru", reset_after=reset_after, mask=True, return_sequences=True)
for activation in ACTIVATIONS:
    recurrent("simple_rnn", activation=activation, return_sequences=True)
for activation in ["softmax", "gelu", "swish", "leaky_relu", "hard_sigmoid"]:
    recurrent("lstm", activation=activation, recurrent_activation="hard_sigmoid", mask=True)
    recurrent("gru", recurrent_activation=activation, mask=True, return_sequences=True)


def attention(**given):
    batch, steps, places = random.integers(1, 4), random.integers(1, 5), random.integers(1, 5)
    words = dict(num_heads=int(random.integers(1, 4)), key_dim=int(random.integers(1, 4)), **given)
    keras = dict(words)
    value, key, mask, causal = [keras.pop(k, False) for k in ["value", "key", "mask", "use_causal_mask"]]
    words = {k: v for k, v in words.items() if k not in ["value", "key", "mask"]}
    if "output_dim" in keras:
        keras["output_shape"] = keras.pop("output_dim")
    layer = L.MultiHeadAttention(**keras, name="multi_head_attention")
    arrays = {"in": floats(batch, steps, random.integers(1, 4))}
    if value:
        arrays["value"] = floats(batch, places, random.integers(1, 4))
    if key:
        arrays["key"] = floats(batch, places, random.integers(1, 4))
    if mask:
        shape = (batch, steps, places if value else steps)
        arrays["mask"] = (random.random(shape) < 0.6).astype(np.int32)

    def call(t):
        out, scores = layer(t["in"], t.get("value", t["in"]), key=t.get("key"), attention_mask=t.get("mask"),
                            use_causal_mask=causal, return_attention_scores=True)
        return out, [scores]

    record("multi_head_attention", words, layer, arrays, call)


attention()
attention(use_causal_mask=True)
attention(value=True, value_dim=2, output_dim=5)
attention(value=True, key=True, mask=True)
attention(mask=True, use_causal_mask=True, use_bias=False)
attention(value=True, use_causal_mask=True, value_dim=3)
attention(value=True, key=True, output_dim=1, mask=True, use_bias=False)


def distributed(name, layer, x):
    layer = L.TimeDistributed(layer, name="time_distributed")
    record("time_distributed", {"layer": name}, layer, {"in": x}, lambda t: (layer(t["in"]), []))


distributed("dense", L.Dense(3, activation="relu"), floats(2, 3, 4))
distributed("conv2d", L.Conv2D(2, 2), floats(2, 2, 3, 3, 2))
distributed("layer_norm", L.LayerNormalization(), floats(2, 3, 4))
steps = floats(3, 4, 2)
steps[0, 1:] = -1
steps[1, 0] = -1
masking = L.Masking(-1.0)
record("masking", {"mask_value": -1.0}, masking, {"in": steps},
       lambda t: (masking(t["in"]), [tf.cast(masking.compute_mask(t["in"]), tf.float32)]))



def cells_of(names, units, **given):
    """Cells by the names of their classes; the second of a class gets a number, as in a model of its own."""
    classes = {"simple_rnn_cell": L.SimpleRNNCell, "lstm_cell": L.LSTMCell, "gru_cell": L.GRUCell}
    number = lambda i: f"_{names[:i].count(names[i])}" if names[i] in names[:i] else ""
    return [classes[name](units + i, name=name + number(i), **given) for i, name in enumerate(names)]


def rnn(names, stacked=False, mask=False, initial_state=False, cell={}, **given):
    """The layer that runs any cell. `units` is that of the first cell; each next one has one more."""
    batch, time, inputs, units = 3, 4, 2, 2
    cells = cells_of(names, units, **cell)
    made = L.StackedRNNCells(cells, name="stacked_rnn_cells") if stacked else cells[0]
    layer = L.RNN(made, return_state=True, name="rnn", **given)
    sizes = [int(n) for n in tf.nest.flatten(made.state_size)]
    arrays = {"in": floats(batch, time, inputs)}
    if mask:
        arrays["mask"] = (random.random((batch, time)) < 0.6).astype(np.int32)
    for i, size in enumerate(sizes if initial_state else []):
        arrays[f"state:{i}"] = floats(batch, size)

    def call(t):
        state = None
        if initial_state:
            flat = [t[f"state:{i}"] for i in range(len(sizes))]
            state = tf.nest.pack_sequence_as(made.state_size, flat) if len(sizes) > 1 else flat
        out, *last = layer(t["in"], mask=tf.cast(t["mask"], tf.bool) if mask else None, initial_state=state)
        return out, tf.nest.flatten(last)

    record("rnn", {"cells": " ".join(names), "units": units, "stacked": stacked, **cell, **given}, layer, arrays, call)


rnn(["lstm_cell"])
rnn(["gru_cell"], mask=True, return_sequences=True, cell=dict(reset_after=False))
rnn(["gru_cell"], mask=True, initial_state=True, zero_output_for_mask=True)
rnn(["simple_rnn_cell"], go_backwards=True, return_sequences=True, cell=dict(use_bias=False))
rnn(["lstm_cell", "gru_cell"], stacked=True)
rnn(["lstm_cell", "lstm_cell"], stacked=True, mask=True, return_sequences=True)
rnn(["gru_cell", "lstm_cell", "simple_rnn_cell"], stacked=True, mask=True, initial_state=True, return_sequences=True)
rnn(["lstm_cell", "gru_cell"], stacked=True, mask=True, initial_state=True, go_backwards=True)
rnn(["simple_rnn_cell"], stacked=True, mask=True, return_sequences=True, zero_output_for_mask=True)


def cell(name, **given):
    """One step of a cell."""
    made = cells_of([name], 3, **given)[0]
    n_states = len(tf.nest.flatten(made.state_size))
    arrays = {"in": floats(3, 2), **{f"state:{i}": floats(3, 3) for i in range(n_states)}}

    def call(t):
        out, last = made(t["in"], [t[f"state:{i}"] for i in range(n_states)])
        return out, tf.nest.flatten(last)

    record(name, {"units": 3, **given}, made, arrays, call)


for name in ["simple_rnn_cell", "lstm_cell", "gru_cell"]:
    cell(name)
    cell(name, use_bias=False)
cell("gru_cell", reset_after=False)


def stack(names):
    """One step of cells on top of each other."""
    made = L.StackedRNNCells(cells_of(names, 2), name="stacked_rnn_cells")
    sizes = [int(n) for n in tf.nest.flatten(made.state_size)]
    arrays = {"in": floats(3, 2), **{f"state:{i}": floats(3, size) for i, size in enumerate(sizes)}}

    def call(t):
        out, last = made(t["in"], tf.nest.pack_sequence_as(made.state_size, [t[f"state:{i}"] for i in range(len(sizes))]))
        return out, tf.nest.flatten(last)

    record("stacked_rnn_cells", {"cells": " ".join(names), "units": 2}, made, arrays, call)


stack(["lstm_cell", "gru_cell"])


def conv_lstm(size=(4, 5), mask=False, initial_state=None, **given):
    batch, time, n_axes = 2, 3, len(size)
    keras = {**given, **{key: function(value) for key, value in given.items() if "activation" in key}}
    layer = getattr(L, f"ConvLSTM{n_axes}D")(2, return_state=True, name=f"conv_lstm{n_axes}d", **keras)
    arrays = {"in": floats(batch, time, *size, 3)}
    if mask:
        arrays["mask"] = np.array([[1, 0, 1], [0, 1, 0]], np.int32)
    for i in range(2 if initial_state else 0):
        arrays[f"state:{i}"] = floats(batch, *initial_state, 2)

    def call(t):
        state = [t["state:0"], t["state:1"]] if initial_state else None
        out, *last = layer(t["in"], mask=tf.cast(t["mask"], tf.bool) if mask else None, initial_state=state)
        return out, last

    record(f"conv_lstm{n_axes}d", given, layer, arrays, call)


conv_lstm(kernel_size=[2, 3])
conv_lstm(kernel_size=[3, 3], padding="same", strides=[2, 2], return_sequences=True)
conv_lstm(kernel_size=[2, 2], dilation_rate=[2, 1], use_bias=False, go_backwards=True, return_sequences=True)
conv_lstm(kernel_size=[3, 2], padding="same", mask=True, return_sequences=True, recurrent_activation="sigmoid")
conv_lstm(kernel_size=[3, 2], padding="same", mask=True, initial_state=[4, 5], activation="softsign")
conv_lstm((6,), kernel_size=[3])
conv_lstm((6,), kernel_size=[3], padding="same", strides=[2], return_sequences=True, go_backwards=True)
conv_lstm((6,), kernel_size=[2], dilation_rate=[2], use_bias=False, mask=True, return_sequences=True, recurrent_activation="sigmoid")
conv_lstm((6,), kernel_size=[2], padding="same", initial_state=[6], activation="softsign")
conv_lstm((3, 4, 3), kernel_size=[2, 3, 2])
conv_lstm((3, 4, 3), kernel_size=[2, 2, 3], padding="same", strides=[2, 1, 2], return_sequences=True)
# TensorFlow has no convolution of volumes with dilation on a CPU.
conv_lstm((2, 3, 2), kernel_size=[2, 1, 2], padding="same", mask=True, initial_state=[2, 3, 2], use_bias=False, go_backwards=True)

fixture.write("recurrent", tf, np)
