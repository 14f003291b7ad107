"""Writes oracles/fixtures/rnn.jsonl and the checkpoint oracles/fixtures/rnn_tf: TensorFlow's RNNClassifier and RNNEstimator.

TensorFlow 2.15.1, Python 3.11, seed 11.  Run: python oracles/gen/rnn.py
Cases:

    train      rows, read over and over in batches of `batch` rows, by a model of `settings`. `features` and `labels` have `values`, and
               `lengths` if rows differ in their number of values (a list of steps). `before` holds all variables of the checkpoint of step 0;
               `steps` the loss of each step and all variables after it. Then the metrics of all rows in one batch, and their predictions
    folder     the checkpoint rnn_tf of step 2, the names and dtypes of its variables, and all variables two steps later
    summaries  the tags in the event file of a training
    error      what TensorFlow says of settings it refuses: the class of the exception
"""

import glob
import os
import pathlib
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow_estimator.python.estimator.head.sequential_head import SequentialHeadWrapper

from fixture import FOLDER, Fixture

SEED = 11
tf.get_logger().setLevel("ERROR")
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
random = np.random.default_rng(SEED)
fixture = Fixture(seed=SEED)
fc = tf.feature_column
E = tf.estimator.experimental
CELLS = {"simple_rnn": tf.keras.layers.SimpleRNNCell, "lstm": tf.keras.layers.LSTMCell, "gru": tf.keras.layers.GRUCell}
REDUCTIONS = {"sum": tf.losses.Reduction.SUM, "sum_over_batch_size": tf.losses.Reduction.SUM_OVER_BATCH_SIZE}
# One thread: the order of its sums is then always the same.
ONE = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
WORDS = ["ape", "bee", "cat", "dog"]
LENGTHS = np.array([3, 1, 4, 2, 0, 5, 2, 3])
N = len(LENGTHS)


class Losses(tf.compat.v1.train.SessionRunHook):
    """The loss of each step."""

    def __init__(self):
        self.all = []

    def begin(self):
        operations = tf.compat.v1.get_default_graph().get_operations()
        self.loss = next(op for op in operations if op.type == "ScalarSummary" and op.name == "loss").inputs[1]

    def before_run(self, context):
        return tf.compat.v1.train.SessionRunArgs(self.loss)

    def after_run(self, context, values):
        self.all.append(np.float32(values.results))


def ragged(values, per_step=1):
    """A feature with values for each step."""
    return {"values": values, "lengths": LENGTHS * per_step}


def tokens(n, per_step=1):
    return ragged(random.integers(0, n, LENGTHS.sum() * per_step))


def words():
    return ragged(np.array(WORDS)[random.integers(0, len(WORDS), LENGTHS.sum())])


def floats(per_step=1, size=1.0):
    return ragged((random.normal(size=LENGTHS.sum() * per_step) * size).astype(np.float32), per_step)


def dense(values):
    return {"values": np.asarray(values)}


def column(told):
    """The column of TensorFlow that a description stands for."""
    kind, key = told["kind"], told["key"]
    if kind == "sequence_numeric":
        return fc.sequence_numeric_column(key, shape=(told["shape"],), default_value=told.get("default", 0.0))
    if kind == "numeric":
        return fc.numeric_column(key)
    sequence = kind.startswith("sequence_")
    if "terms" in told:
        make = fc.sequence_categorical_column_with_vocabulary_list if sequence else fc.categorical_column_with_vocabulary_list
        ids = make(key, told["terms"])
    else:
        make = fc.sequence_categorical_column_with_identity if sequence else fc.categorical_column_with_identity
        ids = make(key, told["buckets"])
    return fc.embedding_column(ids, told["dimension"]) if kind.endswith("embedding") else fc.indicator_column(ids)


def cell(told):
    more = {key: told[key] for key in ["activation", "use_bias", "reset_after", "unit_forget_bias"] if key in told}
    return CELLS[told["type"]](told["units"], **more)


def rnn_cell_fn(told):
    return lambda: cell(told[0]) if len(told) == 1 else tf.keras.layers.StackedRNNCells([cell(c) for c in told])


