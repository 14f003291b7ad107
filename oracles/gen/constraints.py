"""Writes oracles/fixtures/constraints.jsonl: layers with constraints, trained by Keras for five steps.

Run as `python oracles/gen/constraints.py` in an environment with tensorflow 2.15. The
keys are `in`, `target`, `weight:<name>` before the first step and `after:<name>` behind the last. A step lowers the mean of
`(out - target)^2`. A case is of a layer and an `optimizer`.
"""

from layer_cases import L, fixture, floats, keras, np, positive, put, tf, write

C = keras.constraints
OPTIMIZERS = {
    "sgd": lambda: keras.optimizers.SGD(0.1),
    "momentum": lambda: keras.optimizers.SGD(0.05, momentum=0.9),
    "adagrad": lambda: keras.optimizers.Adagrad(0.2),
}


def train(name, make, x):
    """Five steps of a layer under each optimizer."""
    weights = None
    for key, optimizer in OPTIMIZERS.items():
        layer, optimizer = make(), optimizer()
        layer.build(x.shape)
        short = lambda w: w.name.split("/")[-1].split(":")[0]
        weights = weights or [positive(*w.shape) if "variance" in w.name else 2 * floats(*w.shape) for w in layer.weights]
        for w, value in zip(layer.weights, weights):
            w.assign(value)
        fixture.case(name, optimizer=key)
        put("in", x)
        for w in layer.weights:
            put(f"weight:{short(w)}", w)
        target = floats(*layer(tf.constant(x)).shape)
        put("target", target)
        for _ in range(5):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(layer(tf.constant(x)) - target))
            optimizer.minimize(loss, layer.trainable_weights, tape)
        for w in layer.trainable_weights:
            put(f"after:{short(w)}", w)


rows, images = floats(5, 4), floats(2, 4, 4, 2)
train("max_norm", lambda: L.Dense(3, kernel_constraint=C.MaxNorm(1.2), bias_constraint=C.NonNeg()), rows)
train("unit_norm", lambda: L.Dense(3, kernel_constraint=C.UnitNorm(axis=1)), rows)
train("non_neg", lambda: L.Dense(3, kernel_constraint=C.NonNeg()), rows)
train("min_max_norm", lambda: L.Dense(3, kernel_constraint=C.MinMaxNorm(0.5, 1.0, rate=0.6)), rows)
train("filters", lambda: L.Conv2D(3, 2, kernel_constraint=C.MaxNorm(1.0, axis=[0, 1, 2])), images)
train("apart", lambda: L.Conv2D(3, 2, kernel_constraint=C.UnitNorm(axis=[0, 2])), images)
train("depthwise", lambda: L.DepthwiseConv2D(2, depthwise_constraint=C.UnitNorm(axis=[0, 1])), images)
train("separable", lambda: L.SeparableConv2D(3, 2, depthwise_constraint=C.NonNeg(), pointwise_constraint=C.MaxNorm(0.7, axis=-1)), images)
train("slopes", lambda: L.PReLU(alpha_constraint=C.NonNeg()), rows)
train("layer_norm", lambda: L.LayerNormalization(beta_constraint=C.NonNeg(), gamma_constraint=C.MaxNorm(0.5)), rows)
train("batch_norm", lambda: L.BatchNormalization(beta_constraint=C.NonNeg(), gamma_constraint=C.UnitNorm()), rows)
# Only some rows have a gradient; all are held to the constraint.
ids = np.array([[1, 4], [0, 1], [1, 1]], np.int64)
train("embedding_max_norm", lambda: L.Embedding(6, 3, embeddings_constraint=C.MaxNorm(1.0, axis=1)), ids)
train("embedding_non_neg", lambda: L.Embedding(6, 3, embeddings_constraint=C.NonNeg()), ids)
sequences = floats(3, 4, 2)
train("sequences", lambda: L.LSTM(2, kernel_constraint=C.MaxNorm(0.8), recurrent_constraint=C.UnitNorm(), bias_constraint=C.NonNeg()), sequences)

write("constraints")
