"""Writes small models that TensorFlow's Estimator exported, with requests and its own answers, for `cargo test`.

usage: saved_models.py FOLDER        (oracles/fixtures)

`saved_model_linear` is a LinearClassifier of a numeric, a listed and a hashed column; `saved_model_deep` a
DNNClassifier of a numeric column, a cross, and an embedding of a vocabulary file; `saved_model_ops` has a signature for each of
the OPS, cases of `oracles/live/saved_ops.py`. Each folder is the export as it was written (of the ops without what TensorFlow does
not read), and `requests` and `answers`: TFRecord files of `NameAttrList`s, named by their signatures, that hold tensors by name; what
TensorFlow refused has the answer `refused`. TensorFlow 2.15.1, seed SEED.
"""

import os
import shutil
import sys
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.core.protobuf import saved_model_pb2

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
import saved_ops
from saved_model import Theirs

v1 = tf.compat.v1
columns = tf.feature_column
SEED = 3
BATCHES = [1, 3, 8]
# Random requests of each op.
ROUNDS = 5
OPS = """where fill_empty_rows_of_strings fill_empty_rows_of_ints sparse_reshape sparse_to_dense sparse_to_dense_of_strings
    sparse_slice sparse_concat sparse_reorder sparse_cross sparse_product segments sparse_segments partition_and_stitch unique slices
    shapes lookups tables examples strings""".split()


def example(rng):
    """A random tf.Example: features are missing, empty, unknown, of odd bytes, or have several values."""
    words = [b"red", b"green", b"clerk", b"nurse", b"", b"\xff\x00", b"other"]
    row = tf.train.Example()
    feature = row.features.feature
    feature["age"].float_list.value.append(rng.choice([17.0, 18.0, 33.5, 70.0]))
    for key in ["job", "city", "colour"]:
        n = rng.choice([0, 1, 1, 3])
        if n or rng.rand() < 0.5:
            feature[key].bytes_list.value.extend([words[i] for i in rng.randint(0, len(words), n)])
    return row.SerializeToString()


def linear(vocabulary, config):
    age = columns.numeric_column("age")
    job = columns.categorical_column_with_vocabulary_list("job", ["clerk", "nurse", ""], num_oov_buckets=1)
    made = [age, job, columns.categorical_column_with_hash_bucket("city", 7)]
    return made, tf.estimator.LinearClassifier(made, n_classes=3, config=config)


def deep(vocabulary, config):
    age = columns.numeric_column("age", normalizer_fn=lambda x: x / 100)
    colour = columns.categorical_column_with_vocabulary_file("colour", vocabulary)
    cross = columns.indicator_column(columns.crossed_column(["city", colour], 11))
    made = [age, columns.embedding_column(colour, 2, max_norm=0.5), cross]
    return made, tf.estimator.DNNClassifier([3], made, config=config)


def write(path, messages):
    with tf.io.TFRecordWriter(path) as writer:
        for name, tensors in messages:
            message = attr_value_pb2.NameAttrList(name=name)
            for key, value in tensors.items():
                message.attr[key].tensor.CopyFrom(tf.make_tensor_proto(value))
            writer.write(message.SerializeToString(deterministic=True))


def ask(target, requests):
    """Writes requests and TensorFlow's answers beside a model."""
    theirs = Theirs(target)
    answers = []
    for name, request in requests:
        try:
            answers.append((name, theirs.run(name, request)))
        except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError):
            answers.append((name, {"refused": True}))
    write(os.path.join(target, "requests"), requests)
    write(os.path.join(target, "answers"), answers)


def ops(target):
    makers = saved_ops.build(target, OPS)
    path = os.path.join(target, "saved_model.pb")
    with open(path, "rb") as file:
        message = saved_model_pb2.SavedModel.FromString(file.read())
    graph = message.meta_graphs[0]
    graph.meta_info_def.stripped_op_list.Clear()
    for node in graph.graph_def.node:
        node.attr.pop("_output_shapes", None)
    with open(path, "wb") as file:
        file.write(message.SerializeToString(deterministic=True))
    requests = []
    for name, make in makers.items():
        rng = np.random.RandomState(SEED)
        requests += [(name, make(rng)) for _ in range(ROUNDS)]
    ask(target, requests)


def main():
    folder = os.path.abspath(sys.argv[1])
    v1.disable_eager_execution()
    target = os.path.join(folder, "saved_model_ops")
    shutil.rmtree(target, ignore_errors=True)
    ops(target)
    for name, make in [("linear", linear), ("deep", deep)]:
        with tempfile.TemporaryDirectory() as scratch:
            # The name of the file is in the graph: a relative one is the same everywhere.
            os.chdir(scratch)
            with open("colours.txt", "w") as file:
                file.write("red\ngreen\nother\n")
            config = tf.estimator.RunConfig(model_dir="model", tf_random_seed=SEED)
            made, model = make("colours.txt", config)
            spec = columns.make_parse_example_spec(made)
            rng = np.random.RandomState(SEED)
            rows = np.array([example(rng) for _ in range(32)], dtype=object)
            labels = rng.randint(0, 2, 32)
            model.train(lambda: tf.data.Dataset.from_tensors((tf.io.parse_example(rows, spec), labels)), steps=1)
            receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
            path = model.export_saved_model("export", receiver).decode()
            target = os.path.join(folder, f"saved_model_{name}")
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(path, target)
            rows = lambda n: np.array([example(rng) for _ in range(n)], dtype=object)
            ask(target, [("predict", {"examples": rows(n)}) for n in BATCHES])


if __name__ == "__main__":
    main()
