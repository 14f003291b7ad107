"""Writes small models that `tf.saved_model.save` wrote, with requests and TensorFlow's answers, for `cargo test`.

usage: saved_models_v2.py FOLDER        (oracles/fixtures)

`saved_model_v2_NAME` is the model NAME of `oracles/live/saved_model_v2.py`, which describes them. Each folder is what was saved, without
what TensorFlow's loader in C++ does not read: the objects of Python, the functions that no signature calls, and the attributes that
begin with `_`. `requests` and `answers` are TFRecord files of `NameAttrList`s, as those of `saved_models.py`. TensorFlow 2.15.1.
"""

import os
import shutil
import sys
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../live"))
import saved_model_v2
from saved_models import write

NAMES = ["linear", "tables", "loops", "sums", "branches", "functional", "image", "multi_head", "text_tf_idf", "text_lstm", "gru_steps",
         "dilated_any_size", "dilated_steps"]
BATCHES = [1, 3]


def functions_of(node):
    """The functions that a node names."""
    for value in node.attr.values():
        yield from [value.func.name] if value.HasField("func") else [func.name for func in value.list.func]


def strip(path):
    """Removes what a reader of the graph does not need."""
    with open(path, "rb") as file:
        message = saved_model_pb2.SavedModel.FromString(file.read())
    graph = message.meta_graphs[0]
    graph.ClearField("object_graph_def")
    for name in graph.meta_info_def.function_aliases.keys():
        del graph.meta_info_def.function_aliases[name]
    functions = {function.signature.name: function for function in graph.graph_def.library.function}
    # What saves the variables is never read.
    saving = graph.saver_def.save_tensor_name.split(":")[0]
    called, waiting = set(), [node for node in graph.graph_def.node if node.name != saving]
    while waiting:
        for name in functions_of(waiting.pop()):
            if name not in called:
                called.add(name)
                waiting.extend(functions[name].node_def)
    kept = [functions[name] for name in sorted(called)]
    kept_nodes = [node for node in graph.graph_def.node if node.name != saving]
    for node in kept_nodes + [node for function in kept for node in function.node_def]:
        for key in [key for key in node.attr if key.startswith("_") or key in ("config_proto", "config", "executor_type")]:
            del node.attr[key]
        node.ClearField("experimental_debug_info")
    for function in kept:
        function.ClearField("attr")
        function.ClearField("arg_attr")
    versions = graph.graph_def.versions
    made = tf.compat.v1.GraphDef(node=kept_nodes, versions=versions)
    made.library.function.extend(kept)
    graph.graph_def.CopyFrom(made)
    with open(path, "wb") as file:
        file.write(message.SerializeToString(deterministic=True))


def main():
    folder = os.path.abspath(sys.argv[1])
    for name in NAMES:
        target = os.path.join(folder, f"saved_model_v2_{name}")
        shutil.rmtree(target, ignore_errors=True)
        with tempfile.TemporaryDirectory() as scratch:
            saved_model_v2.save(name, scratch, target)
        for left in ["fingerprint.pb", "keras_metadata.pb"]:
            if os.path.exists(os.path.join(target, left)):
                os.remove(os.path.join(target, left))
        requests, answers = [], []
        for signature, function in tf.saved_model.load(target).signatures.items():
            rng = np.random.RandomState(saved_model_v2.SEED)
            for n in BATCHES:
                inputs = saved_model_v2.request(function, n, rng)
                found = function(**{key: tf.constant(value) for key, value in inputs.items()})
                requests.append((signature, inputs))
                answers.append((signature, {key: value.numpy() for key, value in found.items()}))
        strip(os.path.join(target, "saved_model.pb"))
        write(os.path.join(target, "requests"), requests)
        write(os.path.join(target, "answers"), answers)


if __name__ == "__main__":
    main()
