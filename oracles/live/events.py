"""Exchanges event files with our program: TensorBoard's own reader and TensorFlow's iterator read what we wrote, we read what TensorFlow wrote, and
every kind of summary is what TensorFlow's own ops write of the same tensors.

usage: events.py EXAMPLE_PROGRAM EMPTY_FOLDER
"""

import glob
import math
import os
import struct
import subprocess
import sys

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.pr_curve import summary as pr_curve
from tensorflow.core.util.event_pb2 import SessionLog

PROGRAM, FOLDER = sys.argv[1:]


def run(*arguments):
    result = subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True)
    return result.stdout.splitlines()


def bits(value):
    return struct.pack(">f", value).hex()


def loss(step, first):
    """As the program chooses it."""
    return float(np.float32(1) / np.float32(step + first))


def files(folder):
    return sorted(glob.glob(os.path.join(folder, "events.out.tfevents.*")))


def iterated_by_tensorflow(folder):
    """Every event of one training, in the order of the original."""
    run("write", folder, 0, 100)
    [path] = files(folder)
    events = list(tf.compat.v1.train.summary_iterator(path))
    assert events[0].file_version == "brain.Event:2", events[0]
    graph = tf.compat.v1.GraphDef.FromString(events[1].graph_def)
    assert [(n.name, n.op, list(n.input)) for n in graph.node] == [("x", "Placeholder", []), ("scope/y", "Relu", ["x"])]
    logs = [(e.step, e.session_log.status, e.session_log.checkpoint_path) for e in events if e.HasField("session_log")]
    assert logs == [(0, SessionLog.CHECKPOINT, "model.ckpt"), (1, SessionLog.START, ""), (100, SessionLog.CHECKPOINT, "model.ckpt")], logs
    values = [(e.step, v.tag, v.simple_value) for e in events for v in e.summary.value if v.HasField("simple_value")]
    assert [(s, x) for s, tag, x in values if tag == "loss"] == [(s, loss(s, 0)) for s in range(1, 101)]
    assert sum(math.isnan(x) for _, tag, x in values if tag == "scope/global_step_sec") == 100
    assert ("infinite", math.inf) in [(tag, x) for _, tag, x in values]
    [path] = [v.tensor for e in events for v in e.summary.value if v.tag == "checkpoint_path"]
    assert tf.make_ndarray(path).item().decode() == "žluť/model.ckpt-100"
    print(f"  TensorFlow iterates over {len(events)} events of ours")


def shown_by_tensorboard(folder):
    """Two trainings in one folder, the second from step 60 again: TensorBoard forgets what the first did beyond it."""
    run("write", folder, 60, 150)
    assert len(files(folder)) == 2, files(folder)
    board = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    board.Reload()
    tags = board.Tags()
    assert tags["graph"] and set(tags["scalars"]) == {"loss", "scope/global_step_sec", "infinite"}, tags
    assert "checkpoint_path" in tags["tensors"], tags
    assert {n.name for n in board.Graph().node} == {"x", "scope/y"}
    shown = [(e.step, e.value) for e in board.Scalars("loss")]
    expected = [(s, loss(s, 0)) for s in range(1, 61)] + [(s, loss(s, 60)) for s in range(61, 151)]
    assert shown == expected, (shown[:70], expected[:70])
    times = [e.wall_time for e in board.Scalars("loss")]
    assert times == sorted(times) and 0 <= times[-1] - times[0] < 600, times[:3]
    print(f"  TensorBoard shows {len(shown)} steps of two runs, their graph and their text")