def head(told):
    kind = told["kind"]
    if kind == "sequential":
        return SequentialHeadWrapper(head(told["head"]), told["mask"], told.get("features"))
    if kind == "multi":
        return tf.estimator.MultiHead([head(h) for h in told["heads"]])
    given = {key: told[key] for key in ["label_dimension", "name", "weight_column", "n_classes"] if key in told}
    return {"regression": tf.estimator.RegressionHead, "poisson": tf.estimator.PoissonRegressionHead,
            "multi_class": tf.estimator.MultiClassHead}[kind](**given)


def optimizer(told):
    K = tf.keras.optimizers.legacy
    return {"Adagrad": "Adagrad", "Adam": "Adam", "sgd_value": lambda: K.SGD(0.01), "SGD": "SGD"}[told]


def estimator(settings, folder):
    # Keras draws the seeds of its initializers from a generator of its own.
    tf.keras.utils.set_random_seed(SEED)
    given = {"sequence_feature_columns": [column(c) for c in settings["sequence"]]}
    if "context" in settings:
        given["context_feature_columns"] = [column(c) for c in settings["context"]]
    for key in ["units", "cell_type", "return_sequences", "n_classes", "weight_column", "label_vocabulary", "sequence_mask"]:
        if key in settings:
            given[key] = settings[key]
    if "cells" in settings:
        given["rnn_cell_fn"] = rnn_cell_fn(settings["cells"])
    if "optimizer" in settings:
        given["optimizer"] = optimizer(settings["optimizer"])
    if "loss_reduction" in settings:
        given["loss_reduction"] = REDUCTIONS[settings["loss_reduction"]]
    config = tf.estimator.RunConfig(tf_random_seed=SEED, session_config=ONE, save_checkpoints_steps=1, keep_checkpoint_max=None)
    if "head" in settings:
        return E.RNNEstimator(head(settings["head"]), model_dir=folder, config=config, **given)
    return E.RNNClassifier(model_dir=folder, config=config, **given)


def padded(feature):
    """Ragged values as an array with a row for each list."""
    values, lengths = feature["values"], feature["lengths"]
    rows = np.zeros((len(lengths), max(lengths)), values.dtype)
    rows[np.arange(max(lengths)) < np.asarray(lengths)[:, None]] = values
    return rows


def input_fn(features, labels, batch, repeat=False):
    """Rows in batches; ragged values are sparse, with as many steps as the longest row of the batch."""
    given = {("features", key): value for key, value in features.items()}
    given.update({("labels", key): value for key, value in labels.items()})
    keys = list(given)

    def sparse(values, lengths):
        there = tf.sequence_mask(lengths)
        where = tf.where(there)
        return tf.SparseTensor(where, tf.gather_nd(values, where), tf.shape(there, out_type=tf.int64))

    def unpack(*parts):
        found = {"features": {}, "labels": {}}
        for (side, key), part in zip(keys, parts):
            found[side][key] = sparse(*part) if isinstance(part, tuple) else part
        answers = found["labels"]
        return found["features"], answers[""] if list(answers) == [""] else answers

    def make():
        parts = tuple((padded(given[key]), given[key]["lengths"]) if "lengths" in given[key] else given[key]["values"] for key in keys)
        data = tf.data.Dataset.from_tensor_slices(parts)
        return (data.repeat() if repeat else data).batch(batch).map(unpack)

    return make


def variables(prefix):
    reader = tf.train.load_checkpoint(prefix)
    return {name: np.asarray(reader.get_tensor(name)) for name in sorted(reader.get_variable_to_shape_map())}


def listed(side):
    return [{"name": name, **value} for name, value in side.items()]


def joined(rows):
    """Predictions of rows as one array for each key."""
    joined = {}
    for key in rows[0]:
        values = [row[key] for row in rows]
        joined["/".join(key) if isinstance(key, tuple) else key] = np.array(values)
    return joined


def train(what, settings, features, labels, batch=4, n_steps=3):
    folder = tempfile.mkdtemp()
    rnn = estimator(settings, folder)
    losses = Losses()
    rnn.train(input_fn(features, labels, batch, repeat=True), steps=n_steps, hooks=[losses])
    steps = []
    for step in range(1, n_steps + 1):
        steps.append({"loss": losses.all[step - 1], "variables": variables(os.path.join(folder, f"model.ckpt-{step}"))})
    every = input_fn(features, labels, N)
    evaluated = {key: float(value) for key, value in rnn.evaluate(every).items()}
    predicted = joined(list(rnn.predict(every)))
    fixture.case("train", what=what, settings=settings, features=listed(features), labels=listed(labels), batch=batch,
                 before=variables(os.path.join(folder, "model.ckpt-0")), steps=steps, evaluated=evaluated, predicted=predicted)
    return folder


