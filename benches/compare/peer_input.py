"""The peer's side of benches/compare/input.sh: tf.data reads the files that our bench has left in a folder.

Every way that users would take is tried and the fastest counts: one and several parallel reads, records parsed by the batch.
Prints `name = value` lines, in rows a second.
"""
import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

folder = sys.argv[1]
BATCH = 256
SECONDS = 12


def rate(make, batch=BATCH):
    """Rows a second over a few seconds of reading, the start left out."""
    data = iter(make())
    next(data)
    n, start = 0, time.perf_counter()
    for _ in data:
        n += batch
        if time.perf_counter() - start > SECONDS:
            break
    return n / (time.perf_counter() - start)


def csv(n_reads):
    return lambda: tf.data.experimental.make_csv_dataset(
        f"{folder}/adult.csv", BATCH, num_epochs=1, shuffle=False, num_parallel_reads=n_reads, label_name=None)


def records():
    strings = ("workclass", "education", "marital-status", "occupation", "relationship", "race", "gender", "native-country")
    example = next(iter(tf.data.TFRecordDataset(f"{folder}/adult.tfrecord"))).numpy()
    names = tf.train.Example.FromString(example).features.feature
    spec = {
        name: tf.io.FixedLenFeature([], tf.string if feature.HasField("bytes_list") else tf.int64)
        for name, feature in names.items()
    }
    assert all(spec[name].dtype == tf.string for name in strings)

    def make():
        data = tf.data.TFRecordDataset(f"{folder}/adult.tfrecord").batch(BATCH)
        return data.map(lambda rows: tf.io.parse_example(rows, spec), num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)

    return make


def images():
    """Shuffled batches of 128 images, u8 to f32 divided by 255, from arrays in memory, as the tutorials have it."""
    x = np.fromfile(f"{folder}/bench-images-idx3-ubyte", np.uint8, offset=16).reshape(-1, 28, 28)
    y = np.fromfile(f"{folder}/bench-labels-idx1-ubyte", np.uint8, offset=8)

    def make():
        data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).repeat().batch(128, drop_remainder=True)
        return data.map(lambda x, y: (tf.cast(x, tf.float32) / 255.0, y), num_parallel_calls=tf.data.AUTOTUNE).prefetch(2)

    return make


print(f"csv_rows_s = {max(rate(csv(1)), rate(csv(2))):.0f}")
print(f"tfrecord_rows_s = {rate(records()):.0f}")
print(f"mnist_rows_s = {rate(images(), 128):.0f}")
