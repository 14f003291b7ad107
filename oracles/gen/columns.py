"""Writes oracles/fixtures/columns.jsonl: what TensorFlow's feature columns make of random features, in generated configurations.

Run as `python oracles/gen/columns.py` in an environment with tensorflow 2.15. Cases are ids, dense, linear
(with a `combiner` and `units`) and sequence:

    columns            objects with a kind and settings; the methods of `Case` below say how each is written
    dense, ragged      the features as they are fed, by key; the row splits of ragged ones are in `splits`
    examples           instead of features: serialized tf.Examples, parsed by the columns' own spec
    weights            the values of variables, by the names that TensorFlow gave them
    ids, id_splits     of `ids`: the ids of the only column
    out                of the others: the layer's result
    lengths            of `sequence`

Features that a cross takes by name are given to TensorFlow as sparse tensors of all their values, as a parser of Examples makes them,
also where the fixture says `dense`: given dense tensors TensorFlow would hash them after all columns, and so differ from its own serving.
"""

import os
import pathlib
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2

from fixture import Fixture, strings

WORDS = [b"", b"a", b"b", b"cat", b"caf\xc3\xa9", b"\xff\x00\n", b"two words", b"x" * 40, b"0", b"-1", b"B"]
random = np.random.default_rng(61)
fixture = Fixture(seed=61)
fc = tf.feature_column


def chance(percent):
    return random.integers(100) < percent


def pick(items):
    return items[random.integers(len(items))]


def typed(dtype, values):
    """A list, or an array of objects, as an array."""
    shape = np.shape(values) if isinstance(values, np.ndarray) else (len(values),)
    flat = list(np.ravel(values)) if isinstance(values, np.ndarray) else values
    return (strings(flat) if dtype == "str" else np.array(flat, {"i64": np.int64, "f32": np.float32}[dtype])).reshape(shape)


