"""Models that TensorFlow's own Estimator trained and exported must predict the same numbers here.

usage: saved_model.py EXAMPLE_PROGRAM EMPTY_FOLDER

Trains small models over all kinds of feature columns, exports each with a parsing and with a raw receiver, and runs random requests
through stock TensorFlow and through the example program (its header describes the files): features that are missing, empty, of odd
bytes, with many values. Floats are equal within RELATIVE and ABSOLUTE, ids and names of classes exactly.
"""

import os
import subprocess
import sys
import time

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

v1 = tf.compat.v1
columns = tf.feature_column
# TensorFlow 2.16 and later have no Estimator; keras_export.py uses functions of this file with it.
export = tf.estimator.export if hasattr(tf, "estimator") else None
RELATIVE, ABSOLUTE = 1e-5, 1e-6
SEED = 7
BATCHES = [1, 0, 2, 13, 64]
# Features of one length.
WEIGHTED = ["tags", "towns", "weights"]
WORDS = [b"clerk", b"nurse", b"cook", b"red", b"green", b"blue", b"a", b"b", b"", b"UNK", b"\xff\x00odd", "größe".encode(), b"x" * 200]


def buckets(key, n):
    return columns.categorical_column_with_hash_bucket(key, n)


class Columns:
    """Feature columns of every kind; made anew for each model, since some hold state."""

    def __init__(self, vocabulary):
        numeric, identity = columns.numeric_column, columns.categorical_column_with_identity
        listed, filed = columns.categorical_column_with_vocabulary_list, columns.categorical_column_with_vocabulary_file
        age = numeric("age")
        pair = numeric("pair", shape=(2,), default_value=0.5, normalizer_fn=lambda x: (x - 1.0) / 2.0)
        bins = columns.bucketized_column(age, [18, 25.5, 40, 65])
        bins_of_two = columns.bucketized_column(numeric("pair2", shape=(2,), default_value=(0.0, 1.0)), [0.0, 1.0])
        job = listed("job", ["clerk", "nurse", "", "cook"], num_oov_buckets=2)
        rank = listed("rank", [3, 1, 4, 15], dtype=tf.int64, default_value=2)
        colour = filed("colour", vocabulary)
        tint = filed("tint", vocabulary, vocabulary_size=2, num_oov_buckets=3)
        city, code = buckets("city", 20), columns.categorical_column_with_hash_bucket("code", 10, dtype=tf.int64)
        number = identity("number", 7, default_value=0)
        tags = buckets("tags", 15)
        weighted = columns.weighted_categorical_column(tags, "weights")
        weighted_city = columns.weighted_categorical_column(buckets("towns", 6), "weights")
        cross = columns.crossed_column([bins, "city", job], 30)
        other_cross = columns.crossed_column(["city", number], 40, hash_key=5)
        shared = columns.shared_embeddings([identity("a", 9), identity("b", 9)], 3)
        embed, show = columns.embedding_column, columns.indicator_column
        self.wide = [age, pair, bins, job, rank, colour, tint, city, code, number, cross, other_cross, weighted]
        self.deep = [age, pair, bins, bins_of_two, show(job), show(rank), show(colour), show(other_cross), show(weighted)]
        self.deep += [embed(city, 4), embed(tags, 3, combiner="sqrtn"), embed(weighted, 2, combiner="sum"), embed(tint, 2)]
        self.deep += [embed(weighted_city, 2, combiner="sqrtn"), embed(cross, 2, max_norm=0.1)] + shared
        self.spec = columns.make_parse_example_spec(self.wide + self.deep)


def random_value(key, dtype, n, rng):
    """Some values of a feature."""
    if dtype == tf.string:
        return [WORDS[rng.randint(len(WORDS))] for _ in range(n)]
    if dtype == tf.int64:
        # Ids of the shared embedding must be in range: the columns assert it.
        return rng.randint(0, 9, n) if key in "ab" else rng.choice([-3, -1, 0, 1, 3, 4, 6, 7, 15, 2**40], n)
    return np.where(rng.rand(n) < 0.1, rng.choice([0.0, -1.0, 18.0, 25.5]), rng.randn(n) * 30).astype(np.float32)


def random_lengths(rng, n):
    return rng.choice([0, 0, 1, 1, 1, 2, 5, 30], n)


