"""Writes oracles/fixtures/heads.jsonl: what the heads of tf.estimator make of logits, labels and weights.

Run as `python oracles/gen/heads.py` in an environment with tensorflow 2.15. A case: a
`head` (its kind and what it was told), `logits`, `labels`, `features` (weights, masks), the sizes of the `batches` into
which rows are cut, `regularization` losses if there are some; and what TensorFlow's Estimator gives: `metrics` by key (with `loss`)
over all batches, `predictions` by key, and the `gradient` of the loss of all rows with respect to the logits. Keys of several heads are written `head/key`.
"""

import os
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow_estimator.python.estimator.head.sequential_head import SequentialHeadWrapper

from fixture import Fixture

tf.get_logger().setLevel("ERROR")
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
random = np.random.default_rng(6)
fixture = Fixture(seed=6)
REDUCTIONS = {"sum": tf.losses.Reduction.SUM, "sum_over_batch_size": tf.losses.Reduction.SUM_OVER_BATCH_SIZE}
LOSSES = {
    "absolute": lambda labels, logits: tf.abs(tf.cast(labels, tf.float32) - logits),
    "mean_absolute": lambda labels, logits: tf.reduce_mean(tf.abs(tf.cast(labels, tf.float32) - logits), -1, keepdims=True),
}
LINKS = {"exp": tf.math.exp, "square": tf.math.square}


def make(config):
    """The head of TensorFlow that a configuration describes."""
    kind = config["kind"]
    if kind == "multi":
        return tf.estimator.MultiHead([make(c) for c in config["heads"]], config.get("head_weights"))
    if kind == "sequential":
        return SequentialHeadWrapper(make(config["head"]), config["mask"], config.get("features"))
    names = {"weight_column": "weight_column", "name": "name", "thresholds": "thresholds", "vocabulary": "label_vocabulary",
             "classes": "classes_for_class_based_metrics", "label_dimension": "label_dimension", "n_classes": "n_classes",
             "full_loss": "compute_full_loss"}
    given = {names[k]: v for k, v in config.items() if k in names}
    if "reduction" in config:
        given["loss_reduction"] = REDUCTIONS[config["reduction"]]
    if "loss_fn" in config:
        given["loss_fn"] = LOSSES[config["loss_fn"]]
    if "link" in config:
        given["inverse_link_fn"] = LINKS[config["link"]]
    types = {"binary": tf.estimator.BinaryClassHead, "multi_class": tf.estimator.MultiClassHead,
             "multi_label": tf.estimator.MultiLabelHead, "regression": tf.estimator.RegressionHead,
             "poisson": tf.estimator.PoissonRegressionHead, "logistic": tf.estimator.LogisticRegressionHead}
    return types[kind](**given)


def sparse(label):
    """Labels padded with -1 or '' as TensorFlow's heads want several of them: sparse."""
    there = tf.not_equal(label, "" if label.dtype == tf.string else -1)
    where = tf.where(there)
    return tf.SparseTensor(where, tf.gather_nd(label, where), tf.shape(label, out_type=tf.int64))


def run(case):
    head = make(case["head"])

    def model_fn(features, labels, mode):
        ragged = case.get("ragged", [])
        if labels is not None:
            labels = {k: sparse(v) if k in ragged else v for k, v in labels.items()}
            labels = labels if case["head"]["kind"] == "multi" else labels["label"]
        losses = [tf.constant(v) for v in case.get("regularization", [])] or None
        return head.create_estimator_spec(features=features, mode=mode, logits=features["logits"], labels=labels,
                                          train_op_fn=lambda loss: tf.no_op(), regularization_losses=losses)

    def input_fn():
        features = {"logits": case["logits"], **case["features"]}
        first, parts = 0, []
        for n in case["batches"]:
            part = lambda d: {k: v[first:first + n] for k, v in d.items()}
            parts.append((part(features), part(case["labels"])))
            first += n
        first = tf.data.Dataset.from_tensors(parts[0]).element_spec
        any_rows = tf.nest.map_structure(lambda s: tf.TensorSpec((None,) + tuple(s.shape[1:]), s.dtype), first)
        return tf.data.Dataset.from_generator(lambda: iter(parts), output_signature=any_rows)

    # The gradient of the loss of all rows in one batch.
    logits = tf.constant(case["logits"])
    ragged = case.get("ragged", [])
    labels = {k: sparse(tf.constant(v)) if k in ragged else tf.constant(v) for k, v in case["labels"].items()}
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = head.loss(labels=labels if case["head"]["kind"] == "multi" else labels["label"], logits=logits,
                         features={k: tf.constant(v) for k, v in case["features"].items()})
    gradient = tape.gradient(loss, logits).numpy()

    head = make(case["head"])
    folder = tempfile.mkdtemp()
    estimator = tf.estimator.Estimator(model_fn, model_dir=folder)
    metrics = estimator.evaluate(input_fn)
    del metrics["global_step"]
    found = list(estimator.predict(input_fn, yield_single_examples=False))
    shutil.rmtree(folder)
    name = lambda key: "/".join(key) if isinstance(key, tuple) else key
    predictions = {name(key): np.concatenate([batch[key] for batch in found]) for key in found[0]}
    return {name(k): float(v) for k, v in metrics.items()}, predictions, gradient


