"""Writes oracles/fixtures/keras_models_keras2.jsonl, keras_models_keras3.jsonl or keras_models_keras3_15.jsonl: models as Keras writes
them down, with what they compute.

Run as `python oracles/gen/keras_models.py` in an environment with tensorflow 2.15 (whose Keras is 2.15), and in ones with keras 3.6 and
keras 3.15 and jax or tensorflow, as `KERAS_BACKEND=jax python oracles/gen/keras_models.py`. Of each model: the text of `to_json`, its inputs `in:<number>`, its
weights `weight:<number>` in the order of `get_weights`, and its results `out:<number>`. A case with `refused` is one that must be
refused, with these words in the message.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

from fixture import Fixture, generation

IS_3 = keras.__version__.startswith("3.")
SEED = 23
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L = keras.layers


def floats(*sizes):
    return random.uniform(-1, 1, sizes).astype(np.float32)


def ids(high, *sizes):
    return random.integers(0, high, sizes).astype(np.int64)


def model(name, made, *inputs):
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), np.float32) for w in made.get_weights()])
    outputs = made.predict(list(inputs) if len(inputs) > 1 else inputs[0], verbose=0)
    fixture.case(name, json=made.to_json())
    for i, x in enumerate(inputs):
        fixture.put(f"in:{i}", x)
    for i, w in enumerate(made.get_weights()):
        fixture.put(f"weight:{i}", np.asarray(w))
    for i, y in enumerate(outputs if isinstance(outputs, list) else [outputs]):
        fixture.put(f"out:{i}", np.asarray(y))


def refused(name, made, words):
    fixture.case(name, json=made.to_json(), refused=words)


Input, Model, Sequential = keras.Input, keras.Model, keras.Sequential
model("mlp", Sequential([Input((4,)), L.Dense(5, activation="relu"), L.Dropout(0.2), L.Dense(3, activation="softmax")]), floats(3, 4))
model("cnn", Sequential([Input((6, 5, 2), name="image"), L.Conv2D(3, 2, padding="same"), L.BatchNormalization(), L.ReLU(),
                         L.MaxPooling2D(), L.Flatten(), L.Dense(2)], name="net"), floats(2, 6, 5, 2))
model("any length", Sequential([Input((None, 3)), L.LSTM(4, return_sequences=True), L.GRU(2)]), floats(2, 5, 3))
model("words", Sequential([Input((5,), dtype="int64"), L.Embedding(9, 4), L.Bidirectional(L.LSTM(3)), L.Dense(1, activation="sigmoid")]),
      ids(9, 3, 5))
model("padded words", Sequential([Input((5,), dtype="int64"), L.Embedding(9, 4, mask_zero=True), L.LSTM(3), L.Dense(1)]), ids(3, 4, 5))

a, b = Input((4,), name="a"), Input((3,), name="b")
shared = L.Dense(2, name="shared")
both = L.Concatenate()([shared(a), L.Dense(2)(b)])
model("two of each", Model([a, b], [L.Dense(1)(both), L.Add()([shared(a), L.Dense(2)(both)])], name="two"), floats(3, 4), floats(3, 3))

left, right = Input((4,)), Input((4,))
tower = Sequential([Input((4,)), L.Dense(3, activation="tanh"), L.Dense(2)], name="tower")
model("twins", Model([left, right], L.Subtract()([tower(left), tower(right)])), floats(3, 4), floats(3, 4))

x = Input((6,), name="x")
inner_in = Input((6,))
half = L.Dense(3)(inner_in)
inner = Model(inner_in, [L.Activation("relu")(half), L.Dense(2)(half)], name="inner")
first, second = inner(x)
model("a model in a model", Model(x, L.Concatenate()([first, second, x])), floats(2, 6))
model("a model in a list", Sequential([Input((6,)), Sequential([Input((6,)), L.Dense(4), L.LayerNormalization()], name="part"), L.Dense(1)]),
      floats(2, 6))

steps = Input((5, 4))
seen = L.MultiHeadAttention(2, 3)(steps, steps)
model("attention", Model(steps, L.GlobalAveragePooling1D()(L.Add()([steps, L.LayerNormalization()(seen)]))), floats(2, 5, 4))
query, value = Input((3, 4)), Input((5, 4))
model("two attentions", Model([query, value], [L.Attention()([query, value]), L.MultiHeadAttention(2, 2)(query, value, value)]),
      floats(2, 3, 4), floats(2, 5, 4))
image = Input((6, 6, 3))
block = L.Conv2D(4, 3, strides=2, padding="same", use_bias=False)(image)
block = L.Activation("relu")(L.BatchNormalization()(block))
block = L.Add()([block, L.SeparableConv2D(4, 3, padding="same")(block)])
model("a residual net", Model(image, L.Dense(3, activation="softmax")(L.GlobalMaxPooling2D()(block)), name="res"), floats(2, 6, 6, 3))
masked = Input((4, 3))
model("a mask", Model(masked, L.LSTM(2)(L.Masking()(masked))), np.where(random.random((3, 4, 1)) < 0.4, 0, floats(3, 4, 3)).astype(np.float32))
frozen = Sequential([Input((3,)), L.Dense(2)], name="frozen")
frozen.trainable = False
z = Input((3,))
model("a frozen part", Model(z, L.Dense(1, trainable=False)(frozen(z))), floats(2, 3))

state = Input((3,))
model("a state", Model([masked, state], L.GRU(3)(masked, initial_state=[state])), floats(2, *masked.shape[1:]), floats(2, 3))
# An encoder whose last states a decoder begins with, also for padded words and in both directions.
question, answer = Input((None,), dtype="int64"), Input((None, 3))
_, *states = L.LSTM(4, return_state=True, name="encoder")(L.Embedding(9, 2, mask_zero=True)(question))
decoded, *last = L.LSTM(4, return_sequences=True, return_state=True, name="decoder")(answer, initial_state=states)
model("an encoder and a decoder", Model([question, answer], [L.Dense(2)(decoded), *last]), ids(3, 4, 5), floats(4, 2, 3))
found, *states = L.Bidirectional(L.GRU(2, return_state=True, return_sequences=True), name="reader")(answer)
model("both directions", Model(answer, L.Bidirectional(L.GRU(2))(found, initial_state=states)), floats(2, 4, 3))
refused("an operation", Model(x, keras.ops.cumsum(x) if IS_3 else __import__("tensorflow").math.cumsum(x)), "Cumsum" if IS_3 else "math.cumsum")

causal = L.MultiHeadAttention(2, 3)(steps, steps, use_causal_mask=True)
model("a causal mask", Model(steps, L.Attention()([causal, causal], use_causal_mask=True)), floats(2, *steps.shape[1:]))
# Keras 3 puts the argument of the whole model in the place of that of the call, at least up to 3.15.
if not IS_3:
    z = Input((3,))
    inside = Sequential([Input((3,)), L.BatchNormalization()], name="inside")
    model("calls that train", Model(z, L.Add()([inside(z, training=True), L.Dropout(0.9)(z, training=False)])), floats(4, 3))
else:
    # Keras 3 writes the default of `training` into each call: false of dropouts and recurrent layers, true of layers for images.
    pixels = Input((4, 4, 1))
    seen = L.Dropout(0.9)(L.Flatten()(L.Resizing(3, 3)(L.RandomFlip()(pixels))))
    seen = L.GaussianNoise(0.9)(L.GRU(2, dropout=0.9)(L.Reshape((3, 3))(L.SpatialDropout1D(0.9)(L.Reshape((9, 1))(seen)))))
    model("calls that say nothing of training", Model(pixels, seen), floats(2, 4, 4, 1))

fixture.write(f"keras_models_{generation(keras)}", keras, program="keras_models")
