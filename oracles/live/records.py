"""Exchanges records and tables with our program: what TensorFlow wrote is read by us; what we wrote is read by TensorFlow, Python's csv and pandas.

usage: records.py EXAMPLE_PROGRAM EMPTY_FOLDER
"""

import csv
import gzip
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import tensorflow as tf

PROGRAM, FOLDER = sys.argv[1:]
N_ROWS = 2_000
COMPRESSIONS = {"plain.tfrecord": "", "packed.gz": "GZIP", "packed.zlib": "ZLIB"}
WORDS = [b"", b"a", b"say \"no\"", b"a,b", b"tab\there", b"two\nlines", b"\r\n", b" spaces ", "žluťoučký".encode(), b"NA"]
EXAMPLE = {
    "id": tf.io.FixedLenFeature([], tf.int64),
    "pair": tf.io.FixedLenFeature([2], tf.float32),
    "name": tf.io.FixedLenFeature([], tf.string),
    "tags": tf.io.RaggedFeature(tf.string),
    "clicks": tf.io.RaggedFeature(tf.int64),
    "scores": tf.io.RaggedFeature(tf.float32),
}


def feature(values):
    if isinstance(values, np.ndarray) and values.dtype == np.float32:
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    if isinstance(values, np.ndarray):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def floats(random, n):
    """Any bits but those of NaN."""
    values = random.integers(0, 2**32, n, np.uint64).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(values), np.float32(0.1), values)


def write(path, compression, rows):
    with tf.io.TFRecordWriter(path, compression) as writer:
        for row in rows:
            writer.write(row.SerializeToString())


def run(*arguments):
    result = subprocess.run([PROGRAM, *arguments], check=True, capture_output=True, text=True)
    return dict(line.split(" = ", 1) for line in result.stdout.splitlines())


def text(values):
    """Values as the program prints them."""
    if isinstance(values, np.ndarray) and values.dtype == np.float32:
        return " ".join(f"{v:08x}" for v in values.reshape(-1).view(np.uint32))
    if isinstance(values, np.ndarray):
        return " ".join(str(v) for v in values.reshape(-1))
    return " ".join("x" + v.hex() for v in values)


def expect_equal(ours, theirs):
    assert ours.keys() == theirs.keys(), (ours.keys(), theirs.keys())
    for name in theirs:
        assert ours[name] == theirs[name], f"{name}\nours   {ours[name][:200]}\ntheirs {theirs[name][:200]}"


def random_rows(random):
    def row(i):
        return {
            "id": random.integers(-(2**63), 2**63 - 1, 1, np.int64),
            "pair": floats(random, 2),
            "name": None if i % 5 == 3 else [random.choice(WORDS)],
            "tags": None if i % 7 == 2 else [random.bytes(random.integers(0, 9)) for _ in range(i % 4)],
            "clicks": None if i % 11 == 1 else random.integers(-(2**40), 2**40, i % 3, np.int64),
            "scores": floats(random, i % 130),
        }
    return [row(i) for i in range(N_ROWS)]


def printed(rows):
    """What our program should print: missing names are its default, other missing features have no values."""
    expected = {name: " ".join(text(row[name]) for row in rows) for name in ["id", "pair"]}
    expected["name"] = " ".join(text(row["name"] or [b"nobody"]) for row in rows)
    for name in ["tags", "clicks", "scores"]:
        expected[name] = "|".join("" if row[name] is None else text(row[name]) for row in rows)
    return expected


