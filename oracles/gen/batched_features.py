"""Writes oracles/fixtures/batched_features.jsonl: the batches of make_batched_features_dataset and pandas_input_fn.

TensorFlow 2.15.1 with pandas, Python 3.11, no randomness.  Run: python oracles/gen/batched_features.py
Rows are i = 0 .. n-1 with x = i / 2, the label y = i % 3, and for records i % 3 ids. A case has the settings, and the first batches:
`x` and `y` of each, and whether the data `ended`.
"""

import itertools
import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import pandas as pd
import tensorflow as tf

from fixture import Fixture

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
fixture = Fixture()
N_FIRST = 7


def example(i):
    number = lambda v: tf.train.Feature(float_list=tf.train.FloatList(value=v))
    integer = lambda v: tf.train.Feature(int64_list=tf.train.Int64List(value=v))
    feature = {"x": number([i / 2]), "y": integer([i % 3]), "ids": integer(range(i % 3))}
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def put(case, batches, ended, **settings):
    fixture.case(case, ended=ended, **settings)
    fixture.put("x", [np.asarray(x, np.float32) for x, _ in batches])
    fixture.put("y", [np.asarray(y, np.int64) for _, y in batches])


spec = {"x": tf.io.FixedLenFeature([], tf.float32), "y": tf.io.FixedLenFeature([], tf.int64), "ids": tf.io.VarLenFeature(tf.int64)}
for n, batch_size, n_epochs, drops in [(10, 4, 1, False), (10, 4, 1, True), (10, 4, 2, False), (10, 4, 2, True), (10, 4, None, False),
                                       (10, 4, 3, True), (3, 5, None, False), (3, 5, 2, False), (4, 4, 1, True)]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rows.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(n):
                writer.write(example(i))
        data = tf.data.experimental.make_batched_features_dataset(path, batch_size, spec, label_key="y", num_epochs=n_epochs, shuffle=False,
                                                                  drop_final_batch=drops)
        found = [(features["x"].numpy(), y.numpy()) for features, y in itertools.islice(data, N_FIRST)]
        put("features", found, len(found) < N_FIRST, n=n, batch_size=batch_size, n_epochs=n_epochs, drop_final_batch=drops)

for n, batch_size, n_epochs in [(10, 4, 1), (10, 4, 2), (10, 4, None), (3, 5, 2)]:
    with tf.Graph().as_default():
        i = np.arange(n)
        x, y = pd.DataFrame({"x": (i / 2).astype(np.float32)}), pd.Series(i % 3)
        features, labels = tf.compat.v1.estimator.inputs.pandas_input_fn(x, y, batch_size=batch_size, num_epochs=n_epochs, shuffle=False)()
        found = []
        with tf.compat.v1.train.MonitoredSession() as session:
            try:
                while len(found) < N_FIRST:
                    found.append(session.run((features["x"], labels)))
            except (tf.errors.OutOfRangeError, StopIteration):
                pass
        put("table", found, len(found) < N_FIRST, n=n, batch_size=batch_size, n_epochs=n_epochs)
fixture.write("batched_features", tf, pd)
