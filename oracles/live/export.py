"""Exports of ours in stock TensorFlow: it loads them in both ways, and answers as we do.

    export.py EXPORT_EXCHANGE FOLDER

Rows are random, with unknown, empty and odd strings, ids out of range, and rows without values.
Numbers are equal within 1e-5 of their size, or within 4 times the difference that TensorFlow itself makes between batches of
1 and of 256, if that is larger. Classes are equal where the logits differ by more.
"""

import functools
import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import tensorflow as tf

SEED = 5
N_ROWS = 1000
TOLERANCE = 1e-5
CASES = ["baseline", "linear", "linear_classes", "linear_regressor", "dnn", "dnn_again", "dnn_classes", "dnn_batch_norm", "combined",
         "combined_regressor", "heads", "cnn", "lstm", "recurrent", "attention", "custom", "layers"]
# The case that saved_model_cli shows; it takes seconds to start.
SHOWN = "combined"
# Models that are loaded together: the first two differ only in their weights and in the order of a vocabulary.
TOGETHER = ["dnn", "dnn_again", "lstm", "recurrent"]
WITHOUT_TABLES = ["lstm", "recurrent"]
PIXELS = 8 * 8 * 4
# What a raw input of a ragged feature has where there is no value.
NOTHING = {tf.string: b"", tf.int64: -1, tf.float32: 0.0}
WORDS = [b"nurse", b"cook", b"clerk", b"pilot", "König".encode(), b"", b"\xff\xfe", b"a", b"b", b"c", b"d", b"e", b" a", b"x" * 300]


def feature(values):
    if isinstance(values[0] if len(values) else b"", bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def row(dice, rng):
    """One row. Strings that stand for nothing in a padded input are only in single features."""
    words = [w for w in dice.choices(WORDS, k=dice.randint(0, 4)) if w]
    tags = [w for w in dice.choices(WORDS, k=dice.randint(0, 3)) if w]
    ids = [dice.choice([0, 1, 5, 19, 20, 1000]) for _ in range(dice.randint(0, 3))]
    height = float(rng.normal() * dice.choice([1, 1, 1, 1000, 1e-30]))
    binary = int(height > 0.2)
    values = {
        "age": [dice.randint(-5, 100)], "height": [height], "vec": [float(v) for v in rng.normal(size=3)],
        "job": [dice.choice(WORDS)], "words": words, "tags": tags, "weights": [float(v) for v in rng.uniform(0.1, 2, len(tags))],
        "steps": [float(v) for v in rng.normal(size=len(words))], "pixels": [float(v) for v in rng.normal(size=PIXELS)],
        "ids": ids, "binary": [binary], "class": [dice.randint(0, 2)], "target": [float(rng.normal())],
    }
    return {name: value for name, value in values.items() if len(value)}


def examples(folder):
    dice, rng = random.Random(SEED), np.random.default_rng(SEED)
    rows = [row(dice, rng) for _ in range(N_ROWS)]
    path = folder / "rows.tfrecord"
    serialized = [tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in row.items()})).SerializeToString()
                  for row in rows]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for one in serialized:
            writer.write(one)
    return path, rows, serialized


def raw(rows, name, spec):
    """The values of a feature as a signature's input takes them."""
    dtype = spec.dtype
    if len(spec.shape) == 1:
        values = [row[name][0] for row in rows]
    elif spec.shape[1] is not None:
        values = np.reshape([row[name] for row in rows], [len(rows), *spec.shape[1:]])
    else:
        width = max(len(row.get(name, [])) for row in rows)
        values = [list(row.get(name, [])) + [NOTHING[dtype]] * (width - len(row.get(name, []))) for row in rows]
    return tf.constant(values, dtype=dtype)


def ours(path):
    """Our predictions: arrays by name."""
    found = {}
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
        for name, value in tf.train.Example.FromString(record).features.feature.items():
            kind = value.WhichOneof("kind")
            found.setdefault(name, []).append(list(getattr(value, kind).value))
    return {name: np.array(values) for name, values in found.items()}


def own_differences(signature, fed):
    """The largest difference between TensorFlow's answers to batches of 1 and of 256, by output."""
    n = len(next(iter(fed.values())))
    def answers(size):
        parts = [signature(**{key: value[i:i + size] for key, value in fed.items()}) for i in range(0, n, size)]
        return {key: np.concatenate([part[key].numpy() for part in parts]) for key in parts[0]}
    small, large = answers(1), answers(256)
    return {key: np.abs(small[key] - large[key]).max() for key in small if small[key].dtype.kind == "f"}


