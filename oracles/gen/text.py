"""Writes oracles/fixtures/text_*.txt: what TensorFlow's string ops and tables make of random and odd strings.

Run as `python oracles/gen/text.py` in an environment with tensorflow 2.15. The lines of a fixture:

    case <op> <key=token>...   an op and its settings
    <name> <token>...          its inputs and outputs in order; `-` stands for none
    error <token>              in place of outputs: TensorFlow refuses, with this message

A token is a number as Python prints it, or a string: an apostrophe and its bytes, those that are not plain written %XX.
"""

import os
import pathlib
import re
import tempfile

import numpy as np
import tensorflow as tf

SEED = 31
OUT = pathlib.Path(__file__).parent.parent / "fixtures"
PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:;!?*/()[]{}^$|\\<>&~@#'")
random = np.random.default_rng(SEED)
lines = []


def token(value):
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, (bytes, np.bytes_)):
        return "'" + "".join(chr(b) if b in PLAIN else f"%{b:02X}" for b in value)
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, np.float32):
        return repr(float(value))
    return str(value)


def case(op, arrays, **settings):
    lines.append(" ".join(["case", op] + [f"{key}={token(value)}" for key, value in settings.items()]))
    for name, array in arrays.items():
        values = array if isinstance(array, list) else np.asarray(array).ravel().tolist()
        lines.append(" ".join([name] + ([token(v) for v in values] or ["-"])))


def answer(op, inputs, compute, **settings):
    """A case whose outputs are those of compute(), or the message of the error it raises."""
    try:
        case(op, {**inputs, **compute()}, **settings)
    except (tf.errors.OpError, ValueError) as error:
        message = error.message if isinstance(error, tf.errors.OpError) else str(error)
        case(op, inputs, **settings)
        lines.append("error " + token(re.sub(r"{{.*?}} | \[Op:.*|/\S*/", "", message)))


def write(name):
    OUT.mkdir(exist_ok=True)
    (OUT / f"text_{name}.txt").write_text(
        f"# Made by oracles/gen/text.py, which explains the lines; tensorflow {tf.__version__}, "
        f"numpy {np.__version__}, seed {SEED}.\n" + "\n".join(lines) + "\n")
    lines.clear()


def random_bytes(n):
    return random.integers(0, 256, n, np.uint8).tobytes()


def random_words(n, longest=12, letters=b"abcdefghijklmnopqrstuvwxyz"):
    return [bytes(random.choice(list(letters), random.integers(1, longest + 1)).tolist()) for _ in range(n)]


def hashes():
    lengths = [*range(0, 140), 191, 192, 193, 255, 256, 257, 511, 512, 513, 1000]
    strings = [random_bytes(n) for n in lengths] + [b"\0", b"\0\0", b"\xff" * 9, "café".encode(), "\U0001f600".encode()]
    fingerprints = tf.fingerprint(tf.constant(strings)).numpy().view(np.uint64)
    case("fingerprint", dict(strings=strings, hashes=[int(h) for h in fingerprints.ravel()]))
    for n in [1, 2, 7, 1000, 2**31, 2**40 + 7, 2**63 - 1]:
        buckets = dict(
            fast=tf.strings.to_hash_bucket_fast(strings, n),
            legacy=tf.raw_ops.StringToHashBucket(string_tensor=strings, num_buckets=n),
        )
        case("hash_bucket", buckets, n=n)
    for key in [(0, 0), (1, 2), (-1, 2**62), (2**63 - 1, -(2**63))]:
        buckets = tf.strings.to_hash_bucket_strong(strings, 2**40 + 7, key)
        case("hash_bucket_strong", dict(buckets=buckets), n=2**40 + 7, key0=key[0], key1=key[1])
    ints = [0, 1, -1, 9, 10, 99, 100, 12345678, -(2**63), 2**63 - 1] + random.integers(-10**9, 10**9, 40).tolist()
    case("hash_bucket_ints", dict(ints=ints, buckets=tf.strings.to_hash_bucket_fast(tf.as_string(ints), 1000)), n=1000)


def crosses():
    def ragged(kind, n_rows, most):
        counts = random.integers(0, most + 1, n_rows)
        if kind == "int":
            values = random.integers(-5, 2**40, counts.sum()).tolist()
        else:
            values = random_words(counts.sum())
        return values, counts

    def dense(kind, n_rows, width):
        n = n_rows * width
        values = random.integers(-5, 2**40, n).tolist() if kind == "int" else random_words(n)
        return values, np.full(n_rows, width)

    for kinds, n_rows, most in [(["str", "str"], 7, 1), (["str", "int"], 9, 3), (["int", "str", "str"], 6, 4),
                                (["int", "int"], 12, 2), (["str"], 5, 3), (["int", "str", "int", "str"], 8, 3),
                                (["str", "str"], 300, 0), (["int", "str", "str"], 40, 0)]:
        for n_buckets, hash_key in [(1000, None), (0, 12345), (2**40, 0)]:
            # As tf.feature_column: sparse keys; `most` 0 stands for one value in every row, fed dense.
            make = (lambda kind: dense(kind, n_rows, 1)) if most == 0 else (lambda kind: ragged(kind, n_rows, most))
            keys = [make(kind) for kind in kinds]
            inputs, arrays = [], {}
            for i, (kind, (values, counts)) in enumerate(zip(kinds, keys)):
                splits = np.concatenate([[0], np.cumsum(counts)])
                values_tensor = tf.constant(values, tf.int64 if kind == "int" else tf.string)
                tensor = tf.RaggedTensor.from_row_splits(values_tensor, splits)
                inputs.append(tensor.to_tensor(shape=[n_rows, 1]) if most == 0 else tensor.to_sparse())
                arrays[f"{kind}{i}"] = values
                arrays[f"splits{i}"] = splits
            crossed = tf.sparse.cross_hashed(inputs, n_buckets, hash_key)
            counts = np.bincount(crossed.indices[:, 0].numpy(), minlength=n_rows)
            arrays.update(ids=crossed.values, splits=np.concatenate([[0], np.cumsum(counts)]))
            case("cross", arrays, n_rows=n_rows, n_buckets=n_buckets, hash_key=hash_key or 0)


