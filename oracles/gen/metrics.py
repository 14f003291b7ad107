"""Writes oracles/fixtures/metrics.txt: what tf.keras.metrics make of streams of batches.

Run as `python oracles/gen/metrics.py` in an environment with tensorflow 2.15. The fixture's lines:

    case <metric> <what is special>           the test knows the metric's name
    labels|predictions|weights|... <dtype> <sizes> <values>   row by row; `-` stands for no sizes

`labels` and `predictions` (of `mean` only the latter), `weights` if there are some, the sizes of the `batches` into which the rows
are cut, and the result `out`. Where tf.compat.v1.metrics has the same metric, this program fails unless both agree.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

SEED = 7
OUT = pathlib.Path(__file__).parent.parent / "fixtures" / "metrics.txt"
random = np.random.default_rng(SEED)
lines = []
K = tf.keras.metrics
v1 = tf.compat.v1


def put(key, array):
    array = np.asarray(array)
    sizes = ",".join(map(str, array.shape)) or "-"
    dtype = {"float32": "f32", "int32": "i32", "int64": "i64"}[str(array.dtype)]
    lines.append(" ".join([key, dtype, sizes] + [str(v) for v in array.ravel()]))


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


def case(name, special, metric, labels, predictions, weights, batches, old=None, tolerance=1e-6):
    arrays = {"labels": labels, "predictions": predictions, "weights": weights}
    arrays = {key: a for key, a in arrays.items() if a is not None}
    column = lambda a: a[:, None] if a.ndim == 1 and not name.startswith(("sparse", "mean ", "top_k")) else a
    for i in range(len(batches)):
        part = {key: cut(a, batches)[i] for key, a in arrays.items()}
        given = [column(part[key]) for key in ("labels", "predictions") if key in part]
        metric.update_state(*given, sample_weight=part.get("weights"))
    out = np.float32(metric.result().numpy())
    if old is not None:
        same = {k: a[:, None] if k == "weights" and a.ndim < predictions.ndim else a for k, a in arrays.items()}
        was = first_version(old, same, batches)
        assert abs(was - out) <= tolerance, f"{name} {special}: {out}, with tf.compat.v1 {was}"
    lines.append(f"case {name} {special}")
    for key, array in arrays.items():
        put(key, array)
    put("batches", np.array(batches))
    put("out", out)


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
            at = f"{special} {t}"
            case("binary_accuracy", at, K.BinaryAccuracy(threshold=t), binary, p, w, BATCHES)
            case("precision", at, K.Precision(t), binary, p, w, BATCHES,
                 lambda **a: [v[0] for v in v1.metrics.precision_at_thresholds(thresholds=[t], **a)])
            case("recall", at, K.Recall(t), binary, p, w, BATCHES,
                 lambda **a: [v[0] for v in v1.metrics.recall_at_thresholds(thresholds=[t], **a)])
            for counted in ["true_positives", "false_positives", "true_negatives", "false_negatives"]:
                kind = getattr(K, "".join(map(str.capitalize, counted.split("_"))))
                old = getattr(v1.metrics, counted + "_at_thresholds")
                case(counted, at, kind(t), binary, p, w, BATCHES,
                     lambda **a: [v[0] for v in old(thresholds=[t], **a)], 1e-5)

for special, w in weighings(N):
    logits, classes = floats(N, 4), random.integers(0, 4, N)
    # Ties: the first of equals is the class.
    logits[:5] = np.round(logits[:5])
    one_hot = np.eye(4, dtype=np.float32)[classes]
    case("sparse_categorical_accuracy", special, K.SparseCategoricalAccuracy(), classes, logits, w, BATCHES)
    case("categorical_accuracy", special, K.CategoricalAccuracy(), one_hot, logits, w, BATCHES)
    for k in [1, 2, 3, 9]:
        case("top_k_categorical_accuracy", f"{special} {k}", K.TopKCategoricalAccuracy(k), one_hot, logits, w, BATCHES)
        odd, labels = logits.copy(), classes.copy()
        odd[3, 1], odd[8, classes[8]], odd[9, classes[9]] = np.nan, np.inf, -np.inf
        labels[4], labels[11] = 4, -1
        case("sparse_top_k_categorical_accuracy", f"{special} {k}", K.SparseTopKCategoricalAccuracy(k), labels, odd, w, BATCHES)

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

head = f"# Made by oracles/gen/metrics.py, which explains the lines; tensorflow {tf.__version__}, numpy {np.__version__}, seed {SEED}."
OUT.write_text("\n".join([head] + lines) + "\n")
print(sum(line.startswith("case") for line in lines), "cases,", OUT.stat().st_size, "bytes")
