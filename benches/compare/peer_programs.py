"""The peer's side of benches/compare/run.sh: whole programs through TensorFlow's Estimator 2.15.

usage: peer_programs.py WORKLOAD FOLDER

Prints `name = seconds`: of a step, in the steady state, or of a whole process with one step in it. `files` writes the file that both sides read.
"""

import os
import subprocess
import sys
import tempfile
import time

WORKLOAD, FILES = sys.argv[1:]
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
WARM_UP = 50

if WORKLOAD == "start":
    begin = time.perf_counter()
    subprocess.run([sys.executable, __file__, "one-step", FILES], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"start = {time.perf_counter() - begin}")
    sys.exit()

import numpy as np
import tensorflow as tf

tf.compat.v1.logging.set_verbosity("ERROR")
fc = tf.feature_column


class Clock(tf.compat.v1.train.SessionRunHook):
    """The times at which steps end."""

    def __init__(self):
        self.times = []

    def after_run(self, context, values):
        self.times.append(time.perf_counter())


def timed(estimator, input_fn, steps):
    clock = Clock()
    estimator.train(input_fn, steps=steps, hooks=[clock])
    return float(np.mean(np.diff(clock.times)[WARM_UP:])) if steps > WARM_UP else 0.0


def iris(steps=3000):
    rng = np.random.default_rng(0)
    features = {f"f{i}": rng.random(150, dtype=np.float32) for i in range(4)}
    labels = rng.integers(0, 3, 150)
    data = lambda: tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(1000).repeat().batch(32)
    columns = [fc.numeric_column(name) for name in features]
    return timed(tf.estimator.DNNClassifier([10, 10], columns, n_classes=3, model_dir=tempfile.mkdtemp(dir=FILES)), data, steps)


def cnn():
    layers = tf.compat.v1.layers
    rng = np.random.default_rng(0)
    images, labels = rng.random((12800, 28, 28, 1), dtype=np.float32), rng.integers(0, 10, 12800)

    def model_fn(features, labels, mode):
        net = features
        for filters in (20, 40):
            net = layers.max_pooling2d(layers.conv2d(net, filters, 5, activation=tf.nn.relu), 2, 2)
        net = tf.reshape(net, [-1, 640])
        for _ in range(2):
            net = layers.dropout(layers.dense(net, 256, activation=tf.nn.relu), 0.5, training=mode == "train")
        loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, layers.dense(net, 10))
        train = tf.compat.v1.train.AdamOptimizer(0.002).minimize(loss, tf.compat.v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    data = lambda: tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(10000).repeat().batch(128).prefetch(2)
    return timed(tf.estimator.Estimator(model_fn, tempfile.mkdtemp(dir=FILES)), data, 200)


def census():
    # As in benches/census.rs.
    numbers = ["age", "educational-num", "capital-gain", "capital-loss", "hours-per-week"]
    strings = {"workclass": 100, "education": 100, "marital-status": 100, "occupation": 1000, "relationship": 100, "race": 100, "gender": 100, "native-country": 1000}
    hashed = {name: fc.categorical_column_with_hash_bucket(name, n) for name, n in strings.items()}
    age = fc.bucketized_column(fc.numeric_column("age"), [18, 25, 30, 35, 40, 45, 50, 55, 60, 65])
    crosses = [fc.crossed_column(["education", "occupation"], 10000), fc.crossed_column([age, "education", "occupation"], 100000)]
    wide = list(hashed.values()) + [age] + crosses
    deep = [fc.numeric_column(name) for name in numbers] + [fc.embedding_column(column, 8) for column in hashed.values()]

    def data():
        path = os.path.join(FILES, "adult_train.csv")
        return tf.data.experimental.make_csv_dataset(path, 256, label_name="income", num_epochs=None, shuffle=True, shuffle_buffer_size=10000)

    model = tf.estimator.DNNLinearCombinedClassifier(tempfile.mkdtemp(dir=FILES), wide, "Ftrl", deep, "Adagrad", [100, 50], label_vocabulary=["<=50K", ">50K"])
    return timed(model, data, 500)


def ctr_rows():
    n, rng = 65536, np.random.default_rng(0)
    rows = {f"c{i}": np.minimum(rng.zipf(1.2, n), 10_000_000).astype(np.int64) for i in range(8)}
    rows["x"] = rng.random((n, 13), dtype=np.float32)
    rows["y"] = rng.integers(0, 2, n)
    return rows


def ctr():
    features = ctr_rows()
    labels = features.pop("y")
    embed = lambda name: fc.embedding_column(fc.categorical_column_with_hash_bucket(name, 1_000_000, dtype=tf.int64), 32)
    columns = [embed(f"c{i}") for i in range(8)] + [fc.numeric_column("x", shape=(13,))]
    data = lambda: tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(512).prefetch(2)
    config = tf.estimator.RunConfig(save_checkpoints_steps=10**9)
    return timed(tf.estimator.DNNClassifier([256, 128], columns, tempfile.mkdtemp(dir=FILES), config=config), data, 150)


if WORKLOAD == "files":
    np.savez(os.path.join(FILES, "ctr.npz"), **ctr_rows())
elif WORKLOAD == "one-step":
    iris(steps=1)
else:
    print(f"{WORKLOAD} = {globals()[WORKLOAD]()}")