def serialized(spec, n, rng):
    """Random tf.Examples."""
    rows = []
    for _ in range(n):
        example = tf.train.Example()
        features = example.features.feature
        length = {key: random_lengths(rng, 1)[0] for key in spec}
        length.update({key: length["tags"] for key in WEIGHTED})
        for key, feature in spec.items():
            fixed = isinstance(feature, tf.io.FixedLenFeature)
            count = int(np.prod(feature.shape)) if fixed else length[key]
            if fixed and feature.default_value is not None and rng.rand() < 0.3:
                continue
            if not fixed and count == 0 and rng.rand() < 0.7:
                continue
            values = random_value(key, feature.dtype, count, rng)
            if feature.dtype == tf.string:
                features[key].bytes_list.value.extend(values)
            elif feature.dtype == tf.int64:
                features[key].int64_list.value.extend(values)
            else:
                features[key].float_list.value.extend(values)
        rows.append(example.SerializeToString())
    return np.array(rows, dtype=object)


def raw(spec, n, rng):
    """Random arrays for each feature: shorter rows are filled up with what columns take for missing."""
    width = rng.randint(1, 5)
    arrays = {}
    for key, feature in spec.items():
        fixed = isinstance(feature, tf.io.FixedLenFeature)
        shape = [n] + (list(feature.shape) if fixed else [width])
        values = np.array(random_value(key, feature.dtype, int(np.prod(shape)), rng), dtype=feature.dtype.as_numpy_dtype)
        values = values.reshape(shape)
        if not fixed:
            # Weights belong to tags, and are missing with them.
            lengths = np.minimum(random_lengths(np.random.RandomState(SEED if key in WEIGHTED else rng.randint(2**31)), n), width)
            padding = {tf.string: b"", tf.int64: -1, tf.float32: 0.0}[feature.dtype]
            if key in ("tags", "towns"):
                values = np.where(values == b"", b"tag", values)
            if key == "weights":
                values = np.where(values == 0, 1, values).astype(np.float32)
            values = np.where(np.arange(width) < lengths[:, None], values, np.array(padding, dtype=values.dtype))
        arrays[key] = values
    return arrays


def training_input(spec, label):
    def make():
        rng = np.random.RandomState(SEED)
        features = raw(spec, 64, rng)
        return tf.data.Dataset.from_tensors((features, label(rng, 64))).repeat(4)

    return make


def receivers(spec):
    """A receiver of tf.Examples and one of plain arrays."""

    def arrays():
        width = lambda f: list(f.shape) if isinstance(f, tf.io.FixedLenFeature) else [None]
        features = {key: v1.placeholder(f.dtype, [None] + width(f), name=key) for key, f in spec.items()}
        return export.ServingInputReceiver(features, features)

    return {"parsing": export.build_parsing_serving_input_receiver_fn(spec), "raw": arrays}


def models(folder, vocabulary):
    """(name, estimator, columns, labels) of each model."""
    estimators = tf.estimator
    config = estimators.RunConfig(save_summary_steps=None, log_step_count_steps=None, tf_random_seed=SEED)
    whole = lambda n: lambda rng, rows: rng.randint(0, n, rows)
    real = lambda rng, rows: rng.randn(rows).astype(np.float32)
    names = [b"low", b"", "größe".encode()]
    named = lambda rng, rows: np.array([names[i] for i in rng.randint(0, 3, rows)])
    partitions = v1.fixed_size_partitioner(3)

    def make(name, kind, label, **kwargs):
        made = Columns(vocabulary)
        wide, deep = kwargs.pop("wide", made.wide), kwargs.pop("deep", made.deep)
        if kind.__name__.startswith("Linear"):
            model = kind(wide, config=config, **kwargs)
        elif kind.__name__.startswith("DNNLinear"):
            model = kind(linear_feature_columns=wide, dnn_feature_columns=deep, config=config, **kwargs)
        else:
            model = kind(feature_columns=deep, config=config, **kwargs)
        return name, model, made, label

    yield make("linear_classifier", estimators.LinearClassifier, whole(3), n_classes=3)
    yield make("linear_binary", estimators.LinearClassifier, whole(2), sparse_combiner="mean")
    yield make("linear_regressor", estimators.LinearRegressor, real, sparse_combiner="sqrtn", label_dimension=1)
    hidden = dict(hidden_units=[5, 3])
    yield make("dnn_classifier", estimators.DNNClassifier, named, n_classes=3, label_vocabulary=[n.decode() for n in names], batch_norm=True, dropout=0.1, **hidden)
    yield make("dnn_regressor", estimators.DNNRegressor, real, activation_fn=tf.nn.tanh, **hidden)
    heads = estimators.MultiHead([estimators.MultiLabelHead(3, name="many"), estimators.PoissonRegressionHead(name="count")])
    both = lambda rng, rows: {"many": rng.randint(0, 2, (rows, 3)), "count": rng.randint(0, 4, (rows, 1)).astype(np.float32)}
    yield make("dnn_heads", estimators.DNNEstimator, both, head=heads, **hidden)
    made = Columns(vocabulary)
    yield "custom", estimators.Estimator(custom_model(made.deep), config=config), made, whole(3)
    wide_and_deep = dict(dnn_hidden_units=[4], linear_optimizer=v1.train.FtrlOptimizer(0.1), dnn_optimizer=v1.train.AdagradOptimizer(0.1))
    yield make("wide_and_deep", estimators.DNNLinearCombinedClassifier, whole(3), n_classes=3, dnn_hidden_units=[4], dnn_dropout=0.1)
    first = v1.estimator.DNNLinearCombinedClassifier
    yield make("wide_and_deep_partitioned", first, whole(2), input_layer_partitioner=partitions, **wide_and_deep)


