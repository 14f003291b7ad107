"""Writes oracles/fixtures/preprocessing_layers.jsonl or preprocessing_layers_keras3_15.jsonl: what Keras's preprocessing layers make of
strings, integers, numbers and images.

Run as `python oracles/gen/preprocessing_layers.py` in an environment with tensorflow 2.15, and in one with keras 3.15 and tensorflow. Of
each layer: the JSON of `keras.layers.serialize`, whether it is called in training, its inputs `in:<number>`, `out`, and of numbers that
have a gradient, `coef` and the gradient `grad:0` of sum(coef * out).
"""

import inspect
import json
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

from fixture import Fixture, generation

SEED = 23
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L, IS_3 = keras.layers, keras.__version__.startswith("3.")


def floats(*sizes):
    return np.round(random.standard_normal(sizes), 3).astype(np.float32)


def words(*rows):
    return np.array(rows, object)


def layer(made, *inputs, training=False, has_gradient=False):
    document = json.dumps(L.serialize(made))
    tensors = [tf.constant(x) for x in inputs]
    given = list(tensors) if len(tensors) > 1 else tensors[0]
    extra = {"training": training} if "training" in inspect.signature(made.call).parameters else {}
    with tf.GradientTape() as tape:
        tape.watch([x for x in tensors if x.dtype.is_floating])
        out = made(given, **extra)
        coef = floats(*out.shape) if has_gradient else None
        total = tf.reduce_sum(coef * out) if has_gradient else None
    fixture.case(type(made).__name__, json=document, training=training)
    for i, x in enumerate(inputs):
        fixture.put(f"in:{i}", x)
    fixture.put("out", out)
    if has_gradient:
        fixture.put("coef", coef)
        fixture.put("grad:0", tape.gradient(total, tensors[0]))


rows, ids = floats(4, 3), np.array([[1, 4, 1], [0, 2, 4]], np.int64)
# Numbers.
layer(L.Normalization(mean=[1.0, -2.0, 0.5], variance=[4.0, 0.0, 0.25]), rows, has_gradient=True)
layer(L.Normalization(axis=None, mean=0.5, variance=4.0), rows, has_gradient=True)
layer(L.Normalization(axis=1, mean=[0.5, 1.0, 2.0], variance=[4.0, 1.0, 9.0], invert=True), floats(2, 3, 2), has_gradient=True)
layer(L.Normalization(mean=[1.0, -2.0, 0.5], variance=[4.0, 1.0, 0.25]), ids)
layer(L.Rescaling(1 / 255, offset=-0.5), floats(2, 3, 2), has_gradient=True)
layer(L.Rescaling(0.5), np.array([[0, 128, 255]], np.uint8))
for mode in ["int", "multi_hot", "count"]:
    layer(L.Discretization(bin_boundaries=[-0.5, 0.0, 1.5], output_mode=mode), np.array([[-0.5, -9, 0.3], [1.5, 0.0, 7]], np.float32))
layer(L.Discretization(bin_boundaries=[-0.5, 0.0, 1.5], output_mode="one_hot"), np.array([-0.5, 0.2, 9, 1.5], np.float32))
# Words.
text = words(["a", "b", "zz", ""], ["c", "c", "", "\u00e4"])
terms = ["b", "c", "a", "d"]
for mode in ["int", "multi_hot", "count", "tf_idf"]:
    weights = {"idf_weights": [0.5, 1.0, 2.0, 4.0]} if mode == "tf_idf" else {}
    layer(L.StringLookup(vocabulary=terms, output_mode=mode, **weights), text)
    layer(L.StringLookup(vocabulary=terms, output_mode=mode, mask_token="", num_oov_indices=3, max_tokens=12, pad_to_max_tokens=True,
                         **weights), text)
layer(L.StringLookup(vocabulary=terms, output_mode="one_hot"), words("a", "zz", "d"))
layer(L.StringLookup(vocabulary=terms, output_mode="one_hot", num_oov_indices=2), words(["a"], ["zz"], ["d"]))
layer(L.StringLookup(vocabulary=["", "[UNK]", *terms], mask_token=""), text)
layer(L.StringLookup(vocabulary=terms, num_oov_indices=0), words(["a", "d"], ["b", "b"]))
layer(L.StringLookup(vocabulary=terms, num_oov_indices=0, mask_token=""), words(["a", "d"], ["", "b"]))
layer(L.StringLookup(vocabulary=terms, invert=True, mask_token=""), np.array([[0, 1, 2, 5], [6, 9, -1, 3]], np.int64))
layer(L.StringLookup(vocabulary=terms, invert=True, num_oov_indices=2, oov_token="?"), np.array([[0, 1, 2, 5], [6, 9, -1, 3]], np.int64))
numbers = np.array([[7, -3, 12], [0, 5, 7]], np.int64)
for mode in ["int", "multi_hot", "count"]:
    layer(L.IntegerLookup(vocabulary=[5, 7, -3], output_mode=mode), numbers)
    layer(L.IntegerLookup(vocabulary=[5, 7, -3], output_mode=mode, mask_token=0, num_oov_indices=3), numbers)
