"""Keras reads the losses, metrics, optimizers and schedules that we write, and computes with them what we compute.

    objects.py PROGRAM FOLDER        (PROGRAM: object_exchange; FOLDER: an empty folder to exchange files in)
"""

import collections
import json
import pathlib
import subprocess
import sys

import numpy as np
import tensorflow as tf

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
subprocess.run([program, folder], check=True)
cases = json.loads((folder / "objects.json").read_text())
STEPS = 8


def array(plain):
    return np.array(plain["values"], np.float32).reshape(plain["sizes"])


def loss(document, labels, predictions, weights):
    return tf.keras.losses.deserialize(document)(labels, predictions, sample_weight=weights)


def metric(document, labels, predictions):
    metric = tf.keras.metrics.deserialize(document)
    if document["class_name"] == "Mean":
        metric.update_state(predictions)
    else:
        metric.update_state(labels, predictions)
    return metric.result()


def optimizer(document, start, scale):
    # Not tf.keras.optimizers.deserialize, which does not know AdamW, not even its own.
    optimizer, w = tf.keras.saving.deserialize_keras_object(document), tf.Variable(start)
    for _ in range(STEPS):
        optimizer.apply_gradients([(w * scale, w)])
    return w


def schedule(document):
    if isinstance(document, float):
        return np.full(3 * STEPS, document)
    schedule = tf.keras.optimizers.schedules.deserialize(document)
    return np.array([float(schedule(step)) for step in range(3 * STEPS)])


counts = collections.Counter()
for case in cases:
    result = np.asarray({"loss": loss, "metric": metric, "optimizer": optimizer, "schedule": schedule}[case["kind"]](
        case["document"], *map(array, case["inputs"])))
    expected = array(case["result"])
    assert result.shape == expected.shape, (case["document"], result.shape, expected.shape)
    worst = np.abs(result - expected).max(initial=0)
    assert worst < 1e-5 * max(1, np.abs(expected).max(initial=0)), (case["document"], worst, result, expected)
    counts[case["kind"]] += 1
assert set(counts) == {"loss", "metric", "optimizer", "schedule"}, counts
print("  Keras reads", ", ".join(f"{n} of ours as {kind}" for kind, n in counts.items()), "and computes the same")
