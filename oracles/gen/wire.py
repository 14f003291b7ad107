"""Writes the fixtures of crates/wire: a graph with every kind of attribute (binary and text), saved models, records, a
checkpoint state.

TensorFlow 2.15.1, Python 3.11, no randomness.  Run: python oracles/gen/wire.py
"""

import contextlib
import os
import pathlib
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.checkpoint import checkpoint_management

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures"


def canonical(graph_def):
    """Takes away what has two encodings of the same meaning, so that bytes can be compared."""
    for n in [*graph_def.node, *(n for f in graph_def.library.function for n in f.node_def)]:
        # Python sorts `config_proto` before `config`; no other key is the beginning of another.
        n.attr.pop("config", None)
    for f in graph_def.library.function:
        # Key 0 of a map may be written or left out.
        if 0 in f.arg_attr:
            f.arg_attr[100].CopyFrom(f.arg_attr[0])
            del f.arg_attr[0]


def saved_models():
    """What an Estimator exports is of the first kind: a session's graph. The second is TensorFlow 2's: functions and objects."""
    v1 = tf.compat.v1
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        # By a relative path, since it gets into the file.
        pathlib.Path("colours.txt").write_text("red\ngreen\n")
        with tf.Graph().as_default(), v1.Session() as session:
            serialized = v1.placeholder(tf.string, [None], name="examples")
            spec = {"colour": tf.io.FixedLenFeature([], tf.string), "ids": tf.io.VarLenFeature(tf.int64)}
            parsed = tf.io.parse_example(serialized, spec)
            table = tf.lookup.StaticVocabularyTable(
                tf.lookup.TextFileInitializer(
                    "colours.txt", tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64,
                    tf.lookup.TextFileIndex.LINE_NUMBER,
                ),
                num_oov_buckets=1,
            )
            weights = v1.get_variable("weights", initializer=tf.constant([0.5, -1.0, 2.0]), use_resource=True)
            scores = tf.gather(weights, table.lookup(parsed["colour"]), name="scores")
            session.run([v1.global_variables_initializer(), v1.tables_initializer()])
            build = v1.saved_model.build_tensor_info
            sparse = build(parsed["ids"])
            signature = v1.saved_model.build_signature_def
            builder = v1.saved_model.Builder("v1")
            builder.add_meta_graph_and_variables(
                session, ["serve"],
                {
                    "serving_default": signature({"inputs": build(serialized)}, {"scores": build(scores)},
                                                 "tensorflow/serving/predict"),
                    "ids": signature({"inputs": build(serialized)}, {"ids": sparse}, "tensorflow/serving/predict"),
                },
                assets_collection=v1.get_collection(v1.GraphKeys.ASSET_FILEPATHS),
                main_op=v1.tables_initializer(),
            )
            builder.save()

        class Doubler(tf.Module):
            def __init__(self):
                self.factor = tf.Variable(2.0)

            @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, name="x")])
            def __call__(self, x):
                return {"y": self.factor * x}

        doubler = Doubler()
        tf.saved_model.save(doubler, "v2", signatures=doubler.__call__)
        for version in ["v1", "v2"]:
            model = saved_model_pb2.SavedModel.FromString(pathlib.Path(version, "saved_model.pb").read_bytes())
            for meta_graph in model.meta_graphs:
                canonical(meta_graph.graph_def)
                # Documentation of ops, most of the file.
                for op in meta_graph.meta_info_def.stripped_op_list.op[3:]:
                    meta_graph.meta_info_def.stripped_op_list.op.remove(op)
                assert meta_graph.HasField("object_graph_def") == (version == "v2")
            (FIXTURES / f"wire_saved_model_{version}.pb").write_bytes(model.SerializeToString(deterministic=True))


