"""Writes small models that TensorFlow's Estimator exported, with requests and its own answers, for `cargo test`.

usage: saved_models.py FOLDER        (oracles/fixtures)

`saved_model_linear` is a LinearClassifier of a numeric, a listed and a hashed column; `saved_model_deep` a
DNNClassifier of a numeric column, a cross, and an embedding of a vocabulary file. Each folder is the export as it was written, and `requests` and
`answers`: TFRecord files of `NameAttrList`s that hold tensors by name. TensorFlow 2.15.1, seed SEED.
"""

import os
import shutil
import sys
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

v1 = tf.compat.v1
columns = tf.feature_column
SEED = 3
BATCHES = [1, 3, 8]


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
        for i, tensors in enumerate(messages):
            message = attr_value_pb2.NameAttrList(name=str(i))
            for key, value in tensors.items():
                message.attr[key].tensor.CopyFrom(tf.make_tensor_proto(value))
            writer.write(message.SerializeToString())


def answers(path, requests):
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], path).signature_def["predict"]
        fetches = {key: info.name for key, info in signature.outputs.items()}
        return [session.run(fetches, {signature.inputs["examples"].name: r["examples"]}) for r in requests]


def main():
    folder = sys.argv[1]
    v1.disable_eager_execution()
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
            requests = [{"examples": np.array([example(rng) for _ in range(n)], dtype=object)} for n in BATCHES]
            write(os.path.join(target, "requests"), requests)
            write(os.path.join(target, "answers"), answers(path, requests))


if __name__ == "__main__":
    main()