def file_initializer(path, size, dtype, to_ids=True):
    whole, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    if to_ids:
        return tf.lookup.TextFileInitializer(path, dtype, whole, tf.int64, number, vocab_size=size)
    return tf.lookup.TextFileInitializer(path, tf.int64, number, tf.string, whole, vocab_size=size)


def vocabularies():
    with tempfile.TemporaryDirectory() as folder:
        def file(content):
            path = os.path.join(folder, str(len(os.listdir(folder))))
            pathlib.Path(path).write_bytes(content)
            return path

        def table(content, size, dtype):
            def compute():
                exported = tf.lookup.StaticHashTable(file_initializer(file(content), size, dtype), -1).export()
                return dict(terms=[term for _, term in sorted(zip(*(x.numpy().tolist() for x in exported[::-1])))])
            answer("file_ints" if dtype == tf.int64 else "file", {}, compute, content=content, size=size or 0)

        for content in [b"a\nb\nc\n", b"a\nb\nc", b"a\r\nb\r\n", b"a\rb\nc\n", b"\ra\n", b"a\r", b"a\nb\r", b"a\n\r",
                        b"a\r\r\nb\n", b"a\n\r\r\n", b"a\n\nc\n", b"a\n\r\nc\n", b"\na\n", b"a\n\n", b"", b"\n", b"\r",
                        b"a\nb\na\n", b" \nb ", b"a\0b\n\xff\xfe\nc d\n\te\n", b"\xef\xbb\xbfa\nb\n", b"a\x0b\n\x0c\n",
                        b"\n".join(random_words(50, 30)) + b"\n"]:
            table(content, None, tf.string)
        for size in [1, 2, 3, 4]:
            table(b"a\nb\n\na\n", size, tf.string)
        table(b"a\nb\n", 3, tf.string)
        table(b"a\nb\r", 2, tf.string)
        for content in [b"1\n2\n-3\n", b" 1\n2 \n\t3\x0b\r\n", b"+1\n", b"0x1\n", b"01\n2\n", b"01\n1\n", b"-0\n0\n", b"1.0\n",
                        b"a\n", b"1 2\n", b"--1\n", b"- 1\n", b"-\n", b" \n", b"1_0\n", b"9223372036854775807\n-9223372036854775808\n",
                        b"9223372036854775808\n", b"-9223372036854775809\n", b"0000000000000000000000000000000000012\n", b"1\n\n"]:
            table(content, None, tf.int64)

        path = file(b"a\nb\nc\n")
        ids = [0, 2, 1, 3, -1, 2**62, -(2**63)]
        reverse = tf.lookup.StaticHashTable(file_initializer(path, None, tf.string, to_ids=False), "UNK")
        case("reverse", dict(ids=ids, terms=reverse.lookup(tf.constant(ids, tf.int64))), unknown="UNK")
        repeated = file_initializer(file(b"a\nb\na\n"), None, tf.string, to_ids=False)
        terms = tf.lookup.StaticHashTable(repeated, "").lookup(tf.constant([0, 1, 2], tf.int64))
        case("reverse_repeated", dict(ids=[0, 1, 2], terms=terms), content=b"a\nb\na\n")

        # Terms of every length class beside strings that share all but a byte with one.
        terms = sorted({random_bytes(n % 40 + 1).replace(b"\n", b"").replace(b"\r", b"") for n in range(160)} - {b""})
        queries = [terms[i] for i in random.integers(0, len(terms), 150)]
        queries += [q[:-1] for q in queries[:50]] + [q + b"\0" for q in queries[:50]] + [b"", b"zz", b"\xff" * 70]
        for n_buckets in [0, 1, 3, 1000]:
            initializer = tf.lookup.KeyValueTensorInitializer(terms, tf.range(len(terms), dtype=tf.int64))
            if n_buckets:
                found = tf.lookup.StaticVocabularyTable(initializer, n_buckets)
            else:
                found = tf.lookup.StaticHashTable(initializer, -1)
            arrays = dict(terms=terms, queries=queries) if n_buckets == 0 else {}
            case("lookup", {**arrays, "ids": found.lookup(tf.constant(queries))}, n_buckets=n_buckets)
        ints = [10, 20, 30, -5, 0, 2**63 - 1, -(2**63)]
        queries = ints[::-1] + [1, 11, 12, 13, -1, -10, 2**62]
        initializer = tf.lookup.KeyValueTensorInitializer(
            tf.constant(ints, tf.int64), tf.range(len(ints), dtype=tf.int64), key_dtype=tf.int64)
        ids = tf.lookup.StaticVocabularyTable(initializer, 5).lookup(tf.constant(queries, tf.int64))
        case("lookup_ints", dict(terms=ints, queries=queries, ids=ids), n_buckets=5)


hashes()
crosses()
write("hash")
vocabularies()
write("vocabulary")
