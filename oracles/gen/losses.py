"""Writes oracles/fixtures/losses.jsonl: what the losses of Keras and of TensorFlow 1 make of small arrays, with their gradients.

Run as `python oracles/gen/losses.py` in an environment with tensorflow 2.15. `layer_cases.py` explains the keys.
Losses that only Keras has are given TensorFlow 1's weights and reductions; those of elements are called with one element a row, as Keras
takes the mean of a row. Those of mean absolute errors, cross entropies and the like are in layers.jsonl.
"""

import numpy as np
import tensorflow as tf

from layer_cases import floats, loss, random, write

K = tf.keras.losses
v1 = tf.compat.v1.losses
REDUCTIONS = {"none": "NONE", "sum": "SUM", "mean": "MEAN", "sum_over_batch_size": "SUM_OVER_BATCH_SIZE", "sum_by_nonzero_weights": "SUM_BY_NONZERO_WEIGHTS"}


def within(low, high):
    return lambda *shape: np.round(random.uniform(low, high, shape), 3).astype(np.float32)


def shares(*shape):
    """Rows that sum to 1."""
    drawn = random.uniform(0.1, 1, shape)
    return (drawn / drawn.sum(-1, keepdims=True)).astype(np.float32)


def of_rows(function):
    return lambda y, p, w, r: v1.compute_weighted_loss(function(y, p), w, reduction=r)


def of_elements(function):
    return of_rows(lambda y, p: function(y[..., None], p[..., None]))


def one_hot(n, classes):
    return np.eye(classes, dtype=np.float32)[random.integers(0, classes, n)]


signs = lambda *shape: random.choice([-1.0, 1.0], shape).astype(np.float32)
yes_no = lambda *shape: random.integers(0, 2, shape).astype(np.float32)
counts = lambda *shape: random.integers(0, 6, shape).astype(np.float32)
LOSSES = {
    "hinge_loss": (yes_no, floats, lambda y, p, w, r: v1.hinge_loss(y, p, w, reduction=r), K.Hinge()),
    "log_loss": (yes_no, within(0.02, 0.98), lambda y, p, w, r: v1.log_loss(y, p, w, reduction=r), None),
    "squared_hinge": (signs, floats, of_elements(K.squared_hinge), K.SquaredHinge()),
    "categorical_hinge": (one_hot, floats, of_rows(K.categorical_hinge), K.CategoricalHinge()),
    "kl_divergence": (shares, shares, of_rows(K.kl_divergence), K.KLDivergence()),
    "poisson": (counts, within(0.2, 4), of_elements(K.poisson), K.Poisson()),
    "cosine_similarity": (floats, floats, of_rows(K.cosine_similarity), K.CosineSimilarity()),
    "log_cosh": (floats, floats, of_elements(K.log_cosh), K.LogCosh()),
    "mean_absolute_percentage_error": (floats, floats, of_elements(K.mean_absolute_percentage_error), K.MeanAbsolutePercentageError()),
    "mean_squared_logarithmic_error": (within(0, 9), within(0, 9), of_elements(K.mean_squared_logarithmic_error), K.MeanSquaredLogarithmicError()),
}
ROWS = ["categorical_hinge", "kl_divergence", "cosine_similarity"]
n, m = 4, 3
for name, (labels, x, function, keras) in LOSSES.items():
    for key, reduction in REDUCTIONS.items():
        for shape in [None, (n,) if name in ROWS else (n, 1)] + ([] if name in ROWS else [(n, m)]):
            weights = None
            if shape is not None:
                weights = within(0.2, 2)(*shape)
                weights[random.integers(0, n)] = 0
            kind = "unweighted" if shape is None else "x".join(map(str, shape))
            loss(name, key, kind, labels(n, m), x(n, m), lambda y, p, w: function(y, p, w, getattr(v1.Reduction, reduction)), weights)
    if keras is not None:
        loss(name, "sum_over_batch_size", "keras", labels(n, m), x(n, m), lambda y, p, w: keras(y, p, sample_weight=w), within(0.2, 2)(n))

# Labels of both spellings, edges and beyond, rows of several axes, rows of zeros.
loss("hinge_loss", "none", "signs", signs(3, 4), floats(3, 4), lambda y, p, w: K.hinge(y[..., None], p[..., None]))
loss("squared_hinge", "none", "yes_no", yes_no(3, 4), floats(3, 4), lambda y, p, w: K.squared_hinge(y[..., None], p[..., None]))
loss("log_loss", "none", "edges", np.array([[0, 1, 0, 1]], np.float32), np.array([[0, 0, 1, 1]], np.float32), lambda y, p, w: v1.log_loss(y, p, reduction=v1.Reduction.NONE))
loss("kl_divergence", "none", "edges", np.array([[0, 1, 0], [0.5, 0.5, 0]], np.float32), np.array([[0.2, 0.8, 0], [0, 0.5, 0.5]], np.float32), lambda y, p, w: K.kl_divergence(y, p))
loss("poisson", "none", "edges", np.array([[0, 1, 3]], np.float32), np.array([[1e-9, 1e-9, 3]], np.float32), lambda y, p, w: K.poisson(y[..., None], p[..., None]))
loss("mean_absolute_percentage_error", "none", "edges", np.array([[0, -2, 5]], np.float32), np.array([[0.5, 2, 5.5]], np.float32),
     lambda y, p, w: K.mean_absolute_percentage_error(y[..., None], p[..., None]))
loss("mean_squared_logarithmic_error", "none", "edges", np.array([[-1, 0, 5]], np.float32), np.array([[2, -0.5, 900]], np.float32),
     lambda y, p, w: K.mean_squared_logarithmic_error(y[..., None], p[..., None]))
loss("log_cosh", "none", "large", np.array([[0, 0, 0, 0]], np.float32), np.array([[90, -90, 0.001, 1e-5]], np.float32), lambda y, p, w: K.log_cosh(y[..., None], p[..., None]))
loss("cosine_similarity", "none", "zeros", np.array([[0, 0], [1, 2]], np.float32), np.array([[1, 1], [0, 0]], np.float32), lambda y, p, w: K.cosine_similarity(y, p))
for name, function in [("cosine_similarity", K.cosine_similarity), ("kl_divergence", K.kl_divergence), ("categorical_hinge", K.categorical_hinge)]:
    loss(name, "none", "sequences", shares(2, 3, 4), shares(2, 3, 4), lambda y, p, w: function(y, p))

write("losses")