class Case:
    """Features that columns need, made when the columns are, and the columns with how they are written."""

    def __init__(self, rows, ragged_only=False):
        self.rows = rows
        self.ragged_only = ragged_only
        self.features = {}  # key -> (kind, dtype, data); ragged data are lists of rows
        self.raw = set()  # keys that a cross takes by name
        self.columns = []
        self.written = []

    def key(self):
        return f"f{len(self.features)}" if chance(70) else f"F_{len(self.features)}"

    def values(self, dtype, n, low=-3, high=9, odd=(0.0, -1.0, 1e10, -2.5, 0.3)):
        if dtype == "str":
            return [pick(WORDS) for _ in range(n)]
        if dtype == "i64":
            return [int(v) for v in random.integers(low, high, n)]
        return [float(np.float32(pick(odd) if chance(15) else np.round(random.normal(0, 3), 2))) for _ in range(n)]

    def feature(self, dtype, low=-3, high=9, dense=None, lengths=None):
        """A categorical feature, dense or ragged."""
        key = self.key()
        dense = not self.ragged_only and chance(50) if dense is None else dense
        if dense:
            width = int(random.integers(1, 4))
            data = np.array(self.values(dtype, self.rows * width, low, high), object).reshape(self.rows, width)
            self.features[key] = ("dense", dtype, data)
        else:
            lengths = random.integers(0, 4, self.rows) if lengths is None else lengths
            self.features[key] = ("ragged", dtype, [self.values(dtype, int(n), low, high) for n in lengths])
        return key

    def numbers(self, shape, dtype, odd):
        key = self.key()
        n = int(np.prod(shape))
        data = np.array(self.values(dtype, self.rows * n, odd=odd), object).reshape(self.rows, *shape)
        self.features[key] = ("dense", dtype, data)
        return key

    # Columns: each returns the column and how it is written.

    def numeric(self, one_axis=False):
        shape = pick([(1,), (1,), (3,)] if one_axis else [(1,), (1,), (3,), (2, 2)])
        dtype = "f32" if self.ragged_only else pick(["f32", "f32", "i64"])
        odd = (0.0, float("nan"), float("inf"), float("-inf"), 1e10) if one_axis else (0.0, -1.0, 1e10, -2.5, 0.3)
        key = self.numbers(shape, dtype, odd)
        how = pick(["none", "none", "zscore", "minmax", "log", "square"])
        functions = {
            "none": None,
            "zscore": lambda x: (tf.cast(x, tf.float32) - 1.5) / 2.5,
            "minmax": lambda x: (tf.cast(x, tf.float32) - -3.0) / (9.0 - -3.0),
            "log": lambda x: tf.math.log1p(tf.abs(tf.cast(x, tf.float32))),
            "square": lambda x: x * x,
        }
        dtypes = {"f32": tf.float32, "i64": tf.int64}
        column = fc.numeric_column(key, shape=shape, dtype=dtypes[dtype], normalizer_fn=functions[how])
        return column, dict(kind="numeric", key=key, shape=shape, dtype=dtype, normalizer=how)

    def bucketized(self):
        source, inner = self.numeric(one_axis=True)
        boundaries = sorted({float(np.float32(v)) for v in np.round(random.normal(0, 3, random.integers(1, 5)), 1)})
        return fc.bucketized_column(source, boundaries), dict(kind="bucketized", boundaries=boundaries, column=inner)

    def identity(self, beyond, steps=None):
        n = int(random.integers(3, 8))
        default = int(random.integers(n)) if chance(50) else None
        high = n + 3 if beyond or default is not None else n
        key = self.feature("i64", -3, high) if steps is None else self.feature("i64", -1, high, *steps)
        make = fc.categorical_column_with_identity if steps is None else fc.sequence_categorical_column_with_identity
        return make(key, n, default), dict(kind="identity", key=key, n=n, default=default)

    def unknown(self):
        how = random.integers(3)
        if how == 0:
            return {}, dict(default=None, n_oov_buckets=0)
        if how == 1:
            return {"default_value": 0}, dict(default=0, n_oov_buckets=0)
        return {"num_oov_buckets": 3}, dict(default=None, n_oov_buckets=3)

    def vocabulary_list(self, _beyond, steps=None):
        dtype = pick(["str", "i64"])
        key = self.feature(dtype) if steps is None else self.feature(dtype, -3, 9, *steps)
        n = int(random.integers(2, 6))
        terms = [WORDS[i] for i in random.permutation(len(WORDS))[:n]] if dtype == "str" else [int(v) for v in random.permutation(9)[:n]]
        options, rest = self.unknown()
        written = dict(kind="list", key=key, **rest, terms=typed(dtype, terms))
        make = (
            fc.categorical_column_with_vocabulary_list
            if steps is None
            else fc.sequence_categorical_column_with_vocabulary_list
        )
        return make(key, terms, dtype={"str": tf.string, "i64": tf.int64}[dtype], **options), written

    def vocabulary_file(self, _beyond, steps=None):
        key = self.feature("str") if steps is None else self.feature("str", 0, 0, *steps)
        terms = [w for w in WORDS if w and b"\n" not in w]
        terms = [terms[i] for i in random.permutation(len(terms))[: int(random.integers(2, 6))]]
        size = int(random.integers(1, len(terms) + 1)) if chance(50) else None
        path = pathlib.Path(tempfile.mkdtemp()) / "terms.txt"
        path.write_bytes(b"\n".join(terms) + b"\n" * int(random.integers(2)))
        options, rest = self.unknown()
        written = dict(kind="file", key=key, **rest, size=size, terms=typed("str", terms))
        make = (
            fc.categorical_column_with_vocabulary_file
            if steps is None
            else fc.sequence_categorical_column_with_vocabulary_file
        )
        return make(key, str(path), size, **options), written

    def hash(self, _beyond, steps=None):
        dtype = pick(["str", "str", "i64"])
        key = self.feature(dtype) if steps is None else self.feature(dtype, -3, 9, *steps)
        n = pick([1, 7, 10])
        make = fc.categorical_column_with_hash_bucket if steps is None else fc.sequence_categorical_column_with_hash_bucket
        return make(key, n, {"str": tf.string, "i64": tf.int64}[dtype]), dict(kind="hash", key=key, n=n, dtype=dtype)

    def crossed(self, depth=0):
        n = int(random.integers(2, 4 if depth == 0 else 3))
        keys, written = [], []
        for _ in range(n):
            kind = random.integers(5)
            if kind < 3:
                key = self.feature("str" if self.ragged_only else pick(["str", "str", "i64", "f32"]))
                self.raw.add(key)
                keys.append(key)
                written.append(dict(kind="key", key=key))
            elif kind == 3 and depth == 0:
                column, inner = self.crossed(1)
                keys.append(column)
                written.append(inner)
            else:
                column, inner = pick([self.bucketized, lambda: self.identity(True), lambda: self.vocabulary_list(True)])()
                keys.append(column)
                written.append(inner)
        size = pick([5, 11, 13])
        hash_key = int(random.integers(1 << 60)) if chance(30) else None
        column = fc.crossed_column(keys, size, hash_key)
        return column, dict(kind="cross", size=size, hash_key=hash_key or 0, keys=written)

    def weighted(self):
        """Ids and weights of the same places: ragged, or dense without what stands for a missing value."""
        n = int(random.integers(3, 8))
        key, weights = self.key(), None
        if self.ragged_only or chance(60):
            lengths = random.integers(0, 4, self.rows)
            self.features[key] = ("ragged", "i64", [self.values("i64", int(k), -1, n) for k in lengths])
            weights = self.feature("f32", dense=False, lengths=lengths)
        else:
            width = int(random.integers(1, 4))
            ids = np.array(self.values("i64", self.rows * width, 0, n), object).reshape(self.rows, width)
            self.features[key] = ("dense", "i64", ids)
            weights = self.key()
            numbers = [v or 2.0 for v in self.values("f32", self.rows * width)]
            self.features[weights] = ("dense", "f32", np.array(numbers, object).reshape(self.rows, width))
        column = fc.categorical_column_with_identity(key, n)
        inner = dict(kind="identity", key=key, n=n, default=None)
        return fc.weighted_categorical_column(column, weights), dict(kind="weighted", weights=weights, column=inner)

    def categorical(self, beyond=True, weights=True):
        kinds = [self.identity, self.vocabulary_list, self.vocabulary_file, self.hash]
        kind = random.integers(9 if weights else 8)
        if kind < 5:
            return kinds[min(kind, 3)](beyond)
        return [self.bucketized, self.crossed, self.crossed, self.weighted][kind - 5]()

    def table(self):
        combiner = pick(["mean", "sum", "sqrtn"])
        norm = pick([None, None, 1.5])
        return combiner, norm, int(random.integers(1, 4))

    def embedding(self, inner):
        column, inner = inner
        combiner, norm, dimension = self.table()
        made = fc.embedding_column(column, dimension, combiner, max_norm=norm)
        return made, dict(kind="embedding", dimension=dimension, combiner=combiner, max_norm=norm, column=inner)

    def shared(self):
        """Two columns with one table, both added, and written once."""
        n = int(random.integers(3, 8))
        keys = [self.feature("i64", -2, n), self.feature("i64", -2, n)]
        combiner, norm, dimension = self.table()
        inner = [fc.categorical_column_with_identity(key, n) for key in keys]
        columns = fc.shared_embeddings(inner, dimension, combiner, max_norm=norm)
        self.columns.extend(columns)
        self.written.append(dict(kind="shared", dimension=dimension, combiner=combiner, max_norm=norm, n=n, keys=keys))

    def dense(self):
        kind = random.integers(10)
        if kind < 2:
            return self.numeric()
        if kind == 2:
            return self.bucketized()
        if kind < 6:
            column, inner = self.categorical()
            return fc.indicator_column(column), dict(kind="indicator", column=inner)
        return self.embedding(self.categorical(beyond=False))

    def sequence(self, lengths, dense):
        kind = random.integers(2 if dense else 0, 6)
        if kind < 2:
            k = int(random.integers(1, 3))
            key = self.feature("f32", dense=False, lengths=lengths * k)
            default = pick([0.0, 0.0, -1.5])
            column = fc.sequence_numeric_column(key, shape=(k,), default_value=default)
            return column, dict(kind="numbers", key=key, n=k, default=default)
        make = pick([self.identity, self.vocabulary_list, self.vocabulary_file, self.hash])
        column, inner = make(False, (dense, lengths))
        inner = dict(inner, steps=True)
        if kind == 5:
            return fc.indicator_column(column), dict(kind="indicator", column=inner)
        return self.embedding((column, inner))

    def add(self, made):
        column, written = made
        if column.name in [c.name for c in self.columns]:
            return
        self.columns.append(column)
        self.written.append(written)

    # What TensorFlow is given.

    def tensor(self, key):
        kind, dtype, data = self.features[key]
        numpy = {"str": object, "i64": np.int64, "f32": np.float32}[dtype]
        if kind == "dense" and key not in self.raw:
            return tf.constant(np.array(data.tolist(), numpy), {"str": tf.string, "i64": tf.int64, "f32": tf.float32}[dtype])
        rows = [list(row) for row in data]
        places = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
        values = np.array([v for row in rows for v in row], numpy)
        width = max([len(row) for row in rows] + [0])
        indices = np.array(places, np.int64).reshape(-1, 2)
        values = tf.constant(values, {"str": tf.string, "i64": tf.int64, "f32": tf.float32}[dtype], shape=[len(places)])
        return tf.SparseTensor(indices, values, [self.rows, width])

    def examples(self):
        def feature(dtype, values):
            values = np.array(values, object).ravel().tolist()
            if dtype == "str":
                return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
            if dtype == "i64":
                return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
            return tf.train.Feature(float_list=tf.train.FloatList(value=values))

        made = []
        for row in range(self.rows):
            features = {}
            for key, (kind, dtype, data) in self.features.items():
                # An empty row is a feature that is not there.
                if kind == "dense" or len(data[row]):
                    features[key] = feature(dtype, data[row])
            example = tf.train.Example(features=tf.train.Features(feature=dict(sorted(features.items()))))
            made.append(example.SerializeToString(deterministic=True))
        return made

    def write_features(self):
        parts = {"dense": {}, "ragged": {}, "splits": {}}
        for key, (kind, dtype, data) in self.features.items():
            if kind == "ragged":
                parts["splits"][key] = np.cumsum([0] + [len(row) for row in data])
                data = [v for row in data for v in row]
            parts[kind][key] = typed(dtype, data)
        for key, value in parts.items():
            fixture.put(key, value)


