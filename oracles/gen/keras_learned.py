"""Writes oracles/fixtures/keras_files/learned_*: models with layers that `adapt` has taught, and keras_learned_keras2.jsonl or
keras_learned_keras3.jsonl beside them with what the models compute.

Run as `python oracles/gen/keras_learned.py` in an environment with tensorflow 2.15 (whose Keras is 2.15), and as
`KERAS_BACKEND=tensorflow python oracles/gen/keras_learned.py` in one with keras 3 and tensorflow: lookups of strings need it. A case has
the name of its file, the input `in:0` and the results `out:<number>`.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

from fixture import Fixture

IS_3 = keras.__version__.startswith("3.")
SEED = 41
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L, Input, Model, Sequential = keras.layers, keras.Input, keras.Model, keras.Sequential
folder = pathlib.Path(__file__).parent.parent / "fixtures" / "keras_files"
version = "keras3" if IS_3 else "keras2"

WORDS = np.array([["red", "blue"], ["green", "red"], ["red", "grün"], ["blue", ""]])
ASKED = np.array([["red", "pink"], ["", "green"], ["grün", "blue"], ["black", "red"]])
NUMBERS = np.array([[5, 7], [5, -3], [7, 5], [900, 0]], np.int64)
ASKED_NUMBERS = np.array([[5, 8], [-3, 0], [7, 900], [0, 1]], np.int64)
TEXTS = np.array([["Red blue, red!"], ["green  GREEN"], ["a red tree"], [""]])
ASKED_TEXTS = np.array([["a tree. A RED tree"], ["no"], [""], ["blue green"]])


def save(name, made, x):
    file = f"learned_{name}_{version}.keras"
    made.save(folder / file)
    y = made.predict(tf.constant(x), verbose=0)
    fixture.case(name, file=file)
    fixture.put("in:0", x.astype(object) if x.dtype.kind == "U" else x)
    for i, values in enumerate(y if isinstance(y, list) else [y]):
        fixture.put(f"out:{i}", np.asarray(values, np.float32))


def one(name, layer, learned, asked, dtype):
    layer.adapt(learned)
    start = Input(asked.shape[1:], dtype=dtype, name="x")
    save(name, Model(start, layer(start), name=name), asked)


one("string", L.StringLookup(), WORDS, ASKED, "string")
one("string_masked", L.StringLookup(mask_token="", num_oov_indices=3), WORDS, ASKED, "string")
one("string_multi_hot", L.StringLookup(output_mode="multi_hot", max_tokens=9, pad_to_max_tokens=True), WORDS, ASKED, "string")
one("string_tf_idf", L.StringLookup(output_mode="tf_idf", num_oov_indices=2), WORDS, ASKED, "string")
one("string_tf_idf_padded", L.StringLookup(output_mode="tf_idf", max_tokens=8, pad_to_max_tokens=True), WORDS, ASKED, "string")
one("integer", L.IntegerLookup(), NUMBERS, ASKED_NUMBERS, "int64")
one("integer_count", L.IntegerLookup(output_mode="count", mask_token=0, num_oov_indices=2), NUMBERS, ASKED_NUMBERS, "int64")
one("text", L.TextVectorization(output_sequence_length=4), TEXTS, ASKED_TEXTS, "string")
one("text_tf_idf", L.TextVectorization(output_mode="tf_idf", ngrams=2), TEXTS, ASKED_TEXTS, "string")
values = random.normal(size=(200, 3)).astype(np.float32)
one("bins", L.Discretization(num_bins=7), values, random.normal(size=(9, 3)).astype(np.float32), "float32")
one("bins_few", L.Discretization(num_bins=5), values[:1], random.normal(size=(9, 3)).astype(np.float32), "float32")
one("normalization", L.Normalization(), values, random.normal(size=(4, 3)).astype(np.float32), "float32")


def nested():
    """Several layers of a class, one of them inside of a model, and one whose terms are in the configuration."""
    start = Input((2,), dtype="string", name="x")
    inside = L.StringLookup(name="inside")
    inside.adapt(WORDS[:1])
    inner = Sequential([Input((2,), dtype="string"), inside], name="inner")
    first, last = L.StringLookup(name="first"), L.StringLookup(name="last")
    first.adapt(WORDS)
    last.adapt(WORDS[2:])
    given = L.StringLookup(vocabulary=["blue", "red"], name="given")
    save("nested", Model(start, [last(start), inner(start), given(start), first(start)], name="nested"), ASKED)


nested()
fixture.write(f"keras_learned_{version}", keras, program="keras_learned")
