"""Ops that exported graphs use, one by one: stock TensorFlow and our reader must give the same results for random inputs.

usage: saved_ops.py EXAMPLE_PROGRAM EMPTY_FOLDER [NAME...]

Each case is a signature of one SavedModel: TensorFlow's own kernels on placeholders, exported and read as any model is. Inputs are
random, some of them wrong: what TensorFlow refuses must be an error here too. What we read and write again is run by TensorFlow once
more. Floats are compared as in saved_model.py.
"""

import os
import subprocess
import sys

import numpy as np
import tensorflow as tf

from saved_model import Rewritten, Theirs, difference, ours

v1, raw = tf.compat.v1, tf.raw_ops
SEED = 11
ROUNDS = 30
WORDS = [b"a", b"b", b"wide", b"deep", b"", b"-1", b"12", b" 7 ", b"1e3", b"\xff\x00\xfe", "Größe ß".encode(), b"x,y,,z", b" a  b ", b"x" * 70]
CASES = {}


def case(function):
    """A case: takes a random generator, returns (placeholders' specs, the graph's function, a maker of inputs)."""
    CASES[function.__name__] = function
    return function


def words(rng, *shape):
    return np.array([WORDS[i] for i in rng.randint(0, len(WORDS), int(np.prod(shape)))], dtype=object).reshape(shape)


def values(rng, dtype, n):
    if dtype == tf.string:
        return words(rng, n)
    if dtype == tf.int64:
        return rng.randint(-3, 9, n).astype(np.int64)
    return rng.randn(n).astype(np.float32)


def sparse(rng, dtype, rank=2, wrong=0.1):
    """Indices, values and dense shape: in order without repetition, unless something is wrong."""
    shape = rng.randint(0 if rng.rand() < 0.1 else 1, 6, rank)
    n = rng.randint(0, 1 + int(np.prod(shape)))
    flat = np.sort(rng.choice(max(int(np.prod(shape)), 1), n, replace=False)) if n else np.zeros(0, np.int64)
    indices = np.stack(np.unravel_index(flat, shape), 1).astype(np.int64) if n else np.zeros((0, rank), np.int64)
    if n and rng.rand() < wrong:
        indices[rng.randint(n)] = rng.choice([-1, 0, 7], rank)
    return indices, values(rng, dtype, n), shape.astype(np.int64)


def named(keys, arrays):
    return dict(zip(keys, arrays))


I64, F32, STR = tf.int64, tf.float32, tf.string
SPARSE = lambda dtype, rank=2: {"indices": (I64, [None, rank]), "values": (dtype, [None]), "shape": (I64, [rank])}
KEYS = ["indices", "values", "shape"]


@case
def where():
    return {"x": (F32, [None, 3])}, lambda x: [tf.where(x), tf.where(x > 0), tf.where(x[:, 0] > 0), tf.where(tf.reshape(x, [-1, 1, 3, 1]))], lambda rng: {"x": rng.randint(-1, 2, (rng.randint(1, 5), 3)).astype(np.float32)}


def fill(dtype, default):
    def run(indices, values, shape):
        return raw.SparseFillEmptyRows(indices=indices, values=values, dense_shape=shape, default_value=tf.constant(default, dtype))

    return lambda: (SPARSE(dtype), run, lambda rng: named(KEYS, sparse(rng, dtype)))


CASES["fill_empty_rows_of_strings"] = fill(STR, b"none")
CASES["fill_empty_rows_of_ints"] = fill(I64, -1)
CASES["fill_empty_rows_of_floats"] = fill(F32, 0.5)


@case
def sparse_reshape():
    def run(indices, values, shape, wanted):
        outputs = raw.SparseReshape(input_indices=indices, input_shape=shape, new_shape=wanted)
        rows = raw.SparseReshape(input_indices=indices, input_shape=shape, new_shape=tf.stack([shape[0], -1]))
        return list(outputs) + list(rows)

    def inputs(rng):
        # TensorFlow does not work out -1 for a tensor without elements.
        found = next(found for found in iter(lambda: sparse(rng, F32, wrong=0), None) if np.all(found[2] > 0))
        n = int(np.prod(found[2]))
        wanted = [[-1, 1, 1], [n, 1, 1], [1, -1, max(int(found[2][1]), 1)], [2, -1, -1], [7, 7, 7]][rng.choice(5, p=[0.3, 0.3, 0.3, 0.05, 0.05])]
        return {**named(KEYS, found), "wanted": np.array(wanted, np.int64)}

    return {**SPARSE(F32), "wanted": (I64, [3])}, run, inputs


