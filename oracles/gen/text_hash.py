"""Hash buckets and crosses for text.py."""

import numpy as np
import tensorflow as tf

from fixture import strings
from text_cases import case, random, random_bytes, random_words, write


def hashes():
    lengths = [*range(0, 140), 191, 192, 193, 255, 256, 257, 511, 512, 513, 1000]
    texts = [random_bytes(n) for n in lengths] + [b"\0", b"\0\0", b"\xff" * 9, "café".encode(), "\U0001f600".encode()]
    fingerprints = tf.fingerprint(tf.constant(texts)).numpy().view(np.uint64)
    case("fingerprint", dict(strings=texts, hashes=fingerprints.ravel()))
    longer = texts + [texts[lengths.index(1000)][:n] for n in range(140, 191)]
    case("fingerprint128", dict(strings=longer, hashes=tf.raw_ops.SdcaFprint(input=longer)))
    for n in [1, 2, 7, 1000, 2**31, 2**40 + 7, 2**63 - 1]:
        buckets = dict(
            fast=tf.strings.to_hash_bucket_fast(texts, n),
            legacy=tf.raw_ops.StringToHashBucket(string_tensor=texts, num_buckets=n),
        )
        case("hash_bucket", buckets, n=n)
    for key in [(0, 0), (1, 2), (-1, 2**62), (2**63 - 1, -(2**63))]:
        buckets = tf.strings.to_hash_bucket_strong(texts, 2**40 + 7, key)
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
                arrays[f"{kind}{i}"] = np.array(values, np.int64) if kind == "int" else strings(values)
                arrays[f"splits{i}"] = splits
            crossed = tf.sparse.cross_hashed(inputs, n_buckets, hash_key)
            counts = np.bincount(crossed.indices[:, 0].numpy(), minlength=n_rows)
            arrays.update(ids=crossed.values, splits=np.concatenate([[0], np.cumsum(counts)]))
            case("cross", arrays, n_rows=n_rows, n_buckets=n_buckets, hash_key=hash_key or 0)


def main():
    hashes()
    crosses()
    write("hash")
