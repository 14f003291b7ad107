"""Exports of ours in stock TensorFlow: it loads them in both ways, and answers as we do.

    export.py EXPORT_EXCHANGE FOLDER

Rows are random, with unknown, empty and odd strings, ids out of range, and rows without values.
"""

import os
import pathlib
import random
import subprocess
import sys

import numpy as np
import tensorflow as tf

SEED = 5
N_ROWS = 1000
CASES = ["baseline", "linear", "linear_classes", "linear_regressor", "dnn", "dnn_classes", "dnn_batch_norm", "combined",
         "combined_regressor", "heads"]
# The case that saved_model_cli shows; it takes seconds to start.
SHOWN = "combined"
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
        values = [row[name] for row in rows]
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


def differences(found, expected, what):
    """Numbers within 1e-5 of their size; strings and ids must be equal."""
    found = np.asarray(found).reshape(expected.shape) if np.asarray(found).size == expected.size else np.asarray(found)
    if found.shape != expected.shape:
        return [f"{what}: the shape is {found.shape}; expected {expected.shape}"]
    if expected.dtype.kind in "SOi":
        # A cut name of a class would be equal as text only.
        wrong = np.sum(found.astype(object) != expected.astype(object))
        return [f"{what}: {wrong} of {expected.size} values differ"] if wrong else []
    error = np.abs(found - expected) / np.maximum(1, np.abs(expected))
    return [f"{what}: off by {error.max():.3g}"] if not error.max() <= 1e-5 else []


def ids_where_clear(found, expected, logits):
    """Classes are compared where the two best logits differ by more than their error."""
    two = np.concatenate([np.zeros_like(logits), logits], axis=1) if logits.shape[1] == 1 else np.sort(logits, axis=1)[:, -2:]
    clear = np.abs(two[:, 1] - two[:, 0]) > 1e-4
    return found[clear], expected[clear]


def check_answers(answers, expected, what):
    complaints = []
    for name, value in answers.items():
        want = expected.get(name)
        if want is None:
            complaints.append(f"{what}: the output {name} is not a prediction of ours")
            continue
        head = name.rsplit("/", 1)[0] + "/" if "/" in name else ""
        if name.rsplit("/", 1)[-1] in ("class_ids", "classes"):
            value, want = ids_where_clear(value.reshape(want.shape), want, expected[head + "logits"])
        complaints += differences(value, want, f"{what}: {name}")
    return complaints


def check_session(export, fed, answers, what):
    """The loader of sessions gives the answers of the other loader."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        meta = tf.compat.v1.saved_model.load(session, ["serve"], export)
        signature = meta.signature_def["serving_default"]
        fetches = {key: info.name for key, info in signature.outputs.items()}
        found = session.run(fetches, {signature.inputs[key].name: value for key, value in fed.items()})
    return [text for key, value in found.items() for text in differences(value, answers[key], f"{what}: session: {key}")]


def check_signature(name, answers, expected, what):
    """The answers of a signature, by its kind. `expected` has the predictions of one head."""
    if set(answers) == {"outputs"}:
        return differences(answers["outputs"], expected.get("logistic", expected.get("predictions")), what)
    if set(answers) == {"scores", "classes"}:
        return (differences(answers["scores"], expected["probabilities"], what) +
                differences(answers["classes"], expected["all_classes"], what))
    return check_answers(answers, expected, what)


def of_head(case, signature, expected):
    """The predictions that a signature has: of one head, under their plain names, or of all."""
    if case != "heads" or signature == "predict":
        return expected
    head = {"serving_default": "binary"}.get(signature, signature.split("/")[0]) + "/"
    return {name[len(head):]: value for name, value in expected.items() if name.startswith(head)}


def check_case(program, folder, case, path, rows, serialized):
    place = folder / case
    place.mkdir()
    printed = subprocess.run([program, case, path, place], check=True, capture_output=True, text=True).stdout
    exports = dict(line.split(" = ") for line in printed.splitlines())
    predictions = ours(place / "predictions.tfrecord")
    # In an Example, an empty string is a value; in a dense feature, it is none.
    with_job = np.array([row["job"] != [b""] for row in rows])
    complaints, n_calls = [], 0
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
            complaints += check_signature(name, answers, expected, f"{case}: {kind}: {name}")
        complaints += check_session(export, *default, f"{case}: {kind}")
        if case != SHOWN:
            continue
        command = [sys.executable, "-m", "tensorflow.python.tools.saved_model_cli", "show", "--dir", export, "--all"]
        shown = subprocess.run(command, capture_output=True, text=True)
        if "signature_def['serving_default']" not in shown.stdout:
            complaints.append(f"{case}: {kind}: saved_model_cli shows {shown.stdout[-300:]} {shown.stderr[-300:]}")
    return complaints, n_calls


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    path, rows, serialized = examples(folder)
    complaints, n_calls = [], 0
    for case in os.environ.get("CASES", " ".join(CASES)).split():
        found, n = check_case(program, folder, case, path, rows, serialized)
        complaints += found
        n_calls += n
    for complaint in complaints:
        print(complaint)
    print(f"{n_calls} signatures answered {N_ROWS} rows each, {len(complaints)} differences")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