@case
def sparse_to_dense():
    def run(indices, values, shape):
        checked = raw.SparseToDense(sparse_indices=indices, output_shape=shape, sparse_values=values, default_value=-1.0)
        single = raw.SparseToDense(sparse_indices=indices, output_shape=shape, sparse_values=2.0, default_value=0.0, validate_indices=False)
        return [checked, single, tf.reshape(checked, [-1]) * 2]

    return SPARSE(F32), run, lambda rng: named(KEYS, sparse(rng, F32))


@case
def sparse_to_dense_of_strings():
    run = lambda indices, values, shape: [raw.SparseToDense(sparse_indices=indices, output_shape=shape, sparse_values=values, default_value=b"?", validate_indices=False)]
    return SPARSE(STR), run, lambda rng: named(KEYS, sparse(rng, STR))


@case
def sparse_slice():
    def run(indices, values, shape, start, size):
        return raw.SparseSlice(indices=indices, values=values, shape=shape, start=start, size=size)

    def inputs(rng):
        return {**named(KEYS, sparse(rng, STR, wrong=0)), "start": rng.randint(0, 3, 2), "size": rng.randint(0, 6, 2)}

    return {**SPARSE(STR), "start": (I64, [2]), "size": (I64, [2])}, run, inputs


@case
def sparse_concat():
    def run(**kwargs):
        part = lambda suffix: [kwargs[key + suffix] for key in KEYS]
        parts = list(zip(part("_a"), part("_b")))
        joined = lambda axis: list(raw.SparseConcat(indices=list(parts[0]), values=list(parts[1]), shapes=list(parts[2]), concat_dim=axis))
        return joined(0) + joined(-1)

    def inputs(rng):
        a = sparse(rng, I64, wrong=0)
        b = sparse(rng, I64, wrong=0) if rng.rand() < 0.3 else (a[0], a[1] + 1, a[2])
        return {**named([k + "_a" for k in KEYS], a), **named([k + "_b" for k in KEYS], b)}

    specs = {key + suffix: spec for suffix in ["_a", "_b"] for key, spec in SPARSE(I64).items()}
    return specs, run, inputs


@case
def sparse_reorder():
    def inputs(rng):
        indices, found, shape = sparse(rng, STR, wrong=0)
        order = rng.permutation(len(found))
        return named(KEYS, (indices[order], found[order], shape))

    return SPARSE(STR), lambda indices, values, shape: raw.SparseReorder(input_indices=indices, input_values=values, input_shape=shape), inputs


@case
def sparse_cross():
    def run(words, words_at, ids, ids_at, shape, dense):
        common = dict(indices=[words_at, ids_at], values=[words, ids], shapes=[shape, shape], dense_inputs=[dense])
        cross = lambda **kwargs: list(raw.SparseCross(**common, num_buckets=kwargs.pop("n", 100), hash_key=5, **kwargs))
        text = raw.SparseCrossV2(indices=[words_at], values=[words], shapes=[shape], dense_inputs=[tf.as_string(dense)], sep="_X_")
        return cross(hashed_output=True, out_type=I64, internal_type=I64) + cross(hashed_output=True, n=0, out_type=I64, internal_type=I64) + list(text)

    def inputs(rng):
        first, second = sparse(rng, STR, wrong=0), sparse(rng, I64, wrong=0)
        rows = max(first[2][0], second[2][0])
        shape = np.array([rows, 6])
        return {"words": first[1], "words_at": first[0], "ids": second[1], "ids_at": second[0], "shape": shape, "dense": rng.randint(0, 5, (rows, 2))}

    specs = {"words": (STR, [None]), "words_at": (I64, [None, 2]), "ids": (I64, [None]), "ids_at": (I64, [None, 2]), "shape": (I64, [2]), "dense": (I64, [None, 2])}
    return specs, run, inputs


@case
def sparse_product():
    def run(indices, values, shape, matrix):
        return [raw.SparseTensorDenseMatMul(a_indices=indices, a_values=values, a_shape=shape, b=matrix)]

    def inputs(rng):
        found = sparse(rng, F32)
        return {**named(KEYS, found), "matrix": rng.randn(found[2][1], 3).astype(np.float32)}

    return {**SPARSE(F32), "matrix": (F32, [None, 3])}, run, inputs


