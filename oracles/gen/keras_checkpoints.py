"""Writes oracles/fixtures/keras_checkpoints/: weights of tf.keras as checkpoints of TensorFlow, and keras_checkpoints.jsonl beside them with
what the models compute.

Run as `python oracles/gen/keras_checkpoints.py` in an environment with tensorflow 2.15. A case has the common part of the names of its
files, the text of `to_json`, the input `in:0` and the result `out:0`. Layers have other numbers in their names than in a program that
makes one model.
"""

import os
import pathlib
import shutil

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

from fixture import Fixture

SEED = 41
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L, Input, Model, Sequential = keras.layers, keras.Input, keras.Model, keras.Sequential
folder = pathlib.Path(__file__).parent.parent / "fixtures" / "keras_checkpoints"
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir()


def floats(*sizes):
    return random.uniform(-1, 1, sizes).astype(np.float32)


def scatter(made):
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), w.dtype) for w in made.get_weights()])


def record(name, made, x, save):
    scatter(made)
    save(made, str(folder / name))
    (folder / "checkpoint").unlink(missing_ok=True)
    fixture.case(name, json=made.to_json())
    fixture.put("in:0", x)
    fixture.put("out:0", np.asarray(made.predict(x, verbose=0)))


def save_weights(made, path):
    made.save_weights(path)


def with_optimizer(made, path):
    """As a training keeps it, with an optimizer that has done a step."""
    made.compile("adam", "mse")
    made.train_on_batch(floats(4, *made.input_shape[1:]), floats(4, *made.output_shape[1:]))
    tf.train.Checkpoint(model=made, optimizer=made.optimizer).write(path)


def dense():
    return Sequential([Input((3,)), L.Dense(4, activation="relu"), L.BatchNormalization(), L.Dropout(0.5), L.Dense(2, use_bias=False)])


def images():
    x = Input((6, 6, 2))
    y = L.SeparableConv2D(3, 3)(x)
    y = L.PReLU(shared_axes=[1, 2])(L.LayerNormalization()(y))
    return Model(x, L.Dense(2)(L.Flatten()(L.Conv2D(2, 2)(y))))


def sequences():
    x = Input((5, 3))
    y = L.Bidirectional(L.LSTM(2, return_sequences=True))(x)
    y = L.MultiHeadAttention(2, 3)(y, y)
    y = L.RNN(L.StackedRNNCells([L.GRUCell(3), L.SimpleRNNCell(2)]), return_sequences=True)(y)
    return Model(x, L.TimeDistributed(L.Dense(2))(y))


def nested():
    inner = Sequential([Input((4,)), L.Dense(3), L.BatchNormalization()])
    x = Input((4,))
    shared = L.Dense(4, activation="tanh")
    return Model(x, L.Dense(1)(L.Concatenate()([inner(shared(x)), inner(shared(shared(x)))])))


record("dense", dense(), floats(2, 3), save_weights)
record("trained", dense(), floats(2, 3), with_optimizer)
record("images", images(), floats(2, 6, 6, 2), save_weights)
record("sequences", sequences(), floats(2, 5, 3), save_weights)
record("nested", nested(), floats(2, 4), with_optimizer)
tf.train.Checkpoint(first=dense(), second=dense()).write(str(folder / "two_models"))
(folder / "checkpoint").unlink(missing_ok=True)
fixture.write("keras_checkpoints", keras)
