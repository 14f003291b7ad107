"""Writes oracles/fixtures/metrics.jsonl: what tf.keras.metrics make of streams of batches.

Run as `python oracles/gen/metrics.py` in an environment with tensorflow 2.15. A case is of a metric, with
its settings and what is `special`; the test knows the metric's name. Its arrays: `labels` and `predictions` (of `mean` only the latter), `weights` if there are some, the sizes of the `batches` into which the rows
are cut, and the result `out`. Where tf.compat.v1.metrics has the same metric, this program fails unless both agree. What Keras has no metric for comes from
tf.compat.v1.metrics, or, as the calibration error, from its definition in NumPy's doubles.
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import Fixture

random = np.random.default_rng(7)
fixture = Fixture(seed=7)
K = tf.keras.metrics
v1 = tf.compat.v1


def cut(array, batches):
    return np.split(array, np.cumsum(batches)[:-1])


def first_version(make, arrays, batches):
    """The value of a metric of tf.compat.v1.metrics, which holds its sums in variables."""
    with tf.Graph().as_default(), v1.Session() as session:
        places = {key: v1.placeholder(a.dtype, (None,) + a.shape[1:]) for key, a in arrays.items()}
        value, update = make(**places)
        session.run(v1.local_variables_initializer())
        for part in zip(*(cut(a, batches) for a in arrays.values())):
            session.run(update, dict(zip(places.values(), part)))
        return session.run(value)


def case(name, special, metric, labels, predictions, weights, batches, old=None, tolerance=1e-6, **settings):
    arrays = {"labels": labels, "predictions": predictions, "weights": weights}
    arrays = {key: a for key, a in arrays.items() if a is not None}
    column = lambda a: a[:, None] if a.ndim == 1 and not name.startswith(("sparse", "mean ", "top_k")) else a
    for i in range(len(batches)):
        part = {key: cut(a, batches)[i] for key, a in arrays.items()}
        given = [column(part[key]) for key in ("labels", "predictions") if key in part]
        metric.update_state(*given, sample_weight=part.get("weights"))
    out = np.float32(metric.result())
    if old is not None:
        same = {k: a[:, None] if k == "weights" and a.ndim < predictions.ndim else a for k, a in arrays.items()}
        was = first_version(old, same, batches)
        assert np.all(abs(was - out) <= tolerance), f"{name} {special}: {out}, with tf.compat.v1 {was}"
    write(name, special, arrays, batches, out, **settings)


def write(name, special, arrays, batches, out, **settings):
    fixture.case(name, special=special, **settings, **arrays, batches=np.array(batches), out=np.asarray(out))


def floats(*shape):
    return np.round(random.standard_normal(shape), 3).astype(np.float32)


def units(*shape):
    return np.round(random.uniform(0, 1, shape), 4).astype(np.float32)


def weighings(n, *more):
    """No weights, those of rows, some of them 0, all of them 0, and those of elements."""
    yield "plain", None
    yield "weights", np.round(random.uniform(0, 3, n), 2).astype(np.float32)
    yield "some", random.integers(0, 2, n).astype(np.float32)
    yield "nothing", np.zeros(n, np.float32)
    if more:
        yield "elements", np.round(random.uniform(0, 3, (n, *more)), 2).astype(np.float32)


BATCHES = [7, 1, 12]
N = sum(BATCHES)

for shape in [(N,), (N, 3)]:
    of = "lists" if len(shape) == 1 else "rows"
    for special, w in weighings(*shape):
        special = f"{of} {special}"
        # Keras takes the mean of the last axis before it weighs: weights of elements are for its `Mean` alone.
        elements = special.endswith("elements")
        x, y = floats(*shape), floats(*shape)
        case("mean", special, K.Mean(), None, x, w, BATCHES,
             lambda predictions, weights=None: v1.metrics.mean(predictions, weights))
        case("root_mean_squared_error", special, K.RootMeanSquaredError(), x, y, w, BATCHES,
             lambda **a: v1.metrics.root_mean_squared_error(**a))
        if elements:
            continue
        case("mean_squared_error", special, K.MeanSquaredError(), x, y, w, BATCHES,
             lambda **a: v1.metrics.mean_squared_error(**a))
        case("mean_absolute_error", special, K.MeanAbsoluteError(), x, y, w, BATCHES,
             lambda **a: v1.metrics.mean_absolute_error(**a))
        classes, found = random.integers(0, 3, shape), random.integers(0, 3, shape)
        case("accuracy", special, K.Accuracy(), classes, found, w, BATCHES, lambda **a: v1.metrics.accuracy(**a))
        halves = (found + random.integers(0, 2, shape) / 2).astype(np.float32)
        case("accuracy", special + " halves", K.Accuracy(), classes, halves, w, BATCHES)
        binary, p = random.integers(0, 2, shape), units(*shape)
        # 0.5 is on the threshold; 0.3 is rounded to f32 before it is compared.
        p.flat[:4] = [0.5, 0.3, np.nextafter(np.float32(0.3), np.float32(1)), 1.0]
        for t in [0.5, 0.3]:
            case("binary_accuracy", special, K.BinaryAccuracy(threshold=t), binary, p, w, BATCHES, threshold=t)
            case("precision", special, K.Precision(t), binary, p, w, BATCHES,
                 lambda **a: [v[0] for v in v1.metrics.precision_at_thresholds(thresholds=[t], **a)], threshold=t)
            case("recall", special, K.Recall(t), binary, p, w, BATCHES,
                 lambda **a: [v[0] for v in v1.metrics.recall_at_thresholds(thresholds=[t], **a)], threshold=t)
            for counted in ["true_positives", "false_positives", "true_negatives", "false_negatives"]:
                kind = getattr(K, "".join(map(str.capitalize, counted.split("_"))))
                old = getattr(v1.metrics, counted + "_at_thresholds")
                case(counted, special, kind(t), binary, p, w, BATCHES,
                     lambda **a: [v[0] for v in old(thresholds=[t], **a)], 1e-5, threshold=t)

for special, w in weighings(N):
    logits, classes = floats(N, 4), random.integers(0, 4, N)
    # Ties: the first of equals is the class.
    logits[:5] = np.round(logits[:5])
    one_hot = np.eye(4, dtype=np.float32)[classes]
    case("sparse_categorical_accuracy", special, K.SparseCategoricalAccuracy(), classes, logits, w, BATCHES)
    case("categorical_accuracy", special, K.CategoricalAccuracy(), one_hot, logits, w, BATCHES)
    for k in [1, 2, 3, 9]:
        case("top_k_categorical_accuracy", special, K.TopKCategoricalAccuracy(k), one_hot, logits, w, BATCHES, k=k)
        odd, labels = logits.copy(), classes.copy()
        odd[3, 1], odd[8, classes[8]], odd[9, classes[9]] = np.nan, np.inf, -np.inf
        labels[4], labels[11] = 4, -1
        case("sparse_top_k_categorical_accuracy", special, K.SparseTopKCategoricalAccuracy(k), labels, odd, w, BATCHES, k=k)

THRESHOLDS = np.array([i / 199 for i in range(200)], np.float32)
near = np.concatenate([np.nextafter(THRESHOLDS, np.float32(0)), THRESHOLDS, np.nextafter(THRESHOLDS, np.float32(1))])
STREAMS = {
    "few": (units(N), random.integers(0, 2, N), BATCHES),
    "many": (units(400), random.integers(0, 2, 400), [128, 128, 128, 16]),
    "good": (np.float32(1) / (1 + np.exp(-floats(300) - 2 * (np.arange(300) % 2 - 0.5))).astype(np.float32), np.arange(300) % 2, [100, 150, 50]),
    "thresholds": (random.permutation(near), random.integers(0, 2, 600), [256, 256, 88]),
    "ends": (random.integers(0, 2, 50).astype(np.float32), random.integers(0, 2, 50), [25, 25]),
    "rows": (units(N, 3), random.integers(0, 2, (N, 3)), BATCHES),
    "positives": (units(N), np.ones(N, np.int64), BATCHES),
    "negatives": (units(N), np.zeros(N, np.int64), BATCHES),
    "alike": (np.full(N, 0.25, np.float32), random.integers(0, 2, N), BATCHES),
}
for stream, (p, labels, batches) in STREAMS.items():
    for special, w in weighings(*p.shape):
        special = f"{stream} {special}"
        # The first version adds 1e-6 to what it divides and divides by, and compares with every threshold where Keras rounds
        # p * 199: they agree where there is something to divide and no probability lies a last bit beside a threshold.
        agree = stream not in ("positives", "negatives", "thresholds") and "nothing" not in special
        roc = lambda **a: v1.metrics.auc(**a)
        pr = lambda **a: v1.metrics.auc(curve="PR", summation_method="careful_interpolation", **a)
        case("auc", special, K.AUC(), labels, p, w, batches, roc if agree else None, 1e-5)
        case("auc_precision_recall", special, K.AUC(curve="PR"), labels, p, w, batches, pr if agree else None, 1e-5)

FEW = ["few", "rows", "ends", "positives"]
for stream in FEW + ["good"]:
    p, labels, batches = STREAMS[stream]
    for special, w in list(weighings(*p.shape))[: 4 if stream == "few" else 2]:
        special = f"{stream} {special}"
        for limit in [0.5, 0.8] if stream in FEW else [0.7]:
            case("sensitivity_at_specificity", special, K.SensitivityAtSpecificity(limit), labels, p, w, batches, threshold=limit)
            case("specificity_at_sensitivity", special, K.SpecificityAtSensitivity(limit), labels, p, w, batches, threshold=limit)
            case("precision_at_recall", special, K.PrecisionAtRecall(limit), labels, p, w, batches, threshold=limit)
            case("recall_at_precision", special, K.RecallAtPrecision(limit), labels, p, w, batches, threshold=limit)
        if stream not in FEW:
            continue
        some = [0.25, 0.5]
        case("precision_at_thresholds", special, K.Precision(some), labels, p, w, batches,
             lambda **a: v1.metrics.precision_at_thresholds(thresholds=some, **a))
        case("recall_at_thresholds", special, K.Recall(some), labels, p, w, batches,
             lambda **a: v1.metrics.recall_at_thresholds(thresholds=some, **a))
        # What Keras has no metric for: 10 ranges, (0, 1/10] and so on, and 0 in the first.
        weights = np.ones(p.shape) if w is None else np.broadcast_to(w.reshape(w.shape + (1,) * (p.ndim - w.ndim)), p.shape).astype(np.float64)
        ranges = np.maximum(np.ceil(p * np.float32(10)).astype(int) - 1, 0)
        far = sum(abs((weights * (labels - p.astype(np.float64)))[ranges == i].sum()) for i in range(10))
        arrays = {"labels": labels, "predictions": p} | ({} if w is None else {"weights": w})
        write("expected_calibration_error", special, arrays, batches, np.float32(far / weights.sum() if weights.sum() else 0))

for curve in ["ROC", "PR"]:
    for method in ["interpolation", "minoring", "majoring"]:
        for n in [2, 11, 200]:
            for stream in ["few", "rows"]:
                p, labels, batches = STREAMS[stream]
                w = np.round(random.uniform(0, 3, N), 2).astype(np.float32)
                case("auc", stream, K.AUC(n, curve, method), labels, p, w, batches, curve=curve, method=method, n_thresholds=n)
        p, labels, batches = STREAMS["rows"]
        for n, label_weights in [(11, None), (200, None), (200, [0.5, 0, 2])]:
            w = np.round(random.uniform(0, 3, N), 2).astype(np.float32)
            case("auc", "rows", K.AUC(n, curve, method, multi_label=True, label_weights=label_weights), labels, p, w, batches,
                 curve=curve, method=method, n_thresholds=n, multi_label=True, label_weights=label_weights)
logits = floats(N)
case("auc", "logits", K.AUC(from_logits=True), random.integers(0, 2, N), logits, None, BATCHES,
     curve="ROC", method="interpolation", n_thresholds=200, from_logits=True)


class Matrix:
    """tf.math.confusion_matrix, added up."""

    def __init__(self):
        self.total = np.zeros((3, 3))

    def update_state(self, labels, predictions, sample_weight):
        flat = lambda a: None if a is None else np.broadcast_to(a.reshape(a.shape + (1,) * (labels.ndim - a.ndim)), labels.shape).ravel()
        self.total += tf.math.confusion_matrix(flat(labels), flat(predictions), 3, flat(sample_weight), tf.float64).numpy()

    def result(self):
        return self.total


for shape in [(N,), (N, 3)]:
    of = "lists" if len(shape) == 1 else "rows"
    for special, w in list(weighings(*shape))[:4]:
        special = f"{of} {special}"
        x, y = floats(*shape), floats(*shape)
        x.flat[0], y.flat[5] = 0, 0
        if not special.endswith("nothing"):
            # Keras divides 0 by 0 where there is nothing.
            case("r2_score", special, K.R2Score(), x, y, w, BATCHES)
        case("mean_loss", special, K.Hinge(), np.where(x > 0, 1, -1).astype(np.float32), y, w, BATCHES)
        if of == "rows":
            case("cosine_similarity", special, K.CosineSimilarity(), x, y, w, BATCHES)
        arrays = {"labels": x, "predictions": y} | ({} if w is None else {"weights": w})
        same = {k: a[:, None] if k == "weights" and a.ndim < y.ndim else a for k, a in arrays.items()}
        relative = first_version(lambda labels, predictions, weights=None: v1.metrics.mean_relative_error(labels, predictions, labels, weights), same, BATCHES)
        write("mean_relative_error", special, arrays, BATCHES, np.float32(relative))
        # Class 2 is never a label.
        classes, found = random.integers(0, 2, shape), random.integers(0, 3, shape)
        case("confusion_matrix", special, Matrix(), classes, found, w, BATCHES)
        arrays = {"labels": classes, "predictions": found} | ({} if w is None else {"weights": w})
        each = {k: np.broadcast_to(a.reshape(a.shape + (1,) * (found.ndim - a.ndim)), found.shape) for k, a in arrays.items()}
        for name in ["mean_iou", "mean_per_class_accuracy"]:
            old = getattr(v1.metrics, name)
            value = first_version(lambda labels, predictions, weights=None: old(labels, predictions, 3, weights), each, BATCHES)
            if name == "mean_iou":
                keras = K.MeanIoU(3)
                keras.update_state(classes, found, each.get("weights"))
                # Keras has 0 for nothing at all.
                assert abs(keras.result() - np.nan_to_num(value)) < 1e-6, (special, keras.result(), value)
                value = keras.result()
            write(name, special, arrays, BATCHES, np.float32(value))

fixture.write("metrics", tf, np)
