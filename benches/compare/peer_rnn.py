"""The LSTM classifier of `crates/estimand/benches/rnn.rs` in TensorFlow. Prints milliseconds of a step.

The batches are made before the training; ours reads its rows while it trains. In both, the time begins after the first five steps.
"""

import shutil
import tempfile
import time

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
BATCH, BATCHES, TOKENS, STEPS, FIRST = 64, 20, 10_000, 60, 5
rng = np.random.default_rng(0)


class Clock(tf.compat.v1.train.SessionRunHook):
    def __init__(self):
        self.times = []

    def after_run(self, context, values):
        self.times.append(time.perf_counter())


def batch():
    """Padded tokens with their lengths, and classes."""
    lengths = rng.integers(26, 51, BATCH)
    tokens = rng.integers(0, TOKENS, (BATCH, 50))
    return tokens, lengths, rng.integers(0, 2, (BATCH, 1))


def input_fn():
    parts = [np.stack(part) for part in zip(*[batch() for _ in range(BATCHES)])]

    def sparse(tokens, lengths, classes):
        there = tf.sequence_mask(lengths)
        where = tf.where(there)
        return {"tokens": tf.SparseTensor(where, tf.gather_nd(tokens, where), tf.shape(there, out_type=tf.int64))}, classes

    return tf.data.Dataset.from_tensor_slices(tuple(parts)).map(sparse).cache().repeat().prefetch(4)


def measured():
    ids = tf.feature_column.sequence_categorical_column_with_identity("tokens", TOKENS)
    folder, clock = tempfile.mkdtemp(), Clock()
    config = tf.estimator.RunConfig(save_summary_steps=10_000, log_step_count_steps=10_000)
    rnn = tf.estimator.experimental.RNNClassifier(
        [tf.feature_column.embedding_column(ids, 64)], units=[128], cell_type="lstm", model_dir=folder, config=config)
    rnn.train(input_fn, steps=FIRST + STEPS, hooks=[clock])
    shutil.rmtree(folder)
    return (clock.times[-1] - clock.times[FIRST - 1]) / STEPS


print(f"tensorflow = {min(measured() for _ in range(3)) * 1e3:.2f}", flush=True)
