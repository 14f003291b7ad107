"""Writes oracles/fixtures/summaries.jsonl: what TensorFlow's and TensorBoard's summary ops make of tensors.

TensorFlow 2.15.1, TensorBoard 2.15.2, numpy 1.26.4, Python 3.11, seed 7.  Run: python oracles/gen/summaries.py
A case has the tensors, and the values that were written.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorboard
import tensorflow as tf
from tensorboard.plugins.pr_curve import summary as pr_curve

from fixture import Fixture

v1 = tf.compat.v1
rng = np.random.RandomState(7)
fixture = Fixture(seed=7)


def summary(op):
    """The values that an op of version 1 writes."""
    with tf.Graph().as_default(), v1.Session() as session:
        return v1.Summary.FromString(session.run(op())).value


def histogram(a):
    a = np.asarray(a)
    [value] = summary(lambda: v1.summary.histogram("h", tf.constant(a)))
    h = value.histo
    fields = {name: getattr(h, name) for name in ("min", "max", "num", "sum", "sum_squares")}
    fixture.case("histogram", array=a, **fields, limits=np.array(h.bucket_limit), counts=np.array(h.bucket))


def image(a, max_outputs):
    a = np.asarray(a)
    values = summary(lambda: v1.summary.image("scope/i", tf.constant(a), max_outputs=max_outputs))
    shown = {}
    for value in values:
        shown[value.tag] = tf.io.decode_png(value.image.encoded_image_string).numpy()
        assert shown[value.tag].shape == (value.image.height, value.image.width, value.image.colorspace)
    fixture.case("image", array=a, max_outputs=max_outputs, shown=shown)


def curve(labels, predictions, num_thresholds, weights=None):
    def op():
        w = None if weights is None else tf.constant(weights)
        return pr_curve.op("c", tf.constant(labels), tf.constant(predictions), num_thresholds, w)

    [value] = summary(op)
    data = value.metadata.plugin_data
    weighed = {} if weights is None else {"weights": weights}
    fixture.case("pr_curve", labels=labels, predictions=predictions, num_thresholds=num_thresholds, **weighed,
                 plugin=data.plugin_name, content=data.content, rows=tf.make_ndarray(value.tensor))


def normal(*dims, scale=1.0):
    return (scale * rng.randn(*dims)).astype("f")


def cases():
    histogram(normal(5, 20))
    histogram(np.zeros([3, 3], "f"))
    histogram(np.array([-1e25, -3.0, -1e-13, 0.0, 1e-13, 2.5, 1e21, 3e38], "f"))
    histogram(np.array([-7, 0, 0, 1, 2, 3, 1 << 40]))
    histogram(np.array([0, 1, 255], "uint8"))
    histogram(np.zeros([0], "f"))
    histogram(np.float32(0.75))
    image(np.abs(normal(2, 3, 4, 1)), 3)
    image(normal(3, 2, 2, 3), 2)
    image(normal(1, 2, 3, 4), 1)
    image(np.zeros([1, 2, 2, 1], "f"), 3)
    image(np.array([1, np.nan, 3, -2, np.inf, 0.5, -np.inf, 2], "f").reshape(2, 2, 2, 1), 3)
    image(rng.randint(0, 256, [4, 2, 3, 3]).astype("uint8"), 3)
    labels, predictions = rng.rand(40) < 0.4, rng.rand(40).astype("f")
    predictions[:6] = [0.0, 1.0, 0.25, 0.5, 0.75, 1.5]
    curve(labels, predictions, 5)
    curve(labels, predictions, 201)
    curve(labels.reshape(8, 5), predictions.reshape(8, 5), 11, rng.randint(0, 4, [8, 5]).astype("f"))
    curve(np.zeros([4], bool), np.float32([0.1, 0.2, 0.3, 0.9]), 4)


if __name__ == "__main__":
    cases()
    fixture.write("summaries", tf, tensorboard, np)