def put(case):
    metrics, predictions, gradient = run(case)
    metrics = {k: float(f"{v:.9g}") for k, v in sorted(metrics.items())}
    fixture.case(case["head"]["kind"], **case, metrics=metrics, gradient=gradient, predictions=dict(sorted(predictions.items())))


def floats(*shape):
    return np.round(random.standard_normal(shape) * 1.5, 2).astype(np.float32)


def chance(p):
    return random.uniform() < p


def pick(*options):
    return options[random.integers(len(options))]


WORDS = ["no", "yes", "maybe", "café", "a b", "ж", "x/y"]


def common(config, features, n, by_logit=None):
    """A name, weights, a reduction: each for about half of the cases."""
    if chance(0.4):
        config["name"] = pick("hd", "a_head", "ctr")
    if chance(0.3):
        config["reduction"] = "sum"
    if chance(0.6):
        config["weight_column"] = "w"
        shape = pick((n,), (n, 1), (n, by_logit)) if by_logit else pick((n,), (n, 1))
        weights = np.round(random.uniform(0, 3, shape), 2).astype(np.float32)
        weights[random.uniform(size=shape) < 0.2] = 0
        features["w"] = pick(weights, np.round(weights).astype(np.int64))
    return config


def column(labels):
    return pick(labels, labels[..., None])


def binary(n):
    config, features = {"kind": "binary"}, {}
    labels = random.integers(0, 2, n)
    if chance(0.3):
        config["vocabulary"] = list(random.choice(WORDS, 2, replace=False))
        labels = np.array(config["vocabulary"], object)[labels]
    elif chance(0.3):
        labels = np.round(random.uniform(0, 1, n), 2).astype(np.float32)
    else:
        labels = labels.astype(pick(np.int64, np.int32, np.float32))
    if chance(0.4):
        config["thresholds"] = sorted(float(t) for t in random.choice([0.25, 0.5, 0.9, 0.3, 1 / 3, 0.00001], pick(1, 2, 3), replace=False))
    elif chance(0.2):
        config["loss_fn"] = "absolute"
    return config, features, floats(n, 1), column(labels), None


def multi_class(n):
    k = int(random.integers(3, 6))
    config = {"kind": "multi_class", "n_classes": k}
    labels = random.integers(0, k, n)
    if chance(0.4):
        config["vocabulary"] = list(random.choice(WORDS, k, replace=False))
        labels = np.array(config["vocabulary"], object)[labels]
    else:
        labels = labels.astype(pick(np.int64, np.int32))
    logits = floats(n, k)
    logits[:3] = np.round(logits[:3])  # ties
    if chance(0.2):
        config["loss_fn"] = "mean_absolute"
    return config, {}, logits, column(labels), None


def multi_label(n):
    k = int(random.integers(2, 5))
    config = {"kind": "multi_label", "n_classes": k}
    labels = random.integers(0, 2, (n, k))
    form = pick("dense", "dense", "ids", "strings")
    if form == "dense":
        labels = labels.astype(pick(np.int64, np.int32, np.int64))
    else:
        width = int(labels.sum(1).max()) or 1
        padded = np.full((n, width), -1, np.int64)
        for i, row in enumerate(labels):
            ids = random.permutation(np.flatnonzero(row))
            padded[i, :len(ids)] = ids
        labels = padded
    if form == "strings" or chance(0.2):
        config["vocabulary"] = list(random.choice(WORDS, k, replace=False))
        if form == "strings":
            labels = np.array(config["vocabulary"] + [""], object)[labels]
    if chance(0.4):
        config["thresholds"] = [0.25, 0.5]
    # Metrics of classes are scopes of names, which TensorFlow wants in ASCII.
    if chance(0.4) and all(w.isascii() and " " not in w for w in config.get("vocabulary", [])):
        config["classes"] = [int(c) for c in random.choice(k, pick(1, 2), replace=False)]
        if "vocabulary" in config and chance(0.5):
            config["classes"] = [config["vocabulary"][c] for c in config["classes"]]
    return config, {}, floats(n, k), labels, "label" if form in ("ids", "strings") else None