@case
def segments():
    def run(data, ids):
        kinds = [tf.math.segment_sum, tf.math.segment_mean, tf.math.segment_max, tf.math.segment_min, tf.math.segment_prod]
        return [kind(data, ids) for kind in kinds]

    def inputs(rng):
        n = rng.randint(0, 8)
        ids = np.sort(rng.randint(0, 6, n))
        if rng.rand() < 0.15:
            ids = rng.randint(-1, 6, n)
        return {"data": rng.randn(n, 2).astype(np.float32), "ids": ids}

    return {"data": (F32, [None, 2]), "ids": (I64, [None])}, run, inputs


@case
def sparse_segments():
    def run(data, places, ids, n):
        plain = [tf.sparse.segment_sum, tf.sparse.segment_mean, tf.sparse.segment_sqrt_n]
        return [kind(data, places, ids) for kind in plain] + [kind(data, places, ids, num_segments=n) for kind in plain]

    def inputs(rng):
        n, rows = rng.randint(0, 8), rng.randint(1, 5)
        ids = np.sort(rng.randint(0, 5, n))
        if rng.rand() < 0.1:
            ids = ids[::-1]
        places = rng.randint(0, rows if rng.rand() < 0.9 else rows + 2, n)
        return {"data": rng.randn(rows, 3).astype(np.float32), "places": places, "ids": ids, "n": np.array(rng.choice([5, 5, 7, 3]))}

    return {"data": (F32, [None, 3]), "places": (I64, [None]), "ids": (I64, [None]), "n": (I64, [])}, run, inputs


@case
def unsorted_segments():
    def run(data, ids, n):
        kinds = [tf.math.unsorted_segment_sum, tf.math.unsorted_segment_max, tf.math.unsorted_segment_min, tf.math.unsorted_segment_prod, tf.math.unsorted_segment_mean]
        return [kind(data, ids, n) for kind in kinds]

    def inputs(rng):
        n = rng.randint(0, 8)
        return {"data": rng.randn(n, 2).astype(np.float32), "ids": rng.randint(-1, 5, n), "n": np.array(rng.choice([5, 6, 4]))}

    return {"data": (F32, [None, 2]), "ids": (I64, [None]), "n": (I64, [])}, run, inputs


@case
def partition_and_stitch():
    def run(data, lists):
        parts = tf.dynamic_partition(data, lists, 3)
        places = tf.dynamic_partition(tf.range(tf.shape(data)[0]), lists, 3)
        return list(parts) + [tf.dynamic_stitch(places, parts), raw.ParallelDynamicStitch(indices=places, data=parts)]

    def inputs(rng):
        n = rng.randint(1, 9)
        lists = rng.randint(0, 3 if rng.rand() < 0.9 else 4, n)
        return {"data": rng.randn(n, 2).astype(np.float32), "lists": lists.astype(np.int32)}

    return {"data": (F32, [None, 2]), "lists": (tf.int32, [None])}, run, inputs


@case
def unique():
    run = lambda words, ids, floats: list(tf.unique(words)) + list(tf.unique(ids, tf.int64)) + list(tf.unique(floats))

    def inputs(rng):
        floats = np.array([0.0, -0.0, 1.5, np.nan], np.float32)[rng.randint(0, 4, rng.randint(0, 9))]
        return {"words": words(rng, rng.randint(0, 9)), "ids": rng.randint(-2, 3, rng.randint(0, 9)), "floats": floats}

    return {"words": (STR, [None]), "ids": (I64, [None]), "floats": (F32, [None])}, run, inputs


@case
def counts():
    """Ids that are counted, and ids that occur, in lists and matrices; the number of rows may not be that of the parts."""
    def run(ids, weights):
        outputs = [raw.DenseBincount(input=x, size=5, weights=w, binary_output=b) for x, w in [(ids, weights), (ids[0], weights[0])] for b in [False, True]]
        return outputs + tf.unstack(weights, 2) + tf.split(weights, [1, 1], 0) + [tf.minimum(tf.constant(5, I64), tf.maximum(tf.constant(5, I64), ids)), tf.acosh(weights * 1e6)]

    def inputs(rng):
        shape = (2 if rng.rand() < 0.8 else 3, rng.randint(1, 5))
        return {"ids": rng.randint(0, 7, shape), "weights": rng.randn(*shape).astype(np.float32)}

    return {"ids": (I64, [None, None]), "weights": (F32, [None, None])}, run, inputs