def read_by_tensorflow(paths, compression):
    """The features that our program wrote, as it would print them; parsed in two batches."""
    parts = {name: [] for name in EXAMPLE}
    for batch in tf.data.TFRecordDataset(paths, compression).batch(N_ROWS // 2 + 1):
        for name, value in tf.io.parse_example(batch, EXAMPLE).items():
            if isinstance(value, tf.RaggedTensor):
                rows = np.split(value.values.numpy(), value.row_splits.numpy()[1:-1])
            else:
                rows = [np.atleast_1d(row) for row in value.numpy()]
            rows = [list(row) for row in rows] if value.dtype == tf.string else rows
            parts[name] += [text(row) for row in rows]
    return {name: ("|" if name in ["tags", "clicks", "scores"] else " ").join(rows) for name, rows in parts.items()}


def examples(random):
    rows = random_rows(random)
    serialized = [
        tf.train.Example(features=tf.train.Features(feature={k: feature(v) for k, v in row.items() if v is not None}))
        for row in rows
    ]
    expected = printed(rows)
    for name, compression in COMPRESSIONS.items():
        path, folder = os.path.join(FOLDER, name), os.path.join(FOLDER, f"from-{name}")
        write(path, compression, serialized)
        expect_equal(run("examples", path, folder), expected)
    print(f"  we read {N_ROWS} Examples of TensorFlow, plain and packed in {len(COMPRESSIONS) - 1} ways")

    expect_equal(read_by_tensorflow([os.path.join(folder, "rows.tfrecord")], ""), expected)
    expect_equal(read_by_tensorflow([os.path.join(folder, "rows.gz")], "GZIP"), expected)
    expect_equal(read_by_tensorflow([os.path.join(folder, "rows.zlib")], "ZLIB"), expected)
    shards = [os.path.join(folder, f"shards-{i:05}-of-00003") for i in range(3)]
    dealt = printed([row for i in range(3) for row in rows[i::3]])
    expect_equal(read_by_tensorflow(shards, ""), dealt)
    # And we read by pattern what we wrote to three files.
    expect_equal(run("examples", os.path.join(folder, "shards-*"), os.path.join(FOLDER, "again")), dealt)
    print(f"  TensorFlow reads {N_ROWS} Examples of ours, plain, packed in 2 ways, in 3 files")
    return rows, folder


def tables(rows, folder):
    """The dense features as CSV."""
    names = [(row["name"] or [b"nobody"])[0].decode() for row in rows]
    ids, pairs = [int(row["id"][0]) for row in rows], np.array([row["pair"] for row in rows])
    header = ["id", "pair_0", "pair_1", "name"]

    with open(os.path.join(folder, "rows.csv"), newline="", encoding="utf-8") as file:
        first, *lines = csv.reader(file, strict=True)
    assert first == header, first
    check_lines(lines, ids, pairs, names)
    with gzip.open(os.path.join(folder, "rows.tsv.gz"), "rt", newline="", encoding="utf-8") as file:
        check_lines(list(csv.reader(file, delimiter="\t", strict=True)), ids, pairs, names)

    types = {"id": np.int64, "pair_0": np.float32, "pair_1": np.float32, "name": str}
    frame = pd.read_csv(os.path.join(folder, "rows.csv"), dtype=types, keep_default_na=False, float_precision="round_trip")
    assert list(frame.columns) == header and len(frame) == N_ROWS, frame
    assert frame["id"].tolist() == ids and frame["name"].tolist() == names
    assert (frame[["pair_0", "pair_1"]].to_numpy(np.float32).view(np.uint32) == pairs.view(np.uint32)).all()
    print(f"  Python's csv and pandas read our {N_ROWS} lines, comma and tab, plain and packed")


def check_lines(lines, ids, pairs, names):
    assert len(lines) == N_ROWS, len(lines)
    assert [int(line[0]) for line in lines] == ids
    assert (np.array([line[1:3] for line in lines], np.float64).astype(np.float32).view(np.uint32) == pairs.view(np.uint32)).all()
    assert [line[3] for line in lines] == names


def sequences(random):
    expected = {name: [] for name in ["user", "tags", "words", "words/lengths", "vectors"]}
    rows = []
    for i in range(N_ROWS):
        words = None if i % 5 == 0 else [[random.choice(WORDS) for _ in range((i + j) % 3)] for j in range(i % 4)]
        vectors = None if i % 3 == 0 else [floats(random, 2) for _ in range(i % 6)]
        context = {"user": np.array([i], np.int64)} | ({} if i % 2 else {"tags": [b"x", b""]})
        lists = {"words": words, "vectors": vectors}
        rows.append(tf.train.SequenceExample(
            context=tf.train.Features(feature={k: feature(v) for k, v in context.items()}),
            feature_lists=tf.train.FeatureLists(feature_list={
                k: tf.train.FeatureList(feature=[feature(step) for step in v]) for k, v in lists.items() if v is not None
            }),
        ))
        expected["user"].append(str(i))
        expected["tags"].append(text(context.get("tags", [])))
        expected["words"].append(" ".join(text(step) for step in words or [] if step))
        expected["words/lengths"].append(" ".join(str(len(step)) for step in words or []))
        expected["vectors"].append(" ".join(text(step) for step in vectors or []))
    expected = {name: (" " if name == "user" else "|").join(values) for name, values in expected.items()}
    for name, compression in {"sequences.tfrecord": "", "sequences.gz": "GZIP"}.items():
        path = os.path.join(FOLDER, name)
        write(path, compression, rows)
        expect_equal(run("sequences", path), expected)
    print(f"  we read {N_ROWS} SequenceExamples of TensorFlow, plain and GZIP")


if __name__ == "__main__":
    random = np.random.default_rng(4)
    tables(*examples(random))
    sequences(random)