def differences(found, expected, what, own=lambda: 0.0):
    """Numbers within 1e-5 of the largest of their row, since sums that cancel keep the rounding of their terms, or 4 times
    TensorFlow's own difference; strings and ids must be equal."""
    found = np.asarray(found).reshape(expected.shape) if np.asarray(found).size == expected.size else np.asarray(found)
    if found.shape != expected.shape:
        return [f"{what}: the shape is {found.shape}; expected {expected.shape}"]
    if expected.dtype.kind in "SOi":
        # A cut name of a class would be equal as text only.
        wrong = np.sum(found.astype(object) != expected.astype(object))
        return [f"{what}: {wrong} of {expected.size} values differ"] if wrong else []
    error = np.abs(found - expected)
    largest = np.abs(expected).max(axis=tuple(range(1, expected.ndim)), keepdims=True, initial=1)
    beyond = error - TOLERANCE * largest
    if (beyond <= 0).all() or (error <= 4 * own()).all():
        return []
    return [f"{what}: off by {error[np.unravel_index(np.argmax(beyond), error.shape)]:.3g}; TensorFlow alone by {own():.3g}"]


def ids_where_clear(found, expected, logits):
    """Classes are compared where the two best logits differ by more than their error."""
    two = np.concatenate([np.zeros_like(logits), logits], axis=1) if logits.shape[1] == 1 else np.sort(logits, axis=1)[:, -2:]
    clear = np.abs(two[:, 1] - two[:, 0]) > 2 * TOLERANCE * np.maximum(1, np.abs(two).max(axis=1))
    return found[clear], expected[clear]


def check_answers(answers, expected, what, own):
    complaints = []
    for name, value in answers.items():
        want = expected.get(name)
        if want is None:
            complaints.append(f"{what}: the output {name} is not a prediction of ours")
            continue
        head = name.rsplit("/", 1)[0] + "/" if "/" in name else ""
        if name.rsplit("/", 1)[-1] in ("class_ids", "classes"):
            value, want = ids_where_clear(value.reshape(want.shape), want, expected[head + "logits"])
        complaints += differences(value, want, f"{what}: {name}", lambda: own()[name])
    return complaints


class InSession:
    """An export that the loader of sessions has loaded, with a session of its own."""

    def __init__(self, export, graph, scope=None):
        self.session = tf.compat.v1.Session(graph=graph)
        with graph.as_default():
            meta = tf.compat.v1.saved_model.load(self.session, ["serve"], export, import_scope=scope)
        self.signature, self.scope = meta.signature_def["serving_default"], f"{scope}/" if scope else ""

    def ask(self, fed):
        fetches = {key: self.scope + info.name for key, info in self.signature.outputs.items()}
        return self.session.run(fetches, {self.scope + self.signature.inputs[key].name: value for key, value in fed.items()})


def same_answers(found, answers, what):
    return [text for key, value in found.items() for text in differences(value, answers[key], f"{what}: {key}")]


def check_session(export, fed, answers, what):
    """The loader of sessions gives the answers of the other loader."""
    return same_answers(InSession(export, tf.Graph()).ask(fed), answers, f"{what}: session")


def check_together(kept):
    """Exports that are in one process at the same time keep their variables, tables and functions."""
    one_graph = tf.Graph()
    eager = {case: tf.saved_model.load(export, tags=["serve"]) for case, (export, _, _) in kept.items()}
    apart = {case: InSession(export, tf.Graph()) for case, (export, _, _) in kept.items()}
    # TF: of several models in one graph, the loader fills the tables of the first only. These have none.
    scoped = {case: InSession(kept[case][0], one_graph, case) for case in WITHOUT_TABLES}
    complaints = []
    for case, (_, fed, answers) in kept.items():
        tensors = {key: tf.constant(value) for key, value in fed.items()}
        found = {key: value.numpy() for key, value in eager[case].signatures["serving_default"](**tensors).items()}
        complaints += same_answers(found, answers, f"{case}: with others")
        complaints += same_answers(apart[case].ask(fed), answers, f"{case}: with others, in a session")
        if case in scoped:
            complaints += same_answers(scoped[case].ask(fed), answers, f"{case}: with others, in one graph")
    first, second = [kept[case][2]["logits"] for case in TOGETHER[:2]]
    if np.abs(first - second).max() < 0.01:
        complaints.append(f"{TOGETHER[0]} and {TOGETHER[1]} cannot be told apart")
    return complaints