@case
def embedding():
    def run(indices, values, shape, weights):
        table = tf.constant(np.random.RandomState(1).randn(9, 4).astype(np.float32))
        ids, weights = tf.SparseTensor(indices, values, shape), tf.SparseTensor(indices, weights, shape)
        lookup = tf.nn.safe_embedding_lookup_sparse
        outputs = [lookup([table], ids, combiner=c) for c in ["sum", "mean", "sqrtn"]]
        outputs += [lookup([table], ids, weights, combiner=c, max_norm=1.0) for c in ["sum", "mean", "sqrtn"]]
        return outputs + [lookup([table], ids, default_id=3)]

    def inputs(rng):
        found = sparse(rng, I64, wrong=0)
        return {**named(KEYS, found), "weights": rng.randn(len(found[1])).astype(np.float32)}

    return {**SPARSE(I64), "weights": (F32, [None])}, run, inputs


@case
def slices():
    def run(x, k):
        y = tf.reshape(x, [-1, 2, 3])
        outputs = [x[:, 1:], x[1:], x[-1], x[:, -2:], x[::2], x[:, ::-1], x[:, 4:1:-2], x[..., tf.newaxis], x[tf.newaxis, :, 3]]
        outputs += [y[:, 0], y[..., 1], y[:, :, tf.newaxis, -1:], y[1:, :, 1:], x[:k], x[k:], x[:, :k], x[k - 1], x[:2, k:]]
        outputs += [x[-k:], x[:, :-k], x[-k:, k - 3 :], x[: k - 9], x[:, -tf.shape(x)[0] :]]
        outputs += [tf.slice(x, [0, 1], [-1, 2]), tf.slice(x, tf.stack([k, 0]), [-1, 3]), tf.slice(x, [1, 0], tf.stack([tf.shape(x)[0] - 1, k]))]
        return outputs

    return {"x": (F32, [None, 6]), "k": (tf.int32, [])}, run, lambda rng: {"x": rng.randn(rng.randint(2, 6), 6).astype(np.float32), "k": np.array(rng.randint(1, 3), np.int32)}


@case
def shapes():
    def run(x, words):
        rows, columns = tf.shape(x)[0], tf.shape(x)[1]
        outputs = [tf.reshape(x, [-1]), tf.reshape(x, [columns, rows]), tf.reshape(x, [rows * columns, 1]), tf.reshape(x, tf.concat([[1], tf.shape(x), [1]], 0))]
        outputs += [tf.tile(x, [2, 1]), tf.tile(x, [rows, columns]), tf.tile(x[:1], [rows, 2]), tf.tile(words, tf.stack([columns])), tf.fill([rows, 2], 3.0)]
        outputs += [tf.range(rows), tf.range(1, rows), tf.range(2, columns * 2, 3), tf.broadcast_to(x[:1], tf.shape(x)), tf.zeros_like(x), tf.ones(tf.shape(x)[:1])]
        outputs += [tf.reduce_prod(tf.shape(x)), tf.size(x), tf.rank(x), tf.gather(tf.shape(x), [1, 0]), tf.maximum(columns - rows, 0), tf.reshape(words, [1, -1])]
        outputs += [tf.pad(x, [[1, 0], [0, 2]]), tf.pad(x, tf.reshape(tf.stack([rows, 0, 0, 1]), [2, 2])), tf.stack([x, x], 1), tf.transpose(x), tf.expand_dims(x, -1)]
        outputs += [tf.concat([x, x[:, :1]], 1), tf.unstack(tf.shape(x))[1], tf.reverse(x, [0]), tf.squeeze(x[:, :1], 1), tf.linspace(0.0, 1.0, 5)[0]]
        return outputs[:-1]

    return {"x": (F32, [None, None]), "words": (STR, [None])}, run, lambda rng: {"x": rng.randn(rng.randint(1, 5), rng.randint(1, 5)).astype(np.float32), "words": words(rng, rng.randint(0, 4))}


