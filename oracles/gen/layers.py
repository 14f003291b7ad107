"""Writes oracles/fixtures/layers.jsonl: what Keras's layers and TensorFlow's losses make of small arrays, with their gradients.

Run as `python oracles/gen/layers.py` in an environment with tensorflow 2.15. `layer_cases.py` explains the keys.
"""

import numpy as np
import tensorflow as tf

from layer_cases import L, floats, keras, layer, loss, positive, random, write

rows, images = (5, 4), (2, 5, 6, 3)

layer("dense", L.Dense(3), floats(*rows))
layer("dense_rank3", L.Dense(2, activation="relu", use_bias=False), floats(2, 3, 4))
layer("dense_l1", L.Dense(3, kernel_regularizer=keras.regularizers.L1(0.03)), floats(*rows))
layer("dense_l2", L.Dense(3, kernel_regularizer=keras.regularizers.L2(0.02), trainable=True), floats(*rows))
layer("dense_l1_l2", L.Dense(3, kernel_regularizer=keras.regularizers.L1L2(0.03, 0.02),
                             bias_regularizer=keras.regularizers.L2(0.1)), floats(*rows))
layer("dense_activity", L.Dense(3, activation="tanh", activity_regularizer=keras.regularizers.L2(0.5)), floats(2, 3, 4))
layer("dense_frozen_l2", L.Dense(3, kernel_regularizer=keras.regularizers.L2(0.02), trainable=False), floats(*rows))
for activation in """linear relu relu6 elu selu softplus softsign sigmoid hard_sigmoid tanh softmax gelu swish
        exponential""".split():
    layer(f"activation_{activation}", L.Activation(activation), 3 * floats(4, 5))
layer("activation_leaky_relu", L.Activation(tf.nn.leaky_relu), 3 * floats(4, 5))
layer("conv2d", L.Conv2D(4, 3), floats(*images))
layer("conv2d_same", L.Conv2D(2, (3, 2), strides=(2, 1), padding="same", activation="relu"), floats(*images))
layer("conv2d_dilated", L.Conv2D(2, 2, dilation_rate=(2, 3), use_bias=False), floats(*images))
layer("max_pool", L.MaxPool2D(2), floats(*images))
layer("max_pool_same", L.MaxPool2D((3, 2), strides=(2, 1), padding="same"), floats(*images))
layer("avg_pool", L.AveragePooling2D(2), floats(*images))
layer("avg_pool_same", L.AveragePooling2D((3, 2), strides=(2, 1), padding="same"), floats(*images))
layer("global_max_pool", L.GlobalMaxPool2D(), floats(*images))
layer("global_avg_pool", L.GlobalAveragePooling2D(), floats(*images))
layer("flatten", L.Flatten(), floats(*images))
layer("reshape", L.Reshape((10, -1)), floats(*images))
layer("embedding", L.Embedding(6, 3), np.array([[1, 4, 1], [0, 5, 4]], np.int32))
layer("layer_norm", L.LayerNormalization(), floats(*rows))
layer("layer_norm_plain", L.LayerNormalization(epsilon=0.1, center=False, scale=False), floats(2, 3, 4))
layer("batch_norm", L.BatchNormalization(), floats(*rows))
layer("batch_norm_training", L.BatchNormalization(), floats(*rows), training=True)
layer("batch_norm_options", L.BatchNormalization(momentum=0.7, epsilon=0.1, center=False, scale=False), floats(*rows), training=True)
layer("batch_norm_axis", L.BatchNormalization(axis=1), floats(3, 4, 5), training=True)
layer("batch_norm_image", L.BatchNormalization(), floats(*images))
layer("batch_norm_image_training", L.BatchNormalization(), floats(*images), training=True)
# A frozen layer looks at no batch, also when it is told to train.
layer("batch_norm_frozen", L.BatchNormalization(trainable=False), floats(*rows), training=True)


v1 = tf.compat.v1.losses
REDUCTIONS = {"none": "NONE", "sum": "SUM", "mean": "MEAN", "sum_over_batch_size": "SUM_OVER_BATCH_SIZE",
              "sum_by_nonzero_weights": "SUM_BY_NONZERO_WEIGHTS"}


def elements(function):
    """Weights and reductions of TensorFlow 1 around losses that only Keras has."""
    return lambda y, p, w, reduction: v1.compute_weighted_loss(function(y, p), w, reduction=reduction)


def unit(*shape):
    return np.round(random.uniform(0.02, 0.98, shape), 3).astype(np.float32)


