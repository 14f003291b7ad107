"""Exchanges checkpoints with our program: what TensorFlow wrote is read by us, what we wrote by stock TensorFlow.

usage: bundle.py EXAMPLE_PROGRAM EMPTY_FOLDER
"""

import os
import subprocess
import sys

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
PROGRAM, FOLDER = sys.argv[1:]
DTYPES = {
    "float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "bool", "object": "string",
}


def line(name, value):
    """A tensor as the program prints it."""
    value = np.array(value, object) if isinstance(value, bytes) else np.asarray(value)
    flat = value.reshape(-1)
    if value.dtype == np.float32:
        values = [f"{v:08x}" for v in flat.view(np.uint32)]
    elif value.dtype == np.float64:
        values = [f"{v:016x}" for v in flat.view(np.uint64)]
    elif value.dtype == object:
        values = ["x" + v.hex() for v in flat]
    else:
        values = [str(v).lower() for v in flat]
    return f"{name} = {DTYPES[value.dtype.name]}{list(value.shape)} {' '.join(values)}"


def read_by_us(prefix):
    result = subprocess.run([PROGRAM, "read", prefix], check=True, capture_output=True, text=True)
    return result.stdout.splitlines()


def expect_equal(ours, theirs):
    for a, b in zip(ours, theirs):
        assert a == b, f"ours   {a[:200]}\ntheirs {b[:200]}"
    assert len(ours) == len(theirs), (len(ours), len(theirs))


def from_a_saver(random):
    """A session-based Saver, as Estimators have, with partitioned variables."""
    prefix = os.path.join(FOLDER, "saver.ckpt-1")
    values = {
        "float": random.standard_normal([17, 5]).astype(np.float32),
        "double": random.standard_normal([3]),
        "int": random.integers(-(2**31), 2**31, [4], np.int32),
        "global_step": np.int64(2**62),
        "byte": random.integers(0, 256, [2, 2, 2], np.uint8),
        "flag": np.array([[True], [False]]),
        "empty": np.zeros([0], np.float32),
        "words": np.array([b"", b"\x00", b"y" * 1000], object),
    }
    partitioned = {
        "by_rows": (random.standard_normal([100, 3]).astype(np.float32), v1.fixed_size_partitioner(7)),
        "by_columns": (random.integers(0, 9, [4, 200], np.int64), v1.fixed_size_partitioner(3, axis=1)),
        "by_middle": (random.standard_normal([2, 70, 3]), v1.fixed_size_partitioner(4, axis=1)),
    }
    with tf.Graph().as_default(), v1.Session() as session:
        for name, value in values.items():
            v1.Variable(tf.constant(value), name=name, use_resource=value.dtype != object)
        for name, (value, partitioner) in partitioned.items():
            v1.get_variable(name, initializer=tf.constant(value), partitioner=partitioner)
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, prefix)
    values.update({name: value for name, (value, _) in partitioned.items()})
    expect_equal(read_by_us(prefix), [line(name, values[name]) for name in sorted(values)])


def from_a_keras_model(random):
    """An object-based checkpoint, with names and a string of its own."""
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, input_shape=(4,)), tf.keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(random.standard_normal([8, 4]), random.standard_normal([8, 1]), verbose=0)
    prefix = os.path.join(FOLDER, "keras")
    model.save_weights(prefix, save_format="tf")
    reader = tf.train.load_checkpoint(prefix)
    names = sorted(reader.get_variable_to_shape_map())
    expect_equal(read_by_us(prefix), [line(name, reader.get_tensor(name)) for name in names])


def to_tensorflow():
    """Stock TensorFlow finds, lists and loads what we wrote."""
    folder = os.path.join(FOLDER, "ours")
    prefix = os.path.join(folder, "model.ckpt-7")
    subprocess.run([PROGRAM, "write", prefix], check=True)
    assert sorted(os.listdir(folder)) == ["checkpoint", "model.ckpt-7.data-00000-of-00001", "model.ckpt-7.index"]
    assert tf.train.latest_checkpoint(folder) == prefix
    expected = {
        "scope/kernel": np.array([[1.5, -0.0, np.nan], [np.inf, 1e-45, -7.25]], np.float32),
        "double": np.array([np.e, -1e-300]),
        "int": np.array([-(2**31), -1, 2**31 - 1], np.int32),
        "global_step": np.int64(2**63 - 1),
        "byte": np.array([[0], [255]], np.uint8),
        "flag": np.array([True, False]),
        "empty": np.zeros([4, 0], np.float32),
        "words": np.array([b"a", b"", b"\x00\xff"], object),
        "no_words": np.array([], object),
        "large": np.arange(1_000_000, dtype=np.float32),
        "_ESTIMAND/note": np.array(b"TensorFlow has no room for this", object),
    }
    expected.update({f"many/tower_{i % 13}/layer_{i}/kernel": np.int32(i) for i in range(10_000)})
    listed = tf.train.list_variables(prefix)
    assert listed == [(name, list(np.shape(expected[name]))) for name in sorted(expected)], listed[:5]
    reader = tf.train.load_checkpoint(prefix)
    loaded = {name: reader.get_tensor(name) for name in expected}
    expect_equal([line(n, loaded[n]) for n in expected], [line(n, expected[n]) for n in expected])

    # And a session-based Saver restores it, ignoring the entries it has no variable for.
    with tf.Graph().as_default(), v1.Session() as session:
        kernel = v1.get_variable("scope/kernel", [2, 3])
        step = v1.get_variable("global_step", [], tf.int64)
        v1.train.Saver().restore(session, prefix)
        restored = session.run([kernel, step])
    expect_equal(
        [line("kernel", restored[0]), line("step", restored[1])],
        [line("kernel", expected["scope/kernel"]), line("step", expected["global_step"])],
    )


if __name__ == "__main__":
    random = np.random.default_rng(42)
    from_a_saver(random)
    from_a_keras_model(random)
    to_tensorflow()