@case
def lookups():
    def run(x, at, both):
        wide = tf.reshape(x, [-1, 2, 2])
        outputs = [tf.gather(x, at), tf.gather(x, at, axis=1), tf.gather(wide, at, axis=1), tf.gather_nd(x, both), tf.scatter_nd(both, tf.ones(tf.shape(both)[:1]), [5, 4])]
        outputs += [tf.one_hot(at, 5), tf.one_hot(at, 3, on_value=2, off_value=-1, axis=0), tf.gather(x, tf.argmax(x, 1), axis=1, batch_dims=1)]
        return outputs + list(tf.math.top_k(x, 2)) + [tf.argmin(x, 0), tf.cumsum(x, 1, exclusive=True, reverse=True)]

    def inputs(rng):
        n = rng.randint(1, 5)
        at = rng.randint(0, 2 if rng.rand() < 0.8 else 7, 3)
        return {"x": rng.randn(n, 4).astype(np.float32), "at": np.minimum(at, 1 if rng.rand() < 0.8 and n > 1 else at), "both": np.stack([rng.randint(0, n, 3), rng.randint(0, 4, 3)], 1)}

    return {"x": (F32, [None, 4]), "at": (I64, [None]), "both": (I64, [None, 2])}, run, inputs


@case
def pointwise():
    def run(x, y, condition):
        outputs = [tf.where(condition, x, y), raw.Select(condition=condition[:, 0], x=x, y=y), tf.nn.bias_add(x, y[0]), tf.add_n([x, y, x]), tf.nn.leaky_relu(x, 0.3)]
        outputs += [tf.clip_by_value(x, -0.5, 0.5), raw.Bucketize(input=x, boundaries=[-1.0, 0.0, 0.25]), raw.Bucketize(input=tf.cast(x * 3, I64), boundaries=[-1.0, 2.0])]
        outputs += [tf.cast(x * 10, tf.int32) // 3, tf.cast(x * 10, I64) % 4, tf.nn.softmax(x), tf.nn.log_softmax(y), tf.sigmoid(x), tf.math.divide_no_nan(x, tf.round(y))]
        outputs += [tf.reduce_mean(x, 1), tf.reduce_max(x), tf.reduce_any(condition, 0), tf.matmul(x, y, transpose_b=True), tf.nn.l2_normalize(x, 1), tf.nn.relu6(x * 9)]
        outputs += [tf.math.erfc(x * 3), tf.cast(tf.math.erfc(tf.cast(x, tf.float64) * 6), F32), 0.5 * x * 4 * tf.math.erfc(x * -4 * 0.5 ** 0.5)]
        return outputs

    def inputs(rng):
        n = rng.randint(1, 5)
        return {"x": rng.randn(n, 3).astype(np.float32), "y": rng.randn(n, 3).astype(np.float32), "condition": rng.rand(n, 3) < 0.5}

    return {"x": (F32, [None, 3]), "y": (F32, [None, 3]), "condition": (tf.bool, [None, 3])}, run, inputs


@case
def images():
    def run(x, scale):
        outputs = [tf.nn.max_pool2d(x, 2, 2, "SAME"), tf.nn.avg_pool2d(x, 3, 1, "VALID"), tf.nn.conv2d(x, tf.ones([2, 2, 3, 4]), 2, "SAME")]
        outputs += [tf.nn.depthwise_conv2d(x, tf.ones([2, 2, 3, 2]), [1, 1, 1, 1], "VALID"), tf.image.resize(x, [7, 3]), tf.image.resize(x, [2, 9], "nearest")]
        norm = lambda **kwargs: raw.FusedBatchNormV3(x=x, scale=scale, offset=scale * 2, epsilon=1e-3, **kwargs).y
        return outputs + [norm(mean=scale - 1, variance=scale, is_training=False), norm(mean=[], variance=[], is_training=True), tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "SYMMETRIC")]

    return {"x": (F32, [None, 5, 4, 3]), "scale": (F32, [3])}, run, lambda rng: {"x": rng.randn(rng.randint(1, 3), 5, 4, 3).astype(np.float32), "scale": rng.rand(3).astype(np.float32) + 0.5}