def run(what, case, parsed=False, combiner="sum", units=1):
    """Builds the columns' layer, gives its variables random values, and writes the case."""
    fixture.case(what, **(dict(combiner=combiner, units=units) if what == "linear" else {}), columns=case.written)
    if parsed:
        rows = case.examples()
        fixture.put("examples", strings(rows))
        features = tf.io.parse_example(tf.constant(rows), fc.make_parse_example_spec(case.columns))
    else:
        case.write_features()
        features = {key: case.tensor(key) for key in case.features}
    lengths = None
    if what == "ids":
        cache = feature_column_v2.FeatureTransformationCache(features)
        out = case.columns[0].get_sparse_tensors(cache, None).id_tensor
    elif what == "dense":
        out = tf.compat.v1.keras.layers.DenseFeatures(case.columns, name="input_layer")(features)
    elif what == "linear":
        out = tf.compat.v1.feature_column.linear_model(features, case.columns, units=units, sparse_combiner=combiner)
    else:
        out, lengths = tf.keras.experimental.SequenceFeatures(case.columns, name="sequence_input_layer")(features)
    with tf.compat.v1.Session() as session:
        session.run([tf.compat.v1.global_variables_initializer(), tf.compat.v1.tables_initializer()])
        weights = {}
        for v in tf.compat.v1.global_variables():
            value = np.round(random.normal(0, 1, v.shape.as_list()), 2).astype(np.float32)
            session.run(v.assign(value))
            weights[v.name.split(":")[0]] = value
        fixture.put("weights", weights)
        if what == "ids":
            ids = session.run(out)
            counts = np.bincount(ids.indices[:, 0].astype(int), minlength=case.rows)
            fixture.put("ids", ids.values)
            fixture.put("id_splits", np.cumsum([0, *counts]))
            return
        value = session.run(out)
        assert np.isfinite(value).all(), what
        fixture.put("out", value)
        if lengths is not None:
            fixture.put("lengths", session.run(lengths))


