"""Writes `nested_*.h5` to oracles/fixtures/keras_files/: legacy files of models with models inside, whose weights Keras lists by the flags of
their layers, and keras_nested_keras2.jsonl or keras_nested_keras3_15.jsonl beside that folder with what the models compute.

Run as `python oracles/gen/keras_nested.py` in an environment with tensorflow 2.15 (whose Keras is 2.15), and in one with keras 3.15 and
tensorflow. A case has the name of its file, what it holds (`model` or `weights`), the text of `to_json`, the input `in:0` and the result
`out:0`, which is that of the model before it was saved: the order of `let_free` is one that Keras writes and does not read.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np

from fixture import Fixture, generation

IS_3 = keras.__version__.startswith("3.")
SEED = 37
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L, Input, Model, Sequential = keras.layers, keras.Input, keras.Model, keras.Sequential
folder = pathlib.Path(__file__).parent.parent / "fixtures" / "keras_files"
version = generation(keras)


def functional(call, *sizes, name):
    start = Input(sizes)
    return Model(start, call(start), name=name)


def norm():
    """Statistics come after the weights of later layers. The outermost model is a Sequential, whose name Keras 3 writes too."""
    inner = Sequential([Input((4,)), L.Dense(4), L.BatchNormalization(), L.Dense(3)], name="inner")
    return Sequential([Input((4,)), inner, L.Dense(2, name="last")], name="outer")


def swapped():
    """A frozen layer comes after one that is free and has the same shapes."""
    inner = Sequential([Input((4,)), L.Dense(4, name="one", trainable=False), L.Dense(4, name="two")], name="inner")
    return functional(lambda x: L.Dense(2, name="last")(inner(x)), 4, name="outer")


def deep():
    """Models two deep, whose layers Keras 3 calls by other paths than tf.keras."""
    parts = [L.Dense(4, name="a", trainable=False), L.BatchNormalization(name="p"), L.Dense(4, name="b")]
    base = Sequential([Input((4,)), *parts], name="base")
    middle = functional(lambda x: L.BatchNormalization(name="r")(L.Dense(4, name="c")(base(x))), 4, name="middle")
    return functional(lambda x: L.Dense(2, name="last")(middle(x)), 4, name="outer")


def frozen():
    """A frozen model in the middle of one that is trained."""
    base = Sequential([Input((4,)), L.Dense(4, name="a"), L.BatchNormalization(name="p")], name="base")
    base.trainable = False
    parts = [L.Dense(4, name="c"), base, L.Dense(4, name="e"), L.BatchNormalization(name="q")]
    middle = Sequential([Input((4,)), *parts], name="middle")
    return functional(lambda x: L.Dense(2, name="last")(middle(x)), 4, name="outer")


def let_free():
    """Layers that are trained again after the model around them was frozen."""
    parts = [L.Dense(4, name="a"), L.BatchNormalization(name="p"), L.Dense(4, name="b")]
    base = Sequential([Input((4,)), *parts], name="base")
    base.trainable = False
    parts[1].trainable = parts[2].trainable = True
    middle = Sequential([Input((4,)), base, L.Dense(4, name="e")], name="middle")
    return functional(lambda x: L.Dense(2, name="last")(middle(x)), 4, name="outer")


def steps():
    """Wrappers, attention, and cells that were made in another order than they are used in."""
    second, first = L.LSTMCell(2), L.LSTMCell(2)
    parts = [L.TimeDistributed(L.BatchNormalization()), L.Bidirectional(L.LSTM(2, return_sequences=True), trainable=False)]
    inner = Sequential([Input((3, 4)), *parts, L.RNN([first, second], return_sequences=True), L.BatchNormalization()], name="inner")

    def call(x):
        x = inner(x)
        x = L.MultiHeadAttention(1, 2)(x, x)
        return L.BatchNormalization()(L.MultiHeadAttention(1, 2, trainable=False)(x, x))

    middle = functional(call, 3, 4, name="middle")
    return functional(lambda x: L.Flatten()(middle(x)), 3, 4, name="outer")


def ends():
    """The second call of a model inside makes the output; its number counts the call that made the model."""
    end = functional(lambda x: L.Dense(4, name="b")(L.BatchNormalization(name="p")(x)), 4, name="end")
    return functional(lambda x: end(L.Dense(4, name="c")(end(x))), 4, name="outer")


for make in (norm, swapped, deep, frozen, let_free, steps, ends):
    made, name = make(), make.__name__
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), np.float32) for w in made.get_weights()])
    x = random.uniform(-1, 1, (2, *made.inputs[0].shape[1:])).astype(np.float32)
    y = np.asarray(made.predict(x, verbose=0))
    holds = ["model"] + ([] if IS_3 else ["weights"])
    for what in holds:
        file = f"nested_{name}_{version}{'' if what == 'model' else '_weights'}.h5"
        (made.save if what == "model" else made.save_weights)(folder / file)
        fixture.case(name, file=file, holds=what, json=made.to_json())
        fixture.put("in:0", x)
        fixture.put("out:0", y)
fixture.write(f"keras_nested_{version}", keras, program="keras_nested")