def written_by_tensorflow(folder):
    """The summaries of the program's `show`, by TensorFlow's and TensorBoard's own ops."""
    numbers = np.arange(24, dtype="f") * np.float32(0.3) - np.float32(1.25)
    labels, predictions = np.arange(24) % 3 == 0, (np.arange(24) * 7 % 24).astype("f") / np.float32(24)
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        ops = [
            v1.summary.histogram("scope/histogram", tf.constant(numbers)),
            v1.summary.image("scope/picture", tf.reshape(tf.constant(numbers), [2, 2, 2, 3]), max_outputs=3),
            v1.summary.text("scope/text", tf.constant("# žluť\n*text*")),
            pr_curve.op("scope/curve", tf.constant(labels), tf.constant(predictions), 21),
            v1.summary.tensor_summary("scope/tensor", tf.reshape(tf.constant(numbers), [2, 12])),
        ]
        writer = v1.summary.FileWriter(folder)
        writer.add_summary(session.run(v1.summary.merge(ops)), 3)
        writer.close()


def shown_by(board, tag):
    """The plugin that shows a tensor, and what it is told. A tensor that none shows has no metadata."""
    if tag not in board.summary_metadata:
        return ("", b"")
    data = board.summary_metadata[tag].plugin_data
    return (data.plugin_name, data.content)


def every_kind_alike(folder):
    boards = []
    for part, write in [("ours", lambda path: run("show", path)), ("theirs", written_by_tensorflow)]:
        path = os.path.join(folder, part)
        write(path)
        board = EventAccumulator(path, size_guidance={"tensors": 0, "histograms": 0, "images": 0})
        board.Reload()
        boards.append(board)
    ours, theirs = boards
    tags = lambda board: {kind: sorted(t.removesuffix("/pr_curves") for t in found) for kind, found in board.Tags().items() if isinstance(found, list)}
    assert tags(ours) == tags(theirs), (ours.Tags(), theirs.Tags())
    assert ours.Histograms("scope/histogram")[0].histogram_value == theirs.Histograms("scope/histogram")[0].histogram_value
    for tag in ours.Tags()["images"]:
        [a], [b] = ours.Images(tag), theirs.Images(tag)
        assert (a.step, a.width, a.height) == (b.step, b.width, b.height) == (3, 2, 2)
        same = tf.io.decode_png(a.encoded_image_string) == tf.io.decode_png(b.encoded_image_string)
        assert np.all(same), tag
    for tag in theirs.Tags()["tensors"]:
        [a], [b] = ours.Tensors(tag.removesuffix("/pr_curves")), theirs.Tensors(tag)
        assert np.all(tf.make_ndarray(a.tensor_proto) == tf.make_ndarray(b.tensor_proto)), tag
        plugins = [shown_by(ours, tag.removesuffix("/pr_curves")), shown_by(theirs, tag)]
        assert plugins[0] == plugins[1], plugins
    print(f"  every kind of summary is as TensorFlow writes it: {', '.join(sorted(t for k in tags(ours).values() for t in k))}")


def read_by_us(folder):
    with tf.Graph().as_default() as graph:
        tf.compat.v1.placeholder(tf.float32, name="x")
        writer = tf.compat.v1.summary.FileWriter(folder, graph)
        expected = []
        for step in range(50):
            value = float(np.float32(0.1) * np.float32(step))
            summary = tf.compat.v1.Summary()
            summary.value.add(tag="loss", simple_value=value)
            summary.value.add(tag="path", tensor=tf.make_tensor_proto(f"model.ckpt-{step}", dtype=tf.string))
            writer.add_summary(summary, step)
            expected += [f"{step} loss {bits(value)}", f"{step} path model.ckpt-{step}"]
        writer.add_session_log(SessionLog(status=SessionLog.STOP), 50)
        writer.close()
    [path] = files(folder)
    lines = run("read", path)
    assert lines[0] == "0 version brain.Event:2" and lines[1].startswith("0 graph "), lines[:3]
    ours = [line for line in lines if line.split()[1] in ("loss", "path")]
    assert ours == expected, (ours[:4], expected[:4])
    assert lines[-1] == "50 session Stop ", lines[-1]
    print(f"  we read {len(lines)} lines of TensorFlow's file")


if __name__ == "__main__":
    ours = os.path.join(FOLDER, "ours")
    iterated_by_tensorflow(ours)
    shown_by_tensorboard(ours)
    every_kind_alike(os.path.join(FOLDER, "kinds"))
    read_by_us(os.path.join(FOLDER, "theirs"))