n, classes = 6, 4
numbers = dict(labels=lambda: floats(n, 3), x=lambda: 2 * floats(n, 3))
yes_no = lambda: (unit(n, 3) > 0.5).astype(np.float32)
one_hot = lambda: np.eye(classes, dtype=np.float32)[random.integers(0, classes, n)]
ids = lambda: random.integers(0, classes, n)
K = keras.losses
FORMS = [
    ("mean_squared_error", numbers["labels"], numbers["x"], lambda y, p, w, r: v1.mean_squared_error(y, p, w, reduction=r)),
    ("absolute_error", numbers["labels"], numbers["x"], lambda y, p, w, r: v1.absolute_difference(y, p, w, reduction=r)),
    ("huber", numbers["labels"], numbers["x"], lambda y, p, w, r: v1.huber_loss(y, p, w, delta=0.7, reduction=r)),
    ("sigmoid", yes_no, numbers["x"], lambda y, p, w, r: v1.sigmoid_cross_entropy(y, p, w, label_smoothing=0.1, reduction=r)),
    ("sigmoid_probabilities", yes_no, lambda: unit(n, 3), elements(keras.backend.binary_crossentropy)),
    ("softmax", one_hot, lambda: floats(n, classes), lambda y, p, w, r: v1.softmax_cross_entropy(y, p, w, label_smoothing=0.1, reduction=r)),
    ("softmax_probabilities", one_hot, lambda: unit(n, classes), elements(lambda y, p: K.categorical_crossentropy(y, p, label_smoothing=0.1))),
    ("sparse", ids, lambda: floats(n, classes), lambda y, p, w, r: v1.sparse_softmax_cross_entropy(y, p, w, reduction=r)),
    ("sparse_probabilities", ids, lambda: unit(n, classes), elements(K.sparse_categorical_crossentropy)),
]
for name, labels, x, function in FORMS:
    of_rows = name.startswith(("softmax", "sparse"))
    shapes = [None, (), (n,) if of_rows else (n, 1)] + ([] if of_rows else [(n, 3)])
    for key, reduction in REDUCTIONS.items():
        for shape in shapes:
            weights = None
            if shape is not None:
                weights = positive(*shape)
                if shape:
                    weights[random.integers(0, n)] = 0
            kind = "unweighted" if shape is None else "x".join(map(str, shape)) or "number"
            loss(name, key, kind, labels(), x(),
                 lambda y, p, w: function(y, p, w, getattr(v1.Reduction, reduction)), weights)

# Keras's own classes, with one weight for each example.
KERAS = [
    ("mean_squared_error", numbers["labels"], numbers["x"], K.MeanSquaredError()),
    ("absolute_error", numbers["labels"], numbers["x"], K.MeanAbsoluteError()),
    ("huber", numbers["labels"], numbers["x"], K.Huber(delta=0.7)),
    ("sigmoid", yes_no, numbers["x"], K.BinaryCrossentropy(from_logits=True, label_smoothing=0.1)),
    ("sigmoid_probabilities", yes_no, lambda: unit(n, 3), K.BinaryCrossentropy()),
    ("softmax", one_hot, lambda: floats(n, classes), K.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)),
    ("softmax_probabilities", one_hot, lambda: unit(n, classes), K.CategoricalCrossentropy(label_smoothing=0.1)),
    ("sparse", ids, lambda: floats(n, classes), K.SparseCategoricalCrossentropy(from_logits=True)),
    ("sparse_probabilities", ids, lambda: unit(n, classes), K.SparseCategoricalCrossentropy()),
]
for name, labels, x, function in KERAS:
    loss(name, "sum_over_batch_size", "keras", labels(), x(), lambda y, p, w: function(y, p, sample_weight=w), positive(n))
# Rows of several axes.
loss("sparse", "none", "sequences", random.integers(0, classes, (2, 3)), floats(2, 3, classes),
     lambda y, p, w: K.sparse_categorical_crossentropy(y, p, from_logits=True))
loss("softmax_plain", "none", "sequences", np.eye(classes, dtype=np.float32)[random.integers(0, classes, (2, 3))],
     floats(2, 3, classes), lambda y, p, w: K.categorical_crossentropy(y, p, from_logits=True))
# Predictions at and beyond the edges of what a probability is.
loss("sigmoid_probabilities", "none", "edges", np.array([[0, 1, 0, 1, 1]], np.float32),
     np.array([[0, 0, 1, 1, 1e-9]], np.float32), lambda y, p, w: keras.backend.binary_crossentropy(y, p))
loss("sparse_probabilities", "none", "edges", np.array([0, 1]), np.array([[0, 1], [0, 1]], np.float32),
     lambda y, p, w: K.sparse_categorical_crossentropy(y, p))
# Counts, also such as need no logarithm.
for name, full in [("log_poisson", True), ("log_poisson_short", False)]:
    for key, reduction in REDUCTIONS.items():
        loss(name, key, "counts", random.integers(0, 6, (n, 3)).astype(np.float32), floats(n, 3),
             lambda y, p, w: v1.compute_weighted_loss(tf.nn.log_poisson_loss(y, p, full), w, reduction=getattr(v1.Reduction, reduction)),
             positive(n, 1))
    loss(name, "none", "fractions", np.array([[0, 0.5, 1, 1.5]], np.float32), floats(1, 4),
         lambda y, p, w: tf.nn.log_poisson_loss(y, p, full))

write("layers")