def gone(folder):
    shutil.rmtree(folder)


EMBEDDING = {"kind": "sequence_embedding", "key": "token", "buckets": 6, "dimension": 2}
INDICATOR = {"kind": "sequence_indicator", "key": "token", "buckets": 4}
NUMBER = {"kind": "sequence_numeric", "key": "price", "shape": 1}
PAIR = {"kind": "sequence_numeric", "key": "price", "shape": 2, "default": -0.5}
WORD = {"kind": "sequence_embedding", "key": "word", "terms": WORDS, "dimension": 2}
CONTEXT = [{"kind": "numeric", "key": "age"}, {"kind": "embedding", "key": "group", "buckets": 3, "dimension": 2}]


def context():
    return {"age": dense(random.normal(size=(N, 1)).astype(np.float32)), "group": dense(random.integers(0, 3, (N, 1)))}


def classes(n):
    return {"": dense(random.integers(0, n, (N, 1)))}


def step_classes(n):
    return {"": tokens(n)}


# The classifier of TensorFlow's defaults, whose summaries are read too.
folder = train("defaults", {"sequence": [EMBEDDING], "units": [3]}, {"token": tokens(6)}, classes(2))
tags = set()
for path in glob.glob(os.path.join(folder, "events.out.tfevents.*")):
    for event in tf.compat.v1.train.summary_iterator(path):
        tags.update(value.tag for value in event.summary.value)
fixture.case("summaries", tags=sorted(tags))
gone(folder)

for cells in ["simple_rnn", "lstm", "gru"]:
    gone(train(f"{cells}, a list of one", {"sequence": [EMBEDDING, NUMBER], "units": [3], "cell_type": cells},
               {"token": tokens(6), "price": floats()}, classes(2)))
    gone(train(f"{cells}, a number", {"sequence": [INDICATOR], "units": 3, "cell_type": cells}, {"token": tokens(4)}, classes(2)))
    gone(train(f"{cells}, stacked", {"sequence": [PAIR], "units": [3, 2], "cell_type": cells}, {"price": floats(2)}, classes(2)))
gone(train("three cells", {"sequence": [NUMBER], "units": [2, 3, 2], "cell_type": "lstm"}, {"price": floats()}, classes(2)))
gone(train("context", {"sequence": [EMBEDDING], "context": CONTEXT, "units": [3], "cell_type": "gru"},
           {"token": tokens(6), **context()}, classes(2)))
gone(train("three classes, weights, a sum", {"sequence": [WORD], "units": [3], "cell_type": "lstm", "n_classes": 3, "weight_column": "w", "loss_reduction": "sum"},
           {"word": words(), "w": dense(random.uniform(0.5, 2.0, (N, 1)).astype(np.float32))}, classes(3)))
gone(train("names of classes", {"sequence": [WORD], "units": [2], "label_vocabulary": ["no", "yes"]}, {"word": words()},
           {"": dense(np.array(["yes", "no"])[random.integers(0, 2, (N, 1))])}))
# Large numbers and a sum: the norms of gradients are far over 5. The value of an optimizer is not clipped.
for told in ["Adagrad", "Adam", "SGD", "sgd_value"]:
    gone(train(f"clipped {told}", {"sequence": [EMBEDDING, NUMBER], "units": [3], "optimizer": told, "loss_reduction": "sum", "weight_column": "w"},
               {"token": tokens(6), "price": floats(size=3.0), "w": dense(np.full((N, 1), 20, np.float32))}, classes(2)))
gone(train("a cell with options", {"sequence": [NUMBER], "cells": [{"type": "lstm", "units": 3, "activation": "relu", "use_bias": False}]},
           {"price": floats()}, classes(2)))
gone(train("cells of two types", {"sequence": [NUMBER], "cells": [{"type": "gru", "units": 3, "reset_after": False}, {"type": "lstm", "units": 2, "unit_forget_bias": False}]},
           {"price": floats()}, classes(2)))

STEPS = {"return_sequences": True}
gone(train("steps of two classes", {"sequence": [EMBEDDING], "units": [3], "cell_type": "lstm", **STEPS}, {"token": tokens(6)}, step_classes(2)))
gone(train("steps of three classes", {"sequence": [EMBEDDING], "context": CONTEXT, "units": [3, 2], "cell_type": "gru", "n_classes": 3, **STEPS},
           {"token": tokens(6), **context()}, step_classes(3)))