def custom_model(deep):
    """A model of Keras layers, as users write them."""
    layers = tf.keras.layers

    def model(features, labels, mode):
        training = mode == tf.estimator.ModeKeys.TRAIN
        x = layers.Dense(8, activation="elu")(layers.DenseFeatures(deep)(features))
        x = layers.BatchNormalization()(layers.LayerNormalization()(x), training=training)
        x = layers.Dense(4, activation="gelu")(layers.Dropout(0.2)(x, training=training))
        logits = layers.Dense(3)(x)
        if mode == tf.estimator.ModeKeys.PREDICT:
            best = tf.math.top_k(logits, 2).indices
            name = tf.gather(tf.constant(["low", "", "größe"]), best)
            return tf.estimator.EstimatorSpec(mode, predictions={"probabilities": tf.nn.softmax(logits), "best": best, "name": name})
        loss = v1.losses.sparse_softmax_cross_entropy(labels, logits)
        train = v1.train.AdamOptimizer().minimize(loss, v1.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    return model


class Theirs:
    """A saved model in stock TensorFlow."""

    def __init__(self, path):
        self.graph = tf.Graph()
        self.session = v1.Session(graph=self.graph)
        with self.graph.as_default():
            self.meta = v1.saved_model.load(self.session, ["serve"], path)

    def run(self, signature, inputs):
        definition = self.meta.signature_def[signature]
        feeds = {definition.inputs[key].name: value for key, value in inputs.items()}
        return self.session.run({key: info.name for key, info in definition.outputs.items()}, feeds)


class Rewritten:
    """What our reader read and our writer wrote, in stock TensorFlow."""

    def __init__(self, program, path, signature, folder, *options):
        self.signature = signature
        written = os.path.join(folder, "written")
        subprocess.run([program, *options, path, signature, "--write", written], check=True)
        graph, names = list(v1.io.tf_record_iterator(written))
        names = attr_value_pb2.NameAttrList.FromString(names)
        self.graph = tf.Graph()
        self.session = v1.Session(graph=self.graph)
        self.tensors = {"input": {}, "output": {}}
        with self.graph.as_default():
            tf.import_graph_def(v1.GraphDef.FromString(graph), name="")
            for key, attr in names.attr.items():
                role, _, name = key.partition(":")
                if role == "variable":
                    handle = self.graph.get_tensor_by_name(name + ":0")
                    self.session.run(tf.raw_ops.AssignVariableOp(resource=handle, value=tf.make_ndarray(attr.tensor)))
                elif role in self.tensors:
                    tensor = attr.s.decode()
                    self.tensors[role][name] = tensor if ":" in tensor else tensor + ":0"
            self.session.run([node.decode() for node in names.attr["initializers"].list.s])
        # An input that nothing depends on is not in the graph.
        self.present = {node.name + ":0" for node in self.graph.as_graph_def().node}

    def run(self, inputs):
        tensors = self.tensors["input"]
        feeds = {tensors[key]: value for key, value in inputs.items() if tensors[key] in self.present}
        return self.session.run(self.tensors["output"], feeds)


def ours(program, path, signature, requests, folder, *options):
    """What the example program answers."""
    asked, answered = os.path.join(folder, "requests"), os.path.join(folder, "answers")
    with tf.io.TFRecordWriter(asked) as writer:
        for i, inputs in enumerate(requests):
            message = attr_value_pb2.NameAttrList(name=str(i))
            for key, value in inputs.items():
                message.attr[key].tensor.CopyFrom(tf.make_tensor_proto(value))
            writer.write(message.SerializeToString())
    subprocess.run([program, *options, path, signature, asked, answered], check=True)
    for record in v1.io.tf_record_iterator(answered):
        message = attr_value_pb2.NameAttrList.FromString(record)
        if "error" in message.attr:
            yield message.attr["error"].s.decode()
        else:
            yield {key: tf.make_ndarray(attr.tensor) for key, attr in message.attr.items()}


def plain(value):
    """An array; a single string is one of objects, as many are."""
    return np.asarray(value, object if isinstance(value, bytes) else None)


def difference(mine, theirs):
    """Why two results are not the same, or None."""
    if isinstance(mine, str):
        return mine
    if sorted(mine) != sorted(theirs):
        return f"outputs {sorted(mine)} are not {sorted(theirs)}"
    for key, expected in theirs.items():
        value, expected = plain(mine[key]), plain(expected)
        if value.dtype != expected.dtype or value.shape != expected.shape:
            return f"`{key}` is {value.dtype}{list(value.shape)}, expected {expected.dtype}{list(expected.shape)}"
        if value.dtype == np.float32:
            wrong = ~np.isclose(value, expected, RELATIVE, ABSOLUTE, equal_nan=True)
        else:
            wrong = value != expected
        if np.any(wrong):
            return f"`{key}`: {np.sum(wrong)} of {value.size} differ: {value[wrong][:3]} and {expected[wrong][:3]}"
    return None


def check(program, path, kind, spec, folder):
    """(requests that passed, failures) of one export."""
    theirs = Theirs(path)
    rng = np.random.RandomState(SEED)
    passed, failed, rewritten = 0, [], None
    for signature, definition in theirs.meta.signature_def.items():
        requests = []
        for n in BATCHES:
            inputs = raw(spec, n, rng) if kind == "raw" else {next(iter(definition.inputs)): serialized(spec, n, rng)}
            requests.append({key: inputs[key] for key in definition.inputs})
        # What one signature computes the others do too.
        rewritten = rewritten or Rewritten(program, path, signature, folder)
        for n, request, mine in zip(BATCHES, requests, ours(program, path, signature, requests, folder)):
            try:
                expected = theirs.run(signature, request)
            except tf.errors.InvalidArgumentError as error:
                # Where TensorFlow refuses a request so do we; but an empty one, which it cannot reshape, has an empty answer.
                refused = isinstance(mine, str) if n else all(len(value) == 0 for value in mine.values())
                why = None if refused else f"TensorFlow refuses: {str(error)[:200]}"
            else:
                why = difference(mine, expected)
                if why is None and rewritten.signature == signature and (why := difference(rewritten.run(request), expected)):
                    why = "written again: " + why
            passed += why is None
            if why:
                failed.append(f"{signature}, {n} rows: {why}")
    return passed, failed


def main():
    program, folder = sys.argv[1:3]
    wanted = sys.argv[3:]
    v1.disable_eager_execution()
    v1.logging.set_verbosity(v1.logging.ERROR)
    vocabulary = os.path.join(folder, "colours.txt")
    with open(vocabulary, "wb") as file:
        file.write("red\ngrün\nblue\r\nunusual \n".encode())
    passed, failed = 0, 0
    for name, model, made, label in models(folder, vocabulary):
        if wanted and name not in wanted:
            continue
        model.train(training_input(made.spec, label), steps=3)
        for kind, receiver in receivers(made.spec).items():
            path = model.export_saved_model(os.path.join(folder, name, kind), receiver).decode()
            good, bad = check(program, path, kind, made.spec, folder)
            passed, failed = passed + good, failed + len(bad)
            for line in bad:
                print(f"{name} ({kind}): {line}")
            if wanted:
                print(name, kind, path, good, len(bad), f"{time.process_time():.0f} s")
    print(f"{passed} requests passed, {failed} failed")
    sys.exit(bool(failed) or passed == 0)


if __name__ == "__main__":
    main()