def regression(n):
    d = pick(1, 1, 3)
    config = {"kind": "regression"}
    if d > 1:
        config["label_dimension"] = d
    if chance(0.3):
        config["loss_fn"] = "absolute"
    if chance(0.3):
        config["link"] = pick("exp", "square")
    labels = floats(n, d) if chance(0.7) else random.integers(-3, 4, (n, d))
    return config, {}, floats(n, d), labels if d > 1 else pick(labels, labels[:, 0]), None


def poisson(n):
    d = pick(1, 1, 2)
    config = {"kind": "poisson"}
    if d > 1:
        config["label_dimension"] = d
    if chance(0.4):
        config["full_loss"] = False
    labels = random.integers(0, 6, (n, d)).astype(pick(np.int64, np.float32))
    return config, {}, floats(n, d), labels if d > 1 else pick(labels, labels[:, 0]), None


def logistic(n):
    return {"kind": "logistic"}, {}, floats(n, 1), column(np.round(random.uniform(0, 1, n), 2).astype(np.float32)), None


KINDS = [binary] * 30 + [multi_class] * 18 + [multi_label] * 22 + [regression] * 16 + [poisson] * 8 + [logistic] * 6
for kind in KINDS:
    n = int(random.integers(3, 10))
    batches = pick([n], [n], [2, n - 2], [1, 1, n - 2])
    config, features, logits, labels, ragged = kind(n)
    by_logit = logits.shape[1] if kind in (regression, poisson) else None
    config = common(config, features, n, by_logit)
    case = {"head": config, "logits": logits, "labels": {"label": labels}, "features": features, "batches": batches}
    if ragged:
        case["ragged"] = [ragged]
    if chance(0.2):
        case["regularization"] = [float(v) for v in np.round(random.uniform(0, 2, pick(1, 2)), 2)]
    put(case)

for i in range(10):
    n = int(random.integers(4, 9))
    config = {"kind": "multi", "heads": []}
    features, labels, logits, ragged = {}, {}, [], []
    for j, kind in enumerate(random.choice([binary, multi_class, multi_label, regression, poisson], pick(1, 2, 3), replace=False)):
        one, _, part, label, is_ragged = kind(n)
        common(one, features, n)
        one["name"] = f"head{j}"
        one.pop("reduction", None)
        config["heads"].append(one)
        labels[one["name"]] = label
        logits.append(part)
        if is_ragged:
            ragged.append(one["name"])
    if i % 3 == 0:
        for one in config["heads"]:
            one["reduction"] = "sum"
    if chance(0.5):
        config["head_weights"] = [float(w) for w in np.round(random.uniform(0, 2, len(config["heads"])), 1)]
    case = {"head": config, "logits": np.concatenate(logits, 1), "labels": labels, "features": features, "batches": [2, n - 2]}
    if ragged:
        case["ragged"] = ragged
    if i % 4 == 1:
        case["regularization"] = [0.5, 0.25]
    put(case)

for i in range(6):
    n, steps = int(random.integers(3, 6)), int(random.integers(2, 5))
    lengths = random.integers(1, steps + 1, n)
    mask = np.arange(steps)[None] < lengths[:, None]
    wrapped, _, logits, labels, _ = [binary, multi_class, regression][i % 3](n * steps)
    wrapped.pop("loss_fn", None)
    config = {"kind": "sequential", "head": wrapped, "mask": "sequence_mask"}
    features = {"sequence_mask": mask}
    if chance(0.5):
        wrapped["name"] = "seq"
    if i % 2:
        wrapped["weight_column"] = "w"
        features["w"] = np.round(random.uniform(0, 2, (n, steps)), 2).astype(np.float32)
        config["features"] = ["w"]
    over = lambda a: a.reshape((n, steps) + a.shape[1:])
    put({"head": config, "logits": over(logits), "labels": {"label": over(labels)}, "features": features, "batches": [2, n - 2]})

fixture.write("heads", tf, np)