def check_sequences(export, rows, predictions):
    """Sequences without a step, and the assertion that two sequences have the same length."""
    signature = tf.saved_model.load(export, tags=["serve"]).signatures["serving_default"]
    session = InSession(export, tf.Graph())
    inputs = signature.structured_input_signature[1]
    complaints = []
    for i in [i for i, row in enumerate(rows) if "words" not in row][:3]:
        fed = {key: raw(rows[i:i + 1], key, spec) for key, spec in inputs.items()}
        answers = {"eager": signature(**fed)["logits"].numpy(),
                   "session": session.ask({key: value.numpy() for key, value in fed.items()})["logits"]}
        for way, logits in answers.items():
            complaints += differences(logits, predictions["logits"][i:i + 1], f"no steps, {way}")
    one = {**rows[0], "words": [b"a", b"b"], "steps": [1.0, 2.0, 3.0]}
    fed = {key: raw([one], key, spec) for key, spec in inputs.items()}
    asks = {"eager": lambda: signature(**fed), "session": lambda: session.ask({key: value.numpy() for key, value in fed.items()})}
    for way, ask in asks.items():
        try:
            ask()
            complaints.append(f"lengths that differ, {way}: there is no error")
        except tf.errors.InvalidArgumentError as error:
            if "the lengths of sequences differ at" not in str(error):
                complaints.append(f"lengths that differ, {way}: {error}")
    return complaints


def check_signature(answers, expected, what, own):
    """The answers of a signature, by its kind. `expected` has the predictions of one head."""
    if set(answers) == {"outputs"}:
        want = expected.get("logistic", expected.get("predictions"))
        return differences(answers["outputs"], want, what, lambda: own()["outputs"])
    if set(answers) == {"scores", "classes"}:
        return (differences(answers["scores"], expected["probabilities"], what, lambda: own()["scores"]) +
                differences(answers["classes"], expected["all_classes"], what))
    return check_answers(answers, expected, what, own)


def of_head(case, signature, expected):
    """The predictions that a signature has: of one head, under their plain names, or of all."""
    if case != "heads" or signature == "predict":
        return expected
    head = {"serving_default": "binary"}.get(signature, signature.split("/")[0]) + "/"
    return {name[len(head):]: value for name, value in expected.items() if name.startswith(head)}


def check_case(program, folder, case, path, rows, serialized):
    place = folder / case
    place.mkdir()
    ran = subprocess.run([program, case, path, place], capture_output=True, text=True)
    if ran.returncode:
        return [f"{case}: {ran.stderr[-2000:]}"], 0, None
    exports = dict(line.split(" = ") for line in ran.stdout.splitlines())
    predictions = ours(place / "predictions.tfrecord")
    # In an Example, an empty string is a value; in a dense feature, it is none.
    with_job = np.array([row["job"] != [b""] for row in rows])
    complaints, n_calls, kept_default = [], 0, None
    for kind, export in exports.items():
        loaded = tf.saved_model.load(export, tags=["serve"])
        for name, signature in sorted(loaded.signatures.items()):
            inputs = signature.structured_input_signature[1]
            is_examples = set(inputs) <= {"inputs", "examples"}
            fed = {key: tf.constant(serialized) if is_examples else raw(rows, key, spec) for key, spec in inputs.items()}
            answers = {key: value.numpy() for key, value in signature(**fed).items()}
            n_calls += 1
            if name == "serving_default":
                default = {key: value.numpy() for key, value in fed.items()}, answers
            kept = with_job if is_examples else np.full(len(rows), True)
            is_merged = kind == "both" and case == "heads" and name == "serving_default"
            expected = of_head(case, "predict" if is_merged else name, predictions)
            expected = {key: value[kept] for key, value in expected.items()}
            answers = {key: value[kept] for key, value in answers.items()}
            own = functools.cache(functools.partial(own_differences, signature, fed))
            complaints += check_signature(answers, expected, f"{case}: {kind}: {name}", own)
        complaints += check_session(export, *default, f"{case}: {kind}")
        kept_default = kept_default or (export, *default)
        if case != SHOWN:
            continue
        command = [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli", "show", "--dir", export, "--all"]
        shown = subprocess.run(command, capture_output=True, text=True)
        if "signature_def['serving_default']" not in shown.stdout:
            complaints.append(f"{case}: {kind}: saved_model_cli shows {shown.stdout[-300:]} {shown.stderr[-300:]}")
        # It ends with the ops of each graph, a set in no order.
        signatures = shown.stdout.split("The MetaGraph with tag set")[0].rstrip()
        if signatures != pathlib.Path(export).parent.with_suffix(".txt").read_text().rstrip():
            complaints.append(f"{case}: {kind}: saved_model_cli shows other signatures than inspect: {signatures[:300]}")
    if case == "lstm":
        complaints += check_sequences(exports["both"], rows, predictions)
    return complaints, n_calls, kept_default


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    path, rows, serialized = examples(folder)
    complaints, n_calls, kept = [], 0, {}
    for case in os.environ.get("CASES", " ".join(CASES)).split():
        found, n, kept[case] = check_case(program, folder, case, path, rows, serialized)
        complaints += found
        n_calls += n
    if all(kept.get(case) for case in TOGETHER):
        complaints += check_together({case: kept[case] for case in TOGETHER})
    for complaint in complaints:
        print(complaint)
    print(f"{n_calls} signatures answered {N_ROWS} rows each, {len(complaints)} differences")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