def one(number):
    what = ["ids", "ids", "dense", "dense", "linear", "dense", "linear", "sequence", "dense", "linear"][number % 10]
    parsed = what in ("dense", "linear", "sequence") and number % 3 == 0
    rows = int(random.integers(1, 5))
    case = Case(rows, ragged_only=parsed)
    if what == "ids":
        case.add(case.crossed() if chance(40) else case.categorical(weights=False))
    elif what == "dense":
        for _ in range(1 if chance(50) else int(random.integers(2, 5))):
            case.add(case.dense())
        if chance(15):
            case.shared()
    elif what == "linear":
        for _ in range(1 if chance(30) else int(random.integers(2, 5))):
            case.add(case.categorical(beyond=False) if chance(70) else case.dense())
    else:
        dense = not parsed and chance(30)
        lengths = random.integers(0 if rows > 1 else 1, 4, rows)
        lengths[0] = max(lengths[0], 1)
        for _ in range(1 if dense else int(random.integers(1, 4))):
            case.add(case.sequence(lengths, dense))
    run(what, case, parsed, pick(["sum", "mean", "sqrtn"]), pick([1, 1, 3]))


if __name__ == "__main__":
    for number in range(500):
        with tf.Graph().as_default():
            try:
                one(number)
            except Exception:
                print(fixture.cases[-1])
                raise
    fixture.write("columns", tf, np)
