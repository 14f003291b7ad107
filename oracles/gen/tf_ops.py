"""Writes oracles/fixtures/tf_ops.txt: the names under which TensorFlow offers tensor operations.

Run as `python oracles/gen/tf_ops.py` in an environment with tensorflow 2.15. The first line names versions; every other line is one
name without the leading `tf.`: a public function of the modules below, a class or method of those that ops belong to, or a raw op.
"""

import inspect
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

OUT = pathlib.Path(__file__).parent.parent / "fixtures" / "tf_ops.txt"
# `tf` itself, and the modules below it that hold ops.
MODULES = ["", "compat.v1", "compat.v1.ragged", "debugging", "image", "io", "linalg", "math", "nn", "ragged", "random", "raw_ops",
           "sparse", "strings"]
CLASSES = ["RaggedTensor", "Variable", "lookup.StaticHashTable", "lookup.StaticVocabularyTable", "keras.layers.GRU",
           "keras.layers.LSTM", "keras.layers.SimpleRNN", "keras.layers.LayerNormalization"]


def resolve(name):
    value = tf
    for part in filter(None, name.split(".")):
        value = getattr(value, part)
    return value


def names():
    found = set(CLASSES)
    for module in MODULES:
        owner = resolve(module)
        for member in dir(owner):
            value = getattr(owner, member)
            if not member.startswith("_") and callable(value) and not inspect.isclass(value):
                found.add(f"{module}.{member}".lstrip("."))
    for name in ["RaggedTensor", "Variable", "lookup.StaticHashTable", "lookup.StaticVocabularyTable"]:
        found |= {f"{name}.{member}" for member in dir(resolve(name)) if not member.startswith("_")}
    return sorted(found)


def main():
    header = f"# Made by oracles/gen/tf_ops.py, which explains the lines; tensorflow {tf.__version__}."
    OUT.write_text("\n".join([header, *names()]) + "\n")


if __name__ == "__main__":
    main()
