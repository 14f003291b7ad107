"""The training of `crates/estimand/benches/sdca.rs` with TensorFlow's LinearSDCA. Prints milliseconds of all steps.

The time begins after the first step: building the graph does not count. Batches are cut before the training.
"""

import os
import shutil
import tempfile
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
ROWS, WIDTH, NAMES, BUCKETS, BATCH, EPOCHS = 100_000, 20, "abcd", 10_000, 1_000, 5
rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, (ROWS, WIDTH)).astype(np.float32)
categories = rng.integers(0, 5_000, (ROWS, len(NAMES)))
gains = rng.uniform(-1, 1, 5_000)
y = (x @ (np.arange(WIDTH) % 5 * 0.3) + gains[categories].sum(1) + rng.uniform(-1, 1, ROWS) > 0).astype(np.int64)
features = {"id": np.arange(ROWS).astype(str).astype(object), "x": x}
for field, name in enumerate(NAMES):
    features[name] = np.char.add(name, categories[:, field].astype(str)).astype(object)


class Clock(tf.compat.v1.train.SessionRunHook):
    def __init__(self):
        self.times = []

    def after_run(self, context, values):
        self.times.append(time.perf_counter())


def batches():
    cut = {name: value.reshape(ROWS // BATCH, BATCH, *value.shape[1:]) for name, value in features.items()}
    return tf.data.Dataset.from_tensor_slices((cut, y.reshape(-1, BATCH))).repeat(EPOCHS).prefetch(4)


folder, clock = tempfile.mkdtemp(), Clock()
columns = [tf.feature_column.numeric_column("x", (WIDTH,))]
columns += [tf.feature_column.categorical_column_with_hash_bucket(name, BUCKETS) for name in NAMES]
sdca = tf.estimator.experimental.LinearSDCA("id", symmetric_l2_regularization=10.0)
model = tf.estimator.LinearClassifier(columns, folder, optimizer=sdca, config=tf.estimator.RunConfig(tf_random_seed=1))
model.train(batches, hooks=[clock])
shutil.rmtree(folder)
n_steps = EPOCHS * ROWS // BATCH
assert len(clock.times) == n_steps
print(f"tensorflow = {(clock.times[-1] - clock.times[0]) / (n_steps - 1) * n_steps * 1e3:.1f}", flush=True)