layer(L.IntegerLookup(vocabulary=[5, 7, -3], invert=True, mask_token=0), np.array([[0, 1, 2], [4, 9, -1]], np.int64))
for mode in ["int", "multi_hot", "count"]:
    layer(L.Hashing(5, output_mode=mode), text)
    layer(L.Hashing(5, output_mode=mode, mask_value=""), text)
    layer(L.Hashing(5, output_mode=mode, salt=[3, 4]), text)
    layer(L.Hashing(5, output_mode=mode, salt=9, mask_value=7), numbers)
layer(L.Hashing(5), numbers.astype(np.int32))
layer(L.Hashing(1, mask_value=""), text)
layer(L.Hashing(5, output_mode="one_hot"), words("a", "b"))
layer(L.CategoryEncoding(6), ids)
layer(L.CategoryEncoding(6, output_mode="count"), ids)
layer(L.CategoryEncoding(6, output_mode="one_hot"), ids[:, 0])
layer(L.HashedCrossing(7), words("a", "b", "c"), np.array([1, 2, 3], np.int64))
layer(L.HashedCrossing(7), words(["a"], ["b"], ["c"]), np.array([[1], [2], [3]], np.int64), words(["x"], ["x"], ["y"]))
layer(L.HashedCrossing(7, output_mode="one_hot"), words("a", "b", "c"), words("x", "x", "y"))
# Texts.
lines = words("The cat sat. On, the MAT!", "", "dog's life; cat", "  two   spaces ", "\u00c4 cat & \u00e9")
vocabulary = ["the", "cat", "mat", "the cat", "c", "\u00e9"]
for options in [{}, {"output_sequence_length": 3}, {"output_sequence_length": 9}, {"standardize": None}, {"standardize": "lower"},
                {"standardize": "strip_punctuation"}, {"split": "character", "output_sequence_length": 12}, {"ngrams": 2},
                {"ngrams": 3, "output_mode": "count"}, {"output_mode": "multi_hot"}, {"output_mode": "count", "max_tokens": 12, "pad_to_max_tokens": True},
                {"output_mode": "tf_idf", "idf_weights": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]}]:
    layer(L.TextVectorization(vocabulary=vocabulary, **options), lines)
layer(L.TextVectorization(vocabulary=vocabulary), lines[:, None])
layer(L.TextVectorization(vocabulary=vocabulary, split=None), words(["the", "x"], ["cat", ""]))
# Images.
images = np.round(random.uniform(0, 255, (2, 5, 6, 3))).astype(np.float32)
for options in [{}, {"interpolation": "nearest"}, {"crop_to_aspect_ratio": True}]:
    layer(L.Resizing(4, 3, **options), images, has_gradient=True)
layer(L.Resizing(7, 4, crop_to_aspect_ratio=True), images)
layer(L.CenterCrop(2, 3), images, has_gradient=True)
layer(L.CenterCrop(7, 3), images)
if IS_3:
    # Outside of training Keras 3.15 does not crop at all, against its own `compute_output_shape`.
    layer(L.RandomCrop(3, 2), images[:, :3, :2], training=True)
    layer(L.Resizing(3, 4, fill_value=9.0), images)
    layer(L.RandomContrast((0.0, 1e-7), value_range=(50, 150)), images, training=True)
else:
    layer(L.RandomCrop(3, 2), images)
layer(L.RandomFlip(), images)
for fill in ["reflect", "constant", "wrap", "nearest"]:
    for interpolation in ["bilinear", "nearest"]:
        kind = dict(fill_mode=fill, interpolation=interpolation, fill_value=7.0)
        for factor in [0.1, -0.33]:
            # Its gradient is not the one of its result: TensorFlow turns the gradient back, which is not the same.
            layer(L.RandomRotation((factor, factor), **kind), images, training=True)
        layer(L.RandomTranslation((0.3, 0.3), (-0.7, -0.7), **kind), images, training=True)
        wide = 0.9 if IS_3 else 1.5  # Keras 3 refuses factors above 1
        layer(L.RandomZoom((0.8, 0.8), (wide, wide), **kind), images, training=True)
        layer(L.RandomZoom((-0.4, -0.4), **kind), images, training=True)
layer(L.RandomBrightness((0.2, 0.2)), images, training=True)
layer(L.RandomBrightness((-0.3, -0.3), value_range=(0, 100)), images, training=True)
# Its two ends must differ; the result is as if they did not.
layer(L.RandomContrast((0.0, 1e-7)), images, training=True)
for made in [L.RandomRotation(0.2), L.RandomZoom(0.3), L.RandomTranslation(0.1, 0.2), L.RandomContrast(0.4), L.RandomBrightness(0.2)]:
    layer(made, images)

suffix = f"_{generation(keras)}" if IS_3 else ""
fixture.write(f"preprocessing_layers{suffix}", tf, np, keras=keras.__version__, program="preprocessing_layers")
