"""The peer's side of benches/compare: the same training steps in TensorFlow 2.15, as tf.estimator runs them.

A graph, an in-memory dataset, and Session.run of the train op: the Estimator's loop without its hooks, which is kind to it.
Prints `name = value` lines.
"""
import os
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.disable_v2_behavior()
tf1.logging.set_verbosity(tf1.logging.ERROR)


def measure(build, steps):
    """Best mean time of a step in seconds over several rounds."""
    with tf.Graph().as_default():
        train = build()
        config = tf1.ConfigProto(inter_op_parallelism_threads=2, intra_op_parallelism_threads=2)
        with tf1.Session(config=config) as session:
            session.run(tf1.global_variables_initializer())
            run = session.make_callable(train)
            best = float("inf")
            for round_ in range(6):
                start = time.perf_counter()
                for _ in range(steps):
                    run()
                if round_ > 0:
                    best = min(best, (time.perf_counter() - start) / steps)
            return best


def batches(arrays, batch):
    data = tf.data.Dataset.from_tensor_slices(arrays).repeat().batch(batch, drop_remainder=True).prefetch(2)
    return tf1.data.make_one_shot_iterator(data).get_next()


def dense(x, units, activation=None):
    return tf1.layers.dense(x, units, activation=activation)


def iris():
    rng = np.random.default_rng(0)
    x, y = batches((rng.random((320, 4), dtype=np.float32), rng.integers(0, 3, 320)), 32)
    logits = dense(dense(dense(x, 10, tf.nn.relu), 10, tf.nn.relu), 3)
    loss = tf1.losses.sparse_softmax_cross_entropy(y, logits)
    return tf1.train.AdagradOptimizer(0.001).minimize(loss)


def cnn():
    rng = np.random.default_rng(0)
    x, y = batches((rng.random((1280, 28, 28, 1), dtype=np.float32), rng.integers(0, 10, 1280)), 128)
    for filters in (20, 40):
        x = tf1.layers.max_pooling2d(tf1.layers.conv2d(x, filters, 5, activation=tf.nn.relu), 2, 2)
    x = tf.reshape(x, [-1, 640])
    for _ in range(2):
        x = tf1.layers.dropout(dense(x, 256, tf.nn.relu), 0.5, training=True)
    loss = tf1.losses.sparse_softmax_cross_entropy(y, dense(x, 10))
    return tf1.train.AdamOptimizer(0.002).minimize(loss)


def lstm():
    rng = np.random.default_rng(0)
    x, y = batches((rng.random((320, 50, 64), dtype=np.float32), rng.random((320, 1), dtype=np.float32)), 32)
    loss = tf1.losses.sigmoid_cross_entropy(y, dense(tf.keras.layers.LSTM(64)(x), 1))
    return tf1.train.AdamOptimizer(0.001).minimize(loss)


def lookup(rows):
    def build():
        rng = np.random.default_rng(0)
        ids, y = batches((rng.integers(0, rows, (5120, 8)), rng.random((5120, 1), dtype=np.float32)), 512)
        table = tf1.get_variable("embedding_weights", [rows, 32], initializer=tf1.truncated_normal_initializer(stddev=0.1))
        pooled = tf.reduce_sum(tf.gather(table, ids), axis=1)
        loss = tf1.losses.sigmoid_cross_entropy(y, dense(pooled, 1))
        return tf1.train.AdagradOptimizer(0.05).minimize(loss)

    return build


class Clock(tf1.train.SessionRunHook):
    """The times at which steps end."""

    def __init__(self):
        self.times = []

    def after_run(self, context, values):
        self.times.append(time.perf_counter())


def ctr():
    """Median time in seconds of a step of the Estimator itself: categories hashed, embedded, and a network of 256 and 128."""
    rows, rng, columns = 65536, np.random.default_rng(0), tf.feature_column
    names = [f"c{i}" for i in range(8)]
    features = {name: np.minimum(rng.zipf(1.2, rows), 10_000_000).astype(np.int64) for name in names}
    features["x"] = rng.random((rows, 13), dtype=np.float32)
    labels = rng.integers(0, 2, rows)
    embed = lambda name: columns.embedding_column(columns.categorical_column_with_hash_bucket(name, 1_000_000, dtype=tf.int64), 32)
    inputs = [embed(name) for name in names] + [columns.numeric_column("x", shape=(13,))]
    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(save_checkpoints_steps=10**9, save_summary_steps=None, log_step_count_steps=None)
        estimator = tf.estimator.DNNClassifier([256, 128], inputs, model_dir=folder, optimizer="Adagrad", config=config)
        clock = Clock()
        data = lambda: tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(512).prefetch(2)
        estimator.train(data, steps=120, hooks=[clock])
    return float(np.median(np.diff(clock.times)[20:]))


print("iris_step_us = %.2f" % (measure(iris, 2000) * 1e6))
print("cnn_step_ms = %.3f" % (measure(cnn, 30) * 1e3))
print("lstm_step_ms = %.3f" % (measure(lstm, 30) * 1e3))
print("lookup_step_us = %.1f" % (measure(lookup(100_000), 200) * 1e6))
print("lookup_large_step_us = %.1f" % (measure(lookup(1_000_000), 200) * 1e6))
print("ctr_step_ms = %.2f" % (ctr() * 1e3))
