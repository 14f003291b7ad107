"""TensorFlow's Estimator trains 10 steps in a model folder, ours goes on for 10, TensorFlow's for 10 more: the same as 30 steps of TensorFlow's.

usage: ping_pong.py EXAMPLE_PROGRAM EMPTY_FOLDER

Twice for each optimizer of Keras, once with TensorFlow first and once with ours first. The model has batch normalization, whose statistics go along.
"""

import os
import shutil
import subprocess
import sys

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
PROGRAM, FOLDER = sys.argv[1:]
BATCH, N_BATCHES = 16, 10
K = tf.keras.optimizers.legacy
OPTIMIZERS = {
    "SGD": lambda: K.SGD(0.05, momentum=0.9, nesterov=True),
    "Adagrad": lambda: K.Adagrad(0.05),
    "Adam": lambda: K.Adam(0.01, amsgrad=True),
    "Ftrl": lambda: K.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02, beta=0.1),
    "RMSprop": lambda: K.RMSprop(0.01, momentum=0.5, centered=True),
    "Adadelta": lambda: K.Adadelta(0.5),
    "Adamax": lambda: K.Adamax(0.01),
    "Nadam": lambda: K.Nadam(0.01),
    "Schedule": lambda: K.SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 7, 0.5, staircase=True)),
}

rng = np.random.default_rng(11)
ROWS = {"x": rng.normal(size=(BATCH * N_BATCHES, 5)).astype(np.float32)}
LABELS = np.argmax(ROWS["x"] @ rng.normal(size=(5, 3)), axis=1).astype(np.int64)


def input_fn():
    return tf.data.Dataset.from_tensor_slices((ROWS, LABELS)).repeat().batch(BATCH)


def model_fn(features, labels, mode, params):
    training = mode == tf.estimator.ModeKeys.TRAIN
    layers = [
        tf.keras.layers.Dense(8, activation="tanh"),
        tf.keras.layers.BatchNormalization(momentum=0.9),
        tf.keras.layers.Dense(3),
    ]
    net = layers[0](features["x"])
    net = layers[1](net, training=training)
    logits = layers[2](net)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    if not training:
        return tf.estimator.EstimatorSpec(mode, loss=loss)
    optimizer = OPTIMIZERS[params["optimizer"]]()
    optimizer.iterations = tf.compat.v1.train.get_or_create_global_step()
    weights = [w for layer in layers for w in layer.trainable_weights]
    train = optimizer.get_updates(loss, weights)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(train, layers[1].updates))


def tensorflow(folder, optimizer, max_steps):
    tf.estimator.Estimator(model_fn, folder, None, {"optimizer": optimizer}).train(input_fn, max_steps=max_steps)


def ours(folder, optimizer, max_steps):
    subprocess.run([PROGRAM, optimizer, folder, DATA, str(max_steps)], check=True, stdout=subprocess.DEVNULL)


def values(folder):
    return {name: tf.train.load_variable(folder, name) for name, _ in tf.train.list_variables(folder) if not name.startswith("_")}


def largest_difference(one, other, name):
    assert one.keys() == other.keys(), (name, sorted(one.keys() ^ other.keys()))
    worst = ("", 0.0)
    for key in one:
        scale = max(np.abs(one[key]).max(initial=0), 1.0)
        worst = max(worst, (key, float(np.abs(one[key] - other[key]).max(initial=0) / scale)), key=lambda pair: pair[1])
    assert worst[1] <= 1e-5, (name, worst)
    return worst[1]


DATA = os.path.join(FOLDER, "rows.npz")
np.savez(DATA, y=LABELS, **ROWS)
for name in OPTIMIZERS:
    start, alone, turns, begun = (os.path.join(FOLDER, name, part) for part in ("start", "alone", "turns", "begun"))
    tensorflow(alone, name, 10)
    shutil.copytree(alone, turns)
    tensorflow(alone, name, 30)
    ours(turns, name, 20)
    tensorflow(turns, name, 30)
    a = largest_difference(values(alone), values(turns), name)
    # Ours first: TensorFlow restores every variable that it has from our file, or fails.
    ours(begun, name, 10)
    shutil.copytree(begun, start)
    tensorflow(begun, name, 20)
    ours(start, name, 20)
    b = largest_difference(values(begun), values(start), name)
    print(f"  {name}: TensorFlow, ours, TensorFlow {a:.1e}; ours, TensorFlow {b:.1e}")
