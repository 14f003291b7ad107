"""Writes an event file with every kind of event and value that TensorFlow has, for crates/wire.

TensorFlow 2.15.1, Python 3.11, no randomness: times and host are fixed.  Run: python oracles/gen/events.py
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
from tensorflow.core.framework import summary_pb2
from tensorflow.core.util import event_pb2

FIXTURE = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "wire_events.tfevents"
Summary, Value = summary_pb2.Summary, summary_pb2.Summary.Value
Log = event_pb2.SessionLog


def graph():
    with tf.Graph().as_default() as g:
        tf.compat.v1.placeholder(tf.float32, [None, 2], name="x")
        return g.as_graph_def(), tf.compat.v1.train.export_meta_graph(clear_devices=True)


def values():
    histogram = summary_pb2.HistogramProto(min=-1, max=2.5, num=3, sum=1.5, sum_squares=7.25, bucket_limit=[0, 3], bucket=[1, 2])
    plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="scalars", content=b"\x01\x02")
    metadata = summary_pb2.SummaryMetadata(
        plugin_data=plugin, display_name="shown", summary_description="*what*", data_class=summary_pb2.DATA_CLASS_SCALAR
    )
    return [
        Value(tag="loss", simple_value=0.25),
        Value(tag="zero", node_name="n", simple_value=0.0),
        Value(tag="old", obsolete_old_style_histogram=b"\x00\xff"),
        Value(tag="image", image=Summary.Image(height=2, width=3, colorspace=4, encoded_image_string=b"png")),
        Value(tag="histo", histo=histogram),
        Value(tag="audio", audio=Summary.Audio(
            sample_rate=44100, num_channels=2, length_frames=7, encoded_audio_string=b"wav", content_type="audio/wav")),
        Value(tag="tensor", metadata=metadata, tensor=tf.make_tensor_proto([1.5, -2.0])),
        Value(tag="checkpoint_path", tensor=tf.make_tensor_proto("dir/model.ckpt-7", dtype=tf.string)),
    ]


def events():
    graph_def, meta_graph_def = graph()
    kinds = [
        dict(file_version="brain.Event:2", source_metadata=event_pb2.SourceMetadata(writer="tensorflow.core.util.events_writer")),
        dict(graph_def=graph_def.SerializeToString(deterministic=True)),
        dict(meta_graph_def=meta_graph_def.SerializeToString(deterministic=True)),
        dict(session_log=Log(status=Log.CHECKPOINT, checkpoint_path="dir/model.ckpt")),
        dict(step=1, session_log=Log(status=Log.START)),
        dict(step=2**40, summary=Summary(value=values())),
        dict(step=3, tagged_run_metadata=event_pb2.TaggedRunMetadata(tag="run", run_metadata=b"\x0a\x00")),
        dict(step=4, session_log=Log(status=Log.STOP, msg="done")),
    ]
    return [event_pb2.Event(wall_time=1_700_000_000.5 + i, **kind) for i, kind in enumerate(kinds)]


if __name__ == "__main__":
    with tf.io.TFRecordWriter(str(FIXTURE)) as writer:
        for event in events():
            writer.write(event.SerializeToString(deterministic=True))
