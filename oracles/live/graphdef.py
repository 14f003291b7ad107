"""Stock TensorFlow runs and differentiates random programs that we built, and must get our numbers.

usage: graphdef.py EXAMPLE_PROGRAM EMPTY_FOLDER [FIRST_SEED COUNT]

Of each program (the example's header describes the files):
 - TensorFlow's values of the fetches and our gradient nodes equal those our executors computed;
 - `tf.gradients` of the forward nodes equals our gradient nodes, both run by TensorFlow.
Floats are equal within TOLERANCE of the largest magnitude of the tensor, everything else exactly.
"""

import collections
import concurrent.futures
import glob
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2

v1 = tf.compat.v1
TOLERANCE = 1e-5
# A tensor of smaller numbers than this is compared as if this were its largest: sums that cancel keep the rounding of their terms.
SMALLEST = 1.0
EXECUTORS = ["reference", "cpu"]
PROCESSES = 2
# TensorFlow's own kernels have no gradient of a dilated convolution; oneDNN's have, but fail on empty images.
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"


def config():
    """Threads cost more than they give on tensors this small, and rewriting the graph would hide what it says."""
    settings = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    settings.graph_options.rewrite_options.disable_meta_optimizer = True
    settings.graph_options.optimizer_options.opt_level = -1
    return settings


def difference(ours, theirs):
    """Why two arrays are not the same, or None."""
    # A single string comes as bytes, which NumPy would cut at trailing zeros.
    ours, theirs = [np.array(x, dtype=object) if isinstance(x, bytes) else np.asarray(x) for x in (ours, theirs)]
    if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
        return f"{ours.dtype}{list(ours.shape)} is not {theirs.dtype}{list(theirs.shape)}"
    if ours.size == 0:
        return None
    if ours.dtype != np.float32:
        wrong = int(np.sum(ours != theirs))
        return f"{wrong} of {ours.size} elements differ" if wrong else None
    if not np.array_equal(np.isfinite(ours), np.isfinite(theirs)):
        return "one of them is not finite"
    finite = np.isfinite(theirs)
    ours, theirs = ours[finite].astype(np.float64), theirs[finite].astype(np.float64)
    if ours.size == 0:
        return None
    largest = max(np.max(np.abs(theirs)), np.max(np.abs(ours)), SMALLEST)
    error = np.max(np.abs(ours - theirs)) / largest
    return f"error {error:.1e} of the largest, {largest:.3g}" if error > TOLERANCE else None


class Case:
    """A program as the example wrote it."""

    def __init__(self, graph, case):
        self.graph = graph_pb2.GraphDef.FromString(graph)
        message = attr_value_pb2.NameAttrList.FromString(case)
        self.seed = message.name
        names = lambda key: [name.decode() for name in message.attr[key].list.s]
        self.wrt, self.gradients, self.fetches = names("wrt"), names("gradients"), names("fetches")
        self.initializers = names("initializers")
        self.loss = message.attr["loss"].s.decode()
        self.values = collections.defaultdict(dict)
        for key, attr in message.attr.items():
            kind, _, name = key.partition(":")
            if name:
                self.values[kind][name] = tf.make_ndarray(attr.tensor)

    def is_dilated(self):
        return any(max(node.attr["dilations"].list.i, default=1) > 1 for node in self.graph.node if "dilations" in node.attr)

    def failures(self):
        """What TensorFlow computes differently."""
        with tf.Graph().as_default() as graph, v1.Session(config=config()) as session:
            tf.import_graph_def(self.graph, name="")
            tensor = lambda name: graph.get_tensor_by_name(name if ":" in name else name + ":0")
            # What neither a fetch nor the loss depends on is not in the graph.
            present = {node.name for node in self.graph.node}
            for name, value in self.values["variable"].items():
                if name in present:
                    session.run(tf.raw_ops.AssignVariableOp(resource=tensor(name), value=tf.constant(value)))
            session.run([graph.get_operation_by_name(name) for name in self.initializers])
            feeds = {tensor(n): v for n, v in self.values["feed"].items() if n in present}
            wrt = [(x, g) for x, g in zip(self.wrt, self.gradients) if x in present]
            theirs = v1.gradients(tensor(self.loss), [tensor(x) for x, _ in wrt])
            wanted = {name: tensor(name) for name in self.fetches + [g for g in self.gradients if g]}
            backward = {x: tf.convert_to_tensor(t) for (x, _), t in zip(wrt, theirs) if t is not None}
            values, backward = session.run([wanted, backward], feeds)
        for name, value in values.items():
            for executor in EXECUTORS:
                if why := difference(self.values[executor][name], value):
                    yield f"{executor}: {name}: {why}"
        for x, ours in wrt:
            ours = values[ours] if ours else np.zeros_like(backward.get(x, 0))
            why = difference(ours, backward.get(x, np.zeros_like(ours)))
            if why:
                yield f"gradient of {x}: {why}"


