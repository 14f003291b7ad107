"""Keras reads the layers that we write: it builds them, and with our weights they compute what they compute here.

    layers.py PROGRAM FOLDER        (PROGRAM: layer_exchange; FOLDER: an empty folder to exchange files in)
"""

import inspect
import json
import pathlib
import subprocess
import sys

import numpy as np
import tensorflow as tf

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
subprocess.run([program, folder], check=True)
cases = json.loads((folder / "layers.json").read_text())
MERGES = ("Add", "Subtract", "Multiply", "Average", "Maximum", "Minimum", "Concatenate", "Dot", "HashedCrossing", "Attention", "AdditiveAttention")


DTYPES = {"f32": np.float32, "i64": np.int64, "string": object}


def array(plain):
    return np.array(plain["values"], DTYPES[plain["dtype"]]).reshape(plain["sizes"])


def same(ours, theirs):
    """Whether Keras writes all of what we have written; numbers as f32, and False may be left out."""
    if isinstance(ours, dict):
        return isinstance(theirs, dict) and all(same(value, theirs.get(key)) for key, value in ours.items())
    if isinstance(ours, list):
        return isinstance(theirs, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, float):
        return isinstance(theirs, (int, float)) and np.float32(ours) == np.float32(theirs)
    return ours == theirs or (ours is False and theirs is None)


classes = set()
for case in cases:
    document = case["layer"]
    layer = tf.keras.layers.deserialize(document)
    # A layer that is built writes some fields in another form.
    config = json.loads(json.dumps(tf.keras.layers.serialize(layer)))["config"]
    inputs = [tf.constant(array(x)) for x in case["inputs"]]
    # Our attention uses one tensor for query, value and key; a merge takes a list.
    name = document["class_name"]
    given = [inputs] if name in MERGES else inputs * 2 if name == "MultiHeadAttention" else inputs
    # One step of a cell; its states begin at 0.
    step = {}
    if name.endswith(("Cell", "Cells")):
        step = {"states": layer.get_initial_state(batch_size=inputs[0].shape[0], dtype=tf.float32)}
    layer(*given, **step)
    # The weights of terms are a setting of our layers; Keras reads them with the layer.
    if name not in ("StringLookup", "IntegerLookup", "TextVectorization"):
        layer.set_weights([array(w) for w in case["weights"]])
    takes_training = "training" in inspect.signature(layer.call).parameters
    result = layer(*given, **step, **({"training": False} if takes_training else {}))
    # A cell gives its output and its states, a layer with return_state too, those of stacked cells nested.
    results = result[:1] if step else tf.nest.flatten(result)
    assert len(results) == len(case["results"]), (document, len(results), len(case["results"]))
    for result, expected in zip([x.numpy() for x in results], map(array, case["results"])):
        assert result.shape == expected.shape, (document, result.shape, expected.shape)
        if result.dtype == object:
            assert (np.vectorize(bytes.decode)(result) == expected).all(), (document, result, expected)
        else:
            # Some recurrent layers have no limit; their numbers reach thousands.
            worst = np.abs(result - expected).max(initial=0) / np.abs(expected).max(initial=1)
            assert worst < 1e-5, (document, worst)
    assert same(document["config"], config), (document["config"], config)
    classes.add(name)
print(f"  Keras reads {len(cases)} layers of ours, of {len(classes)} classes, and computes the same")