@case
def blocks():
    """Borders and crops that are known, that the shape gives, and that are fed. Some do not fit the sizes."""
    def run(x, borders):
        shape = tf.shape(x)
        spread = raw.SpaceToBatchND(input=x, block_shape=[2, 3], paddings=[[0, 0], [1, 2]])
        more, cut = tf.required_space_to_batch_paddings(shape[1:3], [3, 2])
        divided = raw.SpaceToBatchND(input=x, block_shape=[3, 2], paddings=more)
        fed = raw.SpaceToBatchND(input=x[:, :, 0], block_shape=[2], paddings=borders)
        outputs = [spread, raw.BatchToSpaceND(input=spread, block_shape=[2, 3], crops=[[0, 1], [1, 0]]), divided]
        outputs += [raw.BatchToSpaceND(input=divided, block_shape=[3, 2], crops=cut), fed, raw.BatchToSpaceND(input=fed, block_shape=[2], crops=borders)]
        outputs += [raw.SpaceToBatchND(input=x, block_shape=[1, 1, 2], paddings=[[0, 0], [0, 1], [0, 0]]), raw.BatchToSpaceND(input=x, block_shape=[2], crops=[[0, 0]])]
        outputs += [raw.BatchToSpaceND(input=x, block_shape=[1], crops=borders)]
        return outputs + [tf.stack([shape[:2], shape[2:]]), tf.constant([[1, 2], [3, 4]])[:, 0] + shape[:2]]

    def inputs(rng):
        sizes = 2 * rng.randint(1, 4, 2) + (rng.rand(2) < 0.1)
        fed = [[1, 1], [0, 2], [2, 0], [3, 1], [0, 0], [6, 4]][rng.randint(6)] if rng.rand() < 0.8 else [1, -1]
        return {"x": rng.randn(*sizes, 3, 4).astype(np.float32), "borders": np.array([fed], np.int32)}

    return {"x": (F32, [None, None, 3, 4]), "borders": (tf.int32, [1, 2])}, run, inputs


@case
def strings():
    def run(x, n, f):
        outputs = [tf.strings.to_hash_bucket_fast(x, 10), tf.strings.to_hash_bucket_strong(x, 1000, [3, 4]), tf.as_string(n), tf.as_string(f), tf.as_string(f, precision=2, shortest=True)]
        outputs += [tf.strings.lower(x), tf.strings.upper(x, encoding="utf-8"), tf.strings.strip(x), tf.strings.length(x), tf.strings.length(x, unit="UTF8_CHAR")]
        outputs += [tf.strings.regex_replace(x, "[ab]+", "<\\0>"), tf.strings.regex_full_match(x, ".*e.*"), tf.strings.join([x, tf.constant("-"), x], "/"), tf.strings.reduce_join(x)]
        parts = tf.strings.split(x, ",").to_sparse()
        words = v1.strings.split(x)
        outputs += [parts.indices, parts.values, parts.dense_shape, words.indices, words.values, words.dense_shape]
        return outputs + [tf.equal(x, b"a"), tf.not_equal(x[:, None], x[None, :])]

    return {"x": (STR, [None]), "n": (I64, [None]), "f": (F32, [None])}, run, lambda rng: {"x": words(rng, rng.randint(0, 7)), "n": rng.randint(-10, 2**40, 3), "f": (rng.randn(3) * 1000).astype(np.float32)}


@case
def numbers_of_strings():
    run = lambda x: [tf.strings.to_number(x, t) for t in [F32, tf.float64, tf.int32, I64]]
    return {"x": (STR, [None])}, run, lambda rng: {"x": np.array([[b"7", b"-12", b" 3 ", b"0", b"1.5", b"x"][i] for i in rng.randint(0, 4 if rng.rand() < 0.7 else 6, 4)], dtype=object)}


@case
def tables():
    def run(x, n):
        table = lambda keys, values, default: tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(tf.constant(keys), tf.constant(values)), default)
        ids = table([b"a", b"wide", b""], np.array([7, 0, -5]), -1)
        text = table(np.array([3, 0, 5]), [b"three", b"", b"five"], b"UNK")
        floats = table([b"deep", b"b"], [0.5, -1.5], 9.0)
        counted = table(np.arange(4), [b"zero", b"one", b"two", b"three"], b"?")
        return [ids.lookup(x), text.lookup(n), floats.lookup(x), counted.lookup(n), ids.size(), floats.lookup(x) * 2]

    return {"x": (STR, [None, 2]), "n": (I64, [None])}, run, lambda rng: {"x": words(rng, rng.randint(0, 5), 2), "n": rng.randint(-1, 7, 5)}


