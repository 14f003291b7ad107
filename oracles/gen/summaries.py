"""Writes what TensorFlow's and TensorBoard's summary ops make of tensors, for crates/estimand/src/summary.

TensorFlow 2.15.1, TensorBoard 2.15.2, numpy 1.26.4, Python 3.11, seed 7.  Run: python oracles/gen/summaries.py
Each line is one case: the tensors, and the values that were written. Numbers that JSON cannot hold are texts.
"""

import json
import math
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorboard.plugins.pr_curve import summary as pr_curve

FIXTURE = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "summaries.jsonl"
v1 = tf.compat.v1
rng = np.random.RandomState(7)
DTYPES = {"float32": "f32", "int64": "i64", "uint8": "u8", "bool": "bool"}


def number(x):
    x = float(x)
    return x if math.isfinite(x) else str(x)


def array(a):
    a = np.asarray(a)
    return {"dtype": DTYPES[a.dtype.name], "dims": list(a.shape), "values": [number(x) for x in a.ravel()]}


def summary(op):
    """The values that an op of version 1 writes."""
    with tf.Graph().as_default(), v1.Session() as session:
        return v1.Summary.FromString(session.run(op())).value


def histogram(a):
    a = np.asarray(a)
    [value] = summary(lambda: v1.summary.histogram("h", tf.constant(a)))
    h = value.histo
    fields = {name: number(getattr(h, name)) for name in ("min", "max", "num", "sum", "sum_squares")}
    fields |= {"limits": list(map(number, h.bucket_limit)), "counts": list(map(number, h.bucket))}
    return {"kind": "histogram", "array": array(a), "expected": fields}


def image(a, max_outputs):
    a = np.asarray(a)
    values = summary(lambda: v1.summary.image("scope/i", tf.constant(a), max_outputs=max_outputs))
    shown = []
    for value in values:
        pixels = tf.io.decode_png(value.image.encoded_image_string).numpy()
        assert pixels.shape == (value.image.height, value.image.width, value.image.colorspace)
        shown.append({"tag": value.tag, "dims": list(pixels.shape), "pixels": pixels.ravel().tolist()})
    return {"kind": "image", "array": array(a), "max_outputs": max_outputs, "expected": shown}


def curve(labels, predictions, num_thresholds, weights=None):
    def op():
        w = None if weights is None else tf.constant(weights)
        return pr_curve.op("c", tf.constant(labels), tf.constant(predictions), num_thresholds, w)

    [value] = summary(op)
    rows = tf.make_ndarray(value.tensor)
    case = {"kind": "pr_curve", "labels": array(labels), "predictions": array(predictions), "num_thresholds": num_thresholds}
    case |= {"weights": None if weights is None else array(weights)}
    data = value.metadata.plugin_data
    return case | {"plugin": data.plugin_name, "content": data.content.hex(), "expected": [[number(x) for x in row] for row in rows]}


def normal(*dims, scale=1.0):
    return (scale * rng.randn(*dims)).astype("f")


def cases():
    yield histogram(normal(5, 20))
    yield histogram(np.zeros([3, 3], "f"))
    yield histogram(np.array([-1e25, -3.0, -1e-13, 0.0, 1e-13, 2.5, 1e21, 3e38], "f"))
    yield histogram(np.array([-7, 0, 0, 1, 2, 3, 1 << 40]))
    yield histogram(np.array([0, 1, 255], "uint8"))
    yield histogram(np.zeros([0], "f"))
    yield histogram(np.float32(0.75))
    yield image(np.abs(normal(2, 3, 4, 1)), 3)
    yield image(normal(3, 2, 2, 3), 2)
    yield image(normal(1, 2, 3, 4), 1)
    yield image(np.zeros([1, 2, 2, 1], "f"), 3)
    yield image(np.array([1, np.nan, 3, -2, np.inf, 0.5, -np.inf, 2], "f").reshape(2, 2, 2, 1), 3)
    yield image(rng.randint(0, 256, [4, 2, 3, 3]).astype("uint8"), 3)
    labels, predictions = rng.rand(40) < 0.4, rng.rand(40).astype("f")
    predictions[:6] = [0.0, 1.0, 0.25, 0.5, 0.75, 1.5]
    yield curve(labels, predictions, 5)
    yield curve(labels, predictions, 201)
    yield curve(labels.reshape(8, 5), predictions.reshape(8, 5), 11, rng.randint(0, 4, [8, 5]).astype("f"))
    yield curve(np.zeros([4], bool), np.float32([0.1, 0.2, 0.3, 0.9]), 4)


if __name__ == "__main__":
    FIXTURE.write_text("".join(json.dumps(case) + "\n" for case in cases()))