def check_unrepeatable(path):
    """Random ops draw from our distributions."""
    with tf.Graph().as_default() as graph, v1.Session(config=config()) as session:
        with open(path, "rb") as file:
            tf.import_graph_def(graph_pb2.GraphDef.FromString(file.read()), name="")
        names = ["RandomUniform", "RandomNormal", "TruncatedNormal", "RandomIntegers"]
        x = np.linspace(-1, 1, 20_000).astype(np.float32)
        uniform, normal, truncated, integers = session.run([n + ":0" for n in names], {"x:0": x})
    assert uniform.shape == (20_000, 3) and 0 <= uniform.min() and uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01 and abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02
    assert np.abs(truncated).max() <= 2 and abs(truncated.std() - 0.88) < 0.02
    assert integers.dtype == np.int64 and sorted(set(integers.flat)) == [-2, -1, 0, 1, 2]


def reason(error):
    """The line of an error that names the node, without the many that say where Python was."""
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith(("  ", "Original", "Detected"))]
    return " ".join(lines)[:300]


def check_file(path):
    """(programs that passed, failures) among those of a file that this process is set up for."""
    records = iter(v1.io.tf_record_iterator(path))
    passed, failed = 0, []
    for graph in records:
        case = Case(graph, next(records))
        if case.is_dilated() != (os.environ[ONEDNN] == "1"):
            continue
        try:
            failures = list(case.failures())
        except Exception as error:
            failures = ["TensorFlow refuses: " + reason(error)]
        passed += not failures
        if failures:
            failed.append(f"program {case.seed}: " + "; ".join(failures))
    return passed, failed


def quiet():
    v1.disable_eager_execution()
    v1.logging.set_verbosity(v1.logging.ERROR)


def check_all(files):
    """(programs that passed, failures) with this setting of oneDNN."""
    passed, failed = 0, []
    with concurrent.futures.ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"), quiet) as pool:
        for path, result in [(path, pool.submit(check_file, path)) for path in files]:
            try:
                good, bad = result.result()
            except concurrent.futures.process.BrokenProcessPool:
                good, bad = 0, [f"{os.path.basename(path)}: TensorFlow aborted"]
            passed += good
            failed += bad
    return passed, failed


def main():
    program, folder = sys.argv[1:3]
    first, count = sys.argv[3:] or ["0", "1200"]
    subprocess.run([program, folder, first, count], check=True)
    files = sorted(glob.glob(os.path.join(folder, "programs-*.tfrecord")))
    check_unrepeatable(os.path.join(folder, "unrepeatable.pb"))
    passed, failed = 0, []
    for setting in ["0", "1"]:
        os.environ[ONEDNN] = setting
        good, bad = check_all(files)
        passed += good
        failed += bad
    for failure in failed[:50]:
        print(failure)
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(bool(failed) or passed != int(count))


if __name__ == "__main__":
    main()