@case
def examples():
    spec = {
        "dense": tf.io.FixedLenFeature([2], F32),
        "default": tf.io.FixedLenFeature([], I64, 5),
        "word": tf.io.FixedLenFeature([], STR, ""),
        "sparse": tf.io.VarLenFeature(STR),
        "ids": tf.io.VarLenFeature(I64),
        "ragged": tf.io.RaggedFeature(I64, row_splits_dtype=tf.int32),
        "padded": tf.io.FixedLenSequenceFeature([2], F32, allow_missing=True, default_value=-1.0),
    }

    def run(examples):
        parsed = tf.io.parse_example(examples, spec)
        ragged = parsed.pop("ragged")
        outputs = [parsed[key] for key in ["dense", "default", "word", "padded"]] + [ragged.values, ragged.row_splits]
        for key in ["sparse", "ids"]:
            outputs += [parsed[key].indices, parsed[key].values, parsed[key].dense_shape]
        first = raw.ParseExample(serialized=examples, names=[], sparse_keys=["ids"], dense_keys=["default"], dense_defaults=[np.array([1])], sparse_types=[I64], dense_shapes=[[1]])
        return outputs + [tensor for part in first for tensor in part] + [tf.sparse.to_dense(parsed["sparse"]), tf.reduce_sum(parsed["padded"], [1, 2])]

    def inputs(rng):
        rows = []
        for _ in range(rng.randint(1, 5)):
            example = tf.train.Example()
            feature = example.features.feature
            if rng.rand() < 0.97:
                feature["dense"].float_list.value.extend(rng.randn(2))
            if rng.rand() < 0.5:
                feature["default"].int64_list.value.append(rng.randint(9))
            if rng.rand() < 0.5:
                feature["word"].bytes_list.value.append(words(rng, 1)[0])
            for key in ["sparse"] + ["ids", "ragged"]:
                if rng.rand() < 0.7:
                    found = values(rng, STR if key == "sparse" else I64, rng.randint(0, 4))
                    (feature[key].bytes_list if key == "sparse" else feature[key].int64_list).value.extend(found)
            if rng.rand() < 0.7:
                feature["padded"].float_list.value.extend(rng.randn(2 * rng.randint(0, 3)))
            rows.append(example.SerializeToString())
        return {"examples": np.array(rows, dtype=object)}

    return {"examples": (STR, [None])}, run, inputs


def build(folder, wanted):
    """One SavedModel with a signature for each case; returns the makers of inputs."""
    makers, signatures = {}, {}
    with tf.Graph().as_default(), v1.Session() as session:
        for name, make in CASES.items():
            if wanted and name not in wanted:
                continue
            specs, run, makers[name] = make()
            with tf.name_scope(name):
                inputs = {key: v1.placeholder(dtype, shape, name=key) for key, (dtype, shape) in specs.items()}
                outputs = run(**inputs)
            outputs = {f"out_{i}": tensor for i, tensor in enumerate(outputs)}
            info = lambda tensors: {key: v1.saved_model.utils.build_tensor_info(t) for key, t in tensors.items()}
            signatures[name] = v1.saved_model.signature_def_utils.build_signature_def(info(inputs), info(outputs), "test")
        builder = v1.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(session, ["serve"], signatures, main_op=v1.tables_initializer())
        builder.save()
    return makers


def main():
    program, folder = sys.argv[1:3]
    v1.disable_eager_execution()
    v1.logging.set_verbosity(v1.logging.ERROR)
    path = os.path.join(folder, "model")
    makers = build(path, sys.argv[3:])
    theirs = Theirs(path)
    passed, refused, failed = 0, 0, []
    for name, make in makers.items():
        rng = np.random.RandomState(SEED)
        requests = [make(rng) for _ in range(ROUNDS)]
        try:
            answers = list(ours(program, path, name, requests, folder, "--any-rows"))
            rewritten = Rewritten(program, path, name, folder, "--any-rows")
        except subprocess.CalledProcessError:
            failed.append(f"{name} cannot be read")
            continue
        for i, (request, mine) in enumerate(zip(requests, answers)):
            try:
                expected = theirs.run(name, request)
                why = difference(mine, expected)
                if why is None and (why := difference(rewritten.run(request), expected)):
                    why = "written again: " + why
            except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError) as error:
                why = None if isinstance(mine, str) else f"TensorFlow refuses: {str(error)[-300:]}"
                refused += why is None
            passed += why is None
            if why:
                failed.append(f"{name} {i}: {why} on {str(request)[:600]}")
    print("\n".join(failed[:40]))
    print(f"{passed} requests passed, {refused} of them as errors, {len(failed)} failed")
    sys.exit(bool(failed) or passed == 0)


if __name__ == "__main__":
    main()
