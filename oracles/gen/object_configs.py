"""Writes oracles/fixtures/object_configs_keras2.jsonl, object_configs_keras3.jsonl or object_configs_keras3_15.jsonl: losses, metrics,
optimizers and schedules as Keras writes them down, with what they compute.

Run as `python oracles/gen/object_configs.py` in an environment with tensorflow 2.15 (whose Keras is 2.15), and in ones with keras 3.6 and
keras 3.15 and jax or tensorflow, as `KERAS_BACKEND=jax python oracles/gen/object_configs.py`. The setting `json` of each case is what `serialize` returns. Cases:

    loss        `labels`, `predictions`, perhaps `weights`, and the loss `out`
    metric      the same, with the value `out`
    optimizer   two variables `w:<number>`, their gradients `g:<number>` step by step, and the variables `out:<number>` after these steps
    refused     an optimizer whose arithmetic Estimand does not have
    schedule    the rates `out` at the steps `steps`
"""

import json

import keras
import numpy as np

from fixture import Fixture, generation

IS_3 = keras.__version__.startswith("3.")
SEED = 23
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L, M, O = keras.losses, keras.metrics, keras.optimizers
S = O.schedules


def floats(*sizes):
    return random.uniform(0.1, 0.9, sizes).astype(np.float32)


def one_hot(*classes):
    return np.eye(3, dtype=np.float32)[list(classes)]


def arrays(**values):
    for key, value in values.items():
        if value is not None:
            fixture.put(key, np.asarray(value))


def loss(made, labels, predictions, weights=None):
    out = np.asarray(made(labels, predictions, sample_weight=weights), np.float32)
    fixture.case("loss", json=json.dumps(L.serialize(made)))
    arrays(labels=labels, predictions=predictions, weights=weights, out=out)


def metric(made, labels, predictions, weights=None):
    document = json.dumps(M.serialize(made))
    made.update_state(labels, predictions, sample_weight=weights)
    fixture.case("metric", json=document)
    arrays(labels=labels, predictions=predictions, weights=weights, out=np.asarray(made.result(), np.float32))


STEPS = 5


def optimizer(made):
    document = json.dumps(O.serialize(made))
    starts = [floats(2, 3), floats(4)]
    gradients = [random.uniform(-2, 2, (STEPS, *w.shape)).astype(np.float32) for w in starts]
    if IS_3:
        variables = [keras.Variable(w) for w in starts]
    else:
        import tensorflow as tf

        variables = [tf.Variable(w) for w in starts]
    for step in range(STEPS):
        values = [g[step] if IS_3 else tf.constant(g[step]) for g in gradients]
        made.apply_gradients(list(zip(values, variables)))
    fixture.case("optimizer", json=document)
    for i, (w, g, v) in enumerate(zip(starts, gradients, variables)):
        arrays(**{f"w:{i}": w, f"g:{i}": g, f"out:{i}": np.asarray(v)})


def schedule(made):
    steps = np.array([0, 1, 2, 3, 5, 8, 13, 21, 100], np.int64)
    fixture.case("schedule", json=json.dumps(S.serialize(made)))
    arrays(steps=steps, out=np.array([float(made(step)) for step in steps], np.float32))


SIDES = np.array([[1, -1, 1], [-1, -1, 1], [1, 1, -1]], np.float32)
CLASSES = np.array([2, 0, 1], np.int64)
ROWS = one_hot(*CLASSES)
WEIGHTS = np.array([0.5, 0, 2], np.float32)

for made in [L.MeanAbsoluteError(), L.MeanAbsolutePercentageError(), L.MeanSquaredError(reduction="sum_over_batch_size"),
             L.MeanSquaredLogarithmicError(name="named"), L.LogCosh(), L.Poisson(), L.Huber() if IS_3 else L.Huber(delta=0.2)]:
    loss(made, floats(3, 3), floats(3, 3) * 4)
    loss(made, floats(3, 3), floats(3, 3), WEIGHTS)
for made in [L.Hinge(), L.SquaredHinge()]:
    loss(made, SIDES, floats(3, 3), WEIGHTS)
for made in [L.BinaryCrossentropy(), L.BinaryCrossentropy(from_logits=True, label_smoothing=0.2)]:
    loss(made, ROWS, floats(3, 3), WEIGHTS)
for reduction in ["sum_over_batch_size", "sum", "none"]:
    for make in [L.CategoricalHinge, L.KLDivergence, L.CosineSimilarity, L.CategoricalCrossentropy]:
        loss(make(reduction=reduction), ROWS, floats(3, 3), WEIGHTS)
    loss(L.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1, reduction=reduction), ROWS, floats(3, 3))
    loss(L.SparseCategoricalCrossentropy(reduction=reduction), CLASSES, floats(3, 3), WEIGHTS)
loss(L.SparseCategoricalCrossentropy(from_logits=True), CLASSES, floats(3, 3))

