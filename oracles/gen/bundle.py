"""Writes the fixtures of crates/checkpoint: tables and bundles as TensorFlow itself writes them.

TensorFlow 2.15.1, Python 3.11, no randomness.  Run: python oracles/gen/bundle.py
"""

import os
import pathlib
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"


def save(prefix, build):
    """Saves the variables that `build` makes, as a session-based Saver does."""
    with tf.Graph().as_default(), v1.Session() as session:
        build()
        session.run(v1.global_variables_initializer())
        v1.train.Saver().save(session, prefix, write_meta_graph=False, write_state=False)


def every_dtype():
    def variable(name, value):
        v1.Variable(value, name=name, use_resource=True)

    variable("dnn/hiddenlayer_0/kernel", np.array([[1.5, -2.0, 0.25], [3.0, 1e-30, -np.inf]], np.float32))
    variable("dnn/hiddenlayer_0/bias", np.array([0.0, -0.0, 7.0], np.float32))
    variable("double", np.array([np.pi, -1e300], np.float64))
    variable("int", np.array([-(2**31), 0, 2**31 - 1], np.int32))
    variable("global_step", np.int64(1234567890123))
    variable("byte", np.array([[0], [127], [255]], np.uint8))
    variable("flag", np.array([True, False, True]))
    variable("empty", np.zeros([0, 5], np.float32))
    variable("half", np.array([1.0], np.float16))
    v1.Variable([[b"a", b""], [b"\x00\xff", b"x" * 300]], name="words", use_resource=False)
    v1.Variable(b"alone", name="word", use_resource=False)
    # Rows 0-1, 2-3 and 4 of a matrix, and the columns of another, as parameter servers hold them.
    v1.get_variable(
        "rows", initializer=tf.constant(np.arange(10, dtype=np.float32).reshape(5, 2)), partitioner=v1.fixed_size_partitioner(3)
    )
    v1.get_variable(
        "columns",
        initializer=tf.constant(np.arange(12, dtype=np.int64).reshape(3, 4)),
        partitioner=v1.fixed_size_partitioner(2, axis=1),
    )


def names(count):
    def build():
        for i in range(count):
            v1.Variable(np.int32(i), name=f"scope_{i % 7}/variable_{i}", use_resource=True)

    return build


def two_shards(prefix):
    """Two bundles merged, as the workers of a distributed save leave them."""
    with tempfile.TemporaryDirectory() as folder:
        parts = [os.path.join(folder, f"part{i}") for i in range(2)]
        tf.raw_ops.SaveV2(prefix=parts[0], tensor_names=["a"], shape_and_slices=[""], tensors=[tf.constant([1.0, 2.0])])
        tf.raw_ops.SaveV2(prefix=parts[1], tensor_names=["b"], shape_and_slices=[""], tensors=[tf.constant([3, 4, 5])])
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=prefix)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        save(os.path.join(folder, "bundle_tf"), every_dtype)
        save(os.path.join(folder, "bundle_tf_names"), names(100))
        two_shards(os.path.join(folder, "bundle_tf_shards"))
        for path in sorted(pathlib.Path(folder).iterdir()):
            shutil.copy(path, FIXTURES / path.name)
            print(path.name, path.stat().st_size)
