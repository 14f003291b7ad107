"""Writes oracles/fixtures/keras_files/: models and weights as Keras saves them, and keras_files_keras2.jsonl, keras_files_keras3.jsonl
or keras_files_keras3_15.jsonl beside them with what the models compute.

Run as `python oracles/gen/keras_files.py` in an environment with tensorflow 2.15 (whose Keras is 2.15), and in ones with keras 3.6 and
keras 3.15 and jax or tensorflow, as `KERAS_BACKEND=jax python oracles/gen/keras_files.py`. A case has the name of its file, what it holds (`model` or `weights`),
the text of `to_json`, the inputs `in:<number>` and the results `out:<number>`.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

from fixture import Fixture, generation

IS_3 = keras.__version__.startswith("3.")
SEED = 29
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L, Input, Model, Sequential = keras.layers, keras.Input, keras.Model, keras.Sequential
folder = pathlib.Path(__file__).parent.parent / "fixtures" / "keras_files"
folder.mkdir(exist_ok=True)
version = generation(keras)


def floats(*sizes):
    return random.uniform(-1, 1, sizes).astype(np.float32)


def files(name, made, x, *suffixes):
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), np.float32) for w in made.get_weights()])
    y = np.asarray(made.predict(x, verbose=0))
    for suffix, holds in suffixes:
        file = f"{name}_{version}{suffix}"
        (made.save if holds == "model" else made.save_weights)(folder / file)
        fixture.case(name, file=file, holds=holds, json=made.to_json())
        fixture.put("in:0", x)
        fixture.put("out:0", y)


def branches():
    """Wrappers, cells, attention, a model inside that has batch norm, and a layer that is used twice."""
    a = Input((4, 3), name="a")
    x = L.Bidirectional(L.LSTM(2, return_sequences=True))(a)
    x = L.MultiHeadAttention(1, 2)(x, x)
    x = L.TimeDistributed(L.Dense(3))(x)
    x = L.RNN([L.GRUCell(2), L.LSTMCell(2)])(x)
    inner = Sequential([Input((2,)), L.Dense(2), L.BatchNormalization(), L.Dense(3)], name="inner")
    x, twice = inner(x), L.Dense(3, name="twice")
    return Model(a, L.Dense(1, name="first")(twice(twice(x))), name="branches")


def net():
    return Sequential([Input((5, 4, 2)), L.Conv2D(3, 2), L.BatchNormalization(), L.Flatten(), L.Dense(2), L.Dense(1)], name="net")


whole = [(".keras", "model")] + ([] if IS_3 else [(".h5", "model")])
files("branches", branches(), floats(2, 4, 3), *whole)
files("net", net(), floats(2, 5, 4, 2), (".weights.h5", "weights"), *([] if IS_3 else [("_legacy.h5", "weights")]))
fixture.write(f"keras_files_{version}", keras, program="keras_files")
