"""Vocabulary files and lookups for text.py."""

import os
import pathlib
import tempfile

import numpy as np
import tensorflow as tf

from fixture import strings
from text_cases import answer, case, random, random_bytes, random_words, write


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
                terms = [term for _, term in sorted(zip(*(x.numpy().tolist() for x in exported[::-1])))]
                return dict(terms=np.array(terms, np.int64) if dtype == tf.int64 else strings(terms))
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


def main():
    vocabularies()
    write("vocabulary")