gone(train("steps of a layer with weights", {"sequence": [NUMBER], "units": 3, "cell_type": "gru", "weight_column": "w", "sequence_mask": "there", **STEPS},
           {"price": floats(), "w": ragged(random.uniform(0.5, 2.0, LENGTHS.sum()).astype(np.float32))}, step_classes(2)))
# A mask among the features: the last step does not count.
mask = np.arange(5) < np.maximum(LENGTHS - 1, 1)[:, None]
gone(train("a mask of the input", {"sequence": [NUMBER], "units": [3], **STEPS}, {"price": floats(), "sequence_mask": dense(mask)},
           {"": dense(random.integers(0, 2, (N, 5)))}, batch=N))
gone(train("names of the classes of steps", {"sequence": [NUMBER], "units": [2], "n_classes": 4, "label_vocabulary": WORDS, **STEPS}, {"price": floats()},
           {"": words()}))

gone(train("a regression", {"sequence": [NUMBER], "units": [3], "cell_type": "lstm", "head": {"kind": "regression", "label_dimension": 2}},
           {"price": floats()}, {"": dense(random.normal(size=(N, 2)).astype(np.float32))}))
gone(train("counts", {"sequence": [NUMBER], "units": [3], "head": {"kind": "poisson"}}, {"price": floats()},
           {"": dense(random.integers(0, 5, (N, 1)).astype(np.float32))}))
gone(train("two heads", {"sequence": [NUMBER], "units": [3], "head": {"kind": "multi", "heads": [
    {"kind": "regression", "name": "a"}, {"kind": "multi_class", "n_classes": 3, "name": "b"}]}}, {"price": floats()},
    {"a": dense(random.normal(size=(N, 1)).astype(np.float32)), "b": dense(random.integers(0, 3, (N, 1)))}))
gone(train("a regression of steps", {"sequence": [NUMBER], "units": [3], "cell_type": "gru", **STEPS,
           "head": {"kind": "sequential", "mask": "mask", "head": {"kind": "regression"}}}, {"price": floats()}, {"": floats()}))

# A folder that goes on here.
folder = tempfile.mkdtemp()
settings = {"sequence": [EMBEDDING, NUMBER], "context": CONTEXT, "units": [3, 2], "cell_type": "lstm", "optimizer": "Adam"}
features, labels = {"token": tokens(6), "price": floats(), **context()}, classes(2)
rnn = estimator(settings, folder)
rows = input_fn(features, labels, 4, repeat=True)
rnn.train(rows, steps=2)
for path in pathlib.Path(folder).glob("model.ckpt-2.*"):
    if path.suffix != ".meta":
        shutil.copy(path, FOLDER / path.name.replace("model.ckpt-2", "rnn_tf"))
before = variables(os.path.join(folder, "model.ckpt-2"))
rnn.train(rows, steps=2)
fixture.case("folder", settings=settings, features=listed(features), labels=listed(labels), batch=4,
             names={name: str(value.dtype) for name, value in before.items()}, after=variables(os.path.join(folder, "model.ckpt-4")))
gone(folder)


def refused(what, run):
    try:
        run()
        raise SystemExit(f"{what} was accepted")
    except (ValueError, TypeError) as error:
        fixture.case("error", what=what, kind=type(error).__name__)


columns = [column(NUMBER)]
refused("units and a cell", lambda: E.RNNClassifier(columns, units=[2], rnn_cell_fn=lambda: CELLS["lstm"](2)))
refused("a cell type and a cell", lambda: E.RNNClassifier(columns, cell_type="lstm", rnn_cell_fn=lambda: CELLS["lstm"](2)))
refused("steps without a head of sequences", lambda: E.RNNEstimator(tf.estimator.RegressionHead(), columns, units=[2], return_sequences=True))
price, answers = {"price": floats()}, classes(2)
for what, given in {"no cells": {}, "a number of units without a cell type": {"units": 2}, "an unknown cell type": {"units": [2], "cell_type": "lstn"}}.items():
    refused(what, lambda: E.RNNClassifier(columns, model_dir=tempfile.mkdtemp(), **given).train(input_fn(price, answers, 4), steps=1))
fixture.write("rnn", tf)