FLAGS = random.integers(0, 2, (12, 1)).astype(np.float32)
EACH = random.uniform(0, 2, 12).astype(np.float32)
for made in [M.AUC(), M.AUC(num_thresholds=50, curve="PR", summation_method="majoring", name="area"), M.BinaryAccuracy(threshold=0.4),
             M.FalseNegatives(0.4), M.FalsePositives(), M.TrueNegatives(thresholds=[0.3]), M.TruePositives(), M.Precision(),
             M.Precision(thresholds=[0.2, 0.6]), M.Recall(0.3), M.Recall(thresholds=[0.2, 0.6]), M.PrecisionAtRecall(0.7),
             M.RecallAtPrecision(0.4), M.SensitivityAtSpecificity(0.3), M.SpecificityAtSensitivity(0.6), M.MeanAbsoluteError(),
             M.MeanSquaredError(), M.RootMeanSquaredError()]:
    metric(made, FLAGS, floats(12, 1), EACH)
metric(M.AUC(multi_label=True, num_labels=3, label_weights=[0.2, 0.3, 0.5], from_logits=True), random.integers(0, 2, (6, 3)), floats(6, 3) * 4 - 2)
metric(M.Accuracy(), random.integers(0, 3, 12), random.integers(0, 3, 12), EACH)
metric(M.MeanIoU(3), random.integers(0, 3, 12), random.integers(0, 3, 12), EACH)
for made in [M.CategoricalAccuracy(), M.CosineSimilarity(), M.TopKCategoricalAccuracy(2), M.CategoricalCrossentropy(label_smoothing=0.1),
             M.KLDivergence(), M.CategoricalHinge()]:
    metric(made, ROWS, floats(3, 3), WEIGHTS)
for made in [M.SparseCategoricalAccuracy(), M.SparseTopKCategoricalAccuracy(k=1), M.SparseCategoricalCrossentropy(from_logits=True)]:
    metric(made, CLASSES, floats(3, 3), WEIGHTS)
for made in [M.R2Score(), M.LogCoshError(), M.Poisson(), M.MeanAbsolutePercentageError(), M.MeanSquaredLogarithmicError()]:
    metric(made, floats(4, 3), floats(4, 3))
metric(M.BinaryCrossentropy(), FLAGS.reshape(4, 3), floats(4, 3))
metric(M.SquaredHinge(), SIDES, floats(3, 3))
metric(M.Hinge(), SIDES, floats(3, 3))
if not IS_3:
    metric(M.MeanRelativeError([1.0, 2.0, 4.0]), floats(2, 3), floats(2, 3))

SCHEDULES = [
    S.ExponentialDecay(0.1, 5, 0.5), S.ExponentialDecay(0.1, 5, 0.5, staircase=True), S.InverseTimeDecay(0.1, 5, 0.5, staircase=True),
    S.PolynomialDecay(0.1, 5, 0.01, 2.0, cycle=True), S.PolynomialDecay(0.1, 10), S.CosineDecay(0.1, 10, 0.2),
    S.CosineDecay(0.05, 10, 0.2, warmup_target=0.2, warmup_steps=3), S.CosineDecayRestarts(0.1, 4, 1.5, 0.8, 0.1),
    S.PiecewiseConstantDecay([2, 8], [0.1, 0.05, 0.01]),
]
for made in SCHEDULES:
    schedule(made)

if not IS_3:
    G = O.legacy
    for made in [G.SGD(0.05, momentum=0.5, nesterov=True), G.SGD(0.05, decay=0.5, clipvalue=0.5), G.SGD(SCHEDULES[0], clipnorm=1.0),
                 G.Adagrad(0.05, 0.2, 0.01), G.Adam(0.05, 0.8, 0.9, 0.01, amsgrad=True), G.Adam(), G.Ftrl(0.05, -0.4, 0.2, 0.01, 0.02, beta=0.1),
                 G.Ftrl(0.05, l2_shrinkage_regularization_strength=0.1), G.RMSprop(0.05, 0.8, global_clipnorm=1.5),
                 G.RMSprop(0.05, 0.8, 0.5, 0.01, centered=True), G.Adadelta(0.5, 0.8, 0.01), G.Adamax(0.05, 0.8, 0.9, 0.01),
                 G.Nadam(0.05, 0.8, 0.9, 0.01), G.Nadam(0.05, schedule_decay=0.5)]:
        optimizer(made)
for made in [O.SGD(0.05, momentum=0.5, nesterov=True), O.SGD(SCHEDULES[6], clipnorm=1.0), O.Adam(0.01, 0.8, 0.9, 0.01, amsgrad=True),
             O.Adam(0.01, global_clipnorm=1.5), O.Adam(0.01, weight_decay=0.1), O.AdamW(0.01, clipvalue=0.5), O.Adadelta(0.5, 0.8, epsilon=0.01),
             O.Adamax(0.05, 0.8, 0.9, 0.01), O.Nadam(0.05, 0.8, 0.9, 0.01), O.RMSprop(0.05, 0.8, 0.5, 0.01, centered=True),
             O.Ftrl(0.05, -0.4, 0.2, 0.01, 0.02, 0.03, beta=0.1), O.Adagrad(0.05, 0.2, 0.0),
             O.RMSprop(), O.Adagrad(0.05), O.SGD(0.05, weight_decay=0.1), O.Lion(0.01),
             O.Adafactor(0.05, -0.5, 1e-20, 0.01, 0.5, weight_decay=0.1)]:
    optimizer(made)
# Keras 3 begins an average with the weights after the first step, Keras 2.15 with those before it.
made = O.Adam(0.05, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3)
if IS_3:
    fixture.case("refused", json=json.dumps(O.serialize(made)))
else:
    optimizer(made)

fixture.write(f"object_configs_{generation(keras)}", keras, program="object_configs")