def graph():
    """A graph TensorFlow built, and a node that carries each kind of attribute once."""
    with tf.Graph().as_default() as g:
        x = tf.compat.v1.placeholder(tf.float32, [None, 3], name="x")
        w = tf.constant([[0.5], [-1.0], [2.0]], name="w")
        y = tf.matmul(x, w, name="y")
        tf.constant(["a", "bcd"], name="words")
        tf.constant(7, tf.int64, name="seven")
        with tf.control_dependencies([y]):
            tf.identity(x, name="after")

        @tf.function
        def square(v):
            return v * v

        square.get_concrete_function(tf.TensorSpec([], tf.float32))
        tf.raw_ops.PartitionedCall(
            args=[tf.constant(3.0)],
            Tout=[tf.float32],
            f=square.get_concrete_function(tf.TensorSpec([], tf.float32)),
        )
        graph_def = g.as_graph_def()

    node = graph_def.node.add(name="every/attribute", op="Unknown", device="/cpu:0")
    attr = node.attr
    attr["bytes"].s = b"\x00\xff text"
    attr["int"].i = -(2**63)
    attr["float"].f = 0.1
    attr["bool"].b = False
    attr["type"].type = types_pb2.DT_BFLOAT16
    attr["shape"].shape.dim.add(size=-1, name="rows")
    attr["unknown_shape"].shape.unknown_rank = True
    attr["placeholder"].placeholder = "T"
    attr["func"].func.name = "callee"
    attr["func"].func.attr["depth"].i = 2
    attr["empty_list"].list.SetInParent()
    attr["list_bytes"].list.s.extend([b"", b"two"])
    attr["list_int"].list.i.extend([-1, 0, 1])
    attr["list_float"].list.f.extend([1.5, -0.0])
    attr["list_bool"].list.b.extend([True, False])
    attr["list_type"].list.type.extend([types_pb2.DT_STRING, types_pb2.DT_UINT4])
    attr["list_shape"].list.shape.add().dim.add(size=4)
    attr["list_tensor"].list.tensor.add(dtype=types_pb2.DT_INT32).int_val.append(9)
    attr["list_func"].list.func.add(name="other")
    tensor = attr["tensor"].tensor
    tensor.dtype = types_pb2.DT_INVALID
    tensor.version_number = 1
    tensor.tensor_content = b"raw"
    tensor.half_val.append(0x3C00)
    tensor.float_val.append(1.25)
    tensor.double_val.append(-2.5)
    tensor.int_val.append(-3)
    tensor.string_val.append(b"s")
    tensor.scomplex_val.extend([1.0, 2.0])
    tensor.int64_val.append(-4)
    tensor.bool_val.append(True)
    tensor.dcomplex_val.extend([3.0, 4.0])
    tensor.uint32_val.append(2**32 - 1)
    tensor.uint64_val.append(2**64 - 1)
    tensor.float8_val = b"\x38"

    inner = graph_def.library.function[0].node_def[0]
    inner.experimental_debug_info.original_node_names.append("kept")
    inner.experimental_type.type_id = 1

    canonical(graph_def)
    graph_def.versions.bad_consumers.append(5)
    return graph_def


def records():
    path = str(FIXTURES / "wire_records.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for payload in [b"", b"one", bytes(range(256)), b"z" * 1000]:
            writer.write(payload)


def checkpoint_state():
    """One as an Estimator leaves it, then one with characters that need escapes, and with times."""
    odd = "mé'\"\\\t-1"
    with tempfile.TemporaryDirectory() as folder:
        for fixture, newest, kept, times in [
            ("wire_checkpoint_state.txt", "model.ckpt-7", ["model.ckpt-0", "model.ckpt-7"], {}),
            (
                "wire_checkpoint_state_odd.txt",
                odd,
                ["a", odd],
                {
                    "all_model_checkpoint_timestamps": [1700000000.25, 1700000001.0],
                    "last_preserved_timestamp": 1699999999.5,
                },
            ),
        ]:
            checkpoint_management.update_checkpoint_state_internal(
                folder, newest, kept, save_relative_paths=True, **times
            )
            (FIXTURES / fixture).write_bytes(pathlib.Path(folder, "checkpoint").read_bytes())


if __name__ == "__main__":
    graph_def = graph()
    (FIXTURES / "wire_graph.pb").write_bytes(graph_def.SerializeToString(deterministic=True))
    graph_def.ClearField("library")
    (FIXTURES / "wire_graph.pbtxt").write_text(text_format.MessageToString(graph_def))
    saved_models()
    records()
    checkpoint_state()
