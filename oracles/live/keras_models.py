"""Models of ours train as tf.keras does: from the same weights, on the same batches, with the same tables and histories.

    keras_models.py PROGRAM FOLDER        (PROGRAM: keras_exchange; FOLDER: an empty folder to exchange files in)

TensorFlow itself trains each model again from weights that are moved by one ulp. Our weights may be apart from the first
ones by 4 times what these trainings are.
"""

import io
import json
import pathlib
import subprocess
import sys

import numpy as np
import tensorflow as tf

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
keras, layers = tf.keras, tf.keras.layers
tf.config.experimental.enable_op_determinism()
rng = np.random.default_rng(7)
ROWS, BATCH, EPOCHS = 50, 10, 6  # 30 steps


# What float32 makes of Adam's correction of the bias: sqrt(1 - 0.999^t) is off by up to 1.3e-5.
ROUNDED_ADAM = 2e-5


class ExactAdam(keras.optimizers.Adam):
    """Adam whose correction of the bias is computed in double precision, as ours is. tf.keras computes it in float32."""

    def update_step(self, gradient, variable):
        step = tf.cast(self.iterations + 1, tf.float64)
        one, two = tf.constant(self.beta_1, tf.float64), tf.constant(self.beta_2, tf.float64)
        rate = tf.cast(self.learning_rate, tf.float64) * tf.sqrt(1 - tf.pow(two, step)) / (1 - tf.pow(one, step))
        key = self._index_dict[self._var_key(variable)]
        m, v = self._momentums[key], self._velocities[key]
        m.assign_add((gradient - m) * (1 - self.beta_1))
        v.assign_add((tf.square(gradient) - v) * (1 - self.beta_2))
        variable.assign_sub(m * tf.cast(rate, tf.float32) / (tf.sqrt(v) + self.epsilon))


def mlp():
    model = keras.Sequential([
        layers.Dense(16, activation="relu", kernel_regularizer=keras.regularizers.L2(0.01), input_shape=(8,)),
        layers.Dense(3, activation="softmax"),
    ])
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def cnn():
    model = keras.Sequential([
        layers.Conv2D(6, 3, padding="same", input_shape=(8, 8, 2)),
        layers.BatchNormalization(),
        layers.Activation("relu"),
        layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dense(4),
    ])
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["acc"])
    return model


def lstm():
    steps = keras.Input((None, 3), name="steps")
    model = keras.Model(steps, layers.Dense(1, activation="sigmoid")(layers.LSTM(5)(steps)))
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy", "AUC"])
    return model


def masked():
    model = keras.Sequential([
        keras.Input((6,), dtype="int64", name="words"),
        layers.Embedding(9, 4, mask_zero=True),
        layers.LSTM(5, return_sequences=True),
        layers.Dense(6, activation="tanh"),
        layers.Dense(3, activation="softmax"),
    ])
    model.compile(keras.optimizers.SGD(0.5), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def two_inputs():
    a, b = keras.Input((4,), name="a"), keras.Input((6,), name="b")
    x, y = layers.Dense(5, activation="tanh")(a), layers.Dense(5, activation="relu")(b)
    both = layers.Concatenate()([x, y])
    model = keras.Model([a, b], [layers.Dense(1, name="score")(both), layers.Dense(3, activation="softmax", name="klass")(both)])
    model.compile("sgd", {"score": "mse", "klass": "sparse_categorical_crossentropy"}, loss_weights={"klass": 0.5, "score": 1.0},
                  metrics={"score": "mae", "klass": "accuracy"})
    return model


def numbers(*row):
    return lambda n: rng.normal(size=(n, *row)).astype(np.float32)


def classes(n_classes):
    return lambda n: rng.integers(0, n_classes, n).astype(np.int64)


def words(n):
    """Ids, of which 0 pads the ends of sentences."""
    ids = rng.integers(1, 9, (n, 6))
    return np.where(np.arange(6) < rng.integers(1, 7, (n, 1)), ids, 0).astype(np.int64)


def classes_of_steps(n):
    return rng.integers(0, 3, (n, 6)).astype(np.int64)


def yes_or_no(n):
    return rng.integers(0, 2, (n, 1)).astype(np.float32)


CASES = {
    "mlp": (mlp, [numbers(8)], [classes(3)]),
    "cnn": (cnn, [numbers(8, 8, 2)], [classes(4)]),
    "lstm": (lstm, [numbers(7, 3)], [yes_or_no]),
    "masked": (masked, [words], [classes_of_steps]),
    "two_inputs": (two_inputs, [numbers(4), numbers(6)], [numbers(1), classes(3)]),
}


def plain(array):
    return {"sizes": array.shape, "dtype": str(array.dtype), "values": array.ravel().tolist()}


def array(found):
    return np.array(found["values"], np.float32).reshape(found["sizes"])


def made(build):
    keras.backend.clear_session()
    keras.utils.set_random_seed(1)
    return build()


def train(build, weights, data, exact=False):
    """A trained model, its history and its evaluation."""
    model = made(build)
    if exact:
        model.optimizer = ExactAdam(float(model.optimizer.learning_rate))
    model.set_weights(weights)
    one = lambda arrays: arrays if len(arrays) > 1 else arrays[0]
    history = model.fit(one(data["x"]), one(data["y"]), sample_weight=data["w"], batch_size=BATCH, epochs=EPOCHS, shuffle=False,
                        verbose=0, validation_data=(one(data["val_x"]), one(data["val_y"])))
    logs = model.evaluate(one(data["x"]), one(data["y"]), batch_size=7, verbose=0, return_dict=True)
    return model, history.history, logs


def apart(one, other):
    """The largest difference, as a share of the size of what is compared."""
    return max(np.abs(a - b).max() / max(np.abs(a).max(), 1e-3) for a, b in zip(one, other))


def any_way(weights):
    return np.nextafter(weights, np.where(rng.random(weights.shape) < 0.5, np.float32(np.inf), np.float32(-np.inf)))


# One ulp up, and twice one ulp up or down for each weight.
MOVES = [lambda weights: np.nextafter(weights, np.float32(np.inf)), any_way, any_way]

cases, data = [], {}
for name, (build, x, y) in CASES.items():
    given = data[name] = {"x": [f(ROWS) for f in x], "y": [f(ROWS) for f in y], "val_x": [f(23) for f in x], "val_y": [f(23) for f in y],
                          "w": rng.choice([0.0, 0.5, 1.0, 2.0], ROWS).astype(np.float32)}
    given["weights"] = made(build).get_weights()
    cases.append({"name": name, "epochs": EPOCHS, "batch_size": BATCH, "sample_weight": plain(given["w"]),
                  **{key: [plain(a) for a in given[key]] for key in ("x", "y", "val_x", "val_y", "weights")}})
(folder / "cases.json").write_text(json.dumps(cases))
subprocess.run([program, folder], check=True)
results = json.loads((folder / "results.json").read_text())

for (name, (build, _, _)), ours in zip(CASES.items(), results, strict=True):
    given = data[name]
    model, history, logs = train(build, given["weights"], given)
    others = [train(build, [move(w) for w in given["weights"]], given) for move in MOVES]
    text = io.StringIO()
    model.summary(print_fn=lambda line: print(line, file=text))
    assert ours["summary"] == text.getvalue().rstrip("\n"), f"{name}:\n{ours['summary']}\n{text.getvalue()}"
    assert ours["layers"] == [layer.name for layer in model.layers], (name, ours["layers"])
    assert ours["weight_names"] == [w.name.removesuffix(":0") for w in model.weights], (name, ours["weight_names"])
    theirs = model.get_weights()
    drift = max(apart(theirs, other.get_weights()) for other, _, _ in others)
    difference = apart(theirs, [array(w) for w in ours["weights"]])
    moved_far = apart(theirs, given["weights"])
    assert moved_far > 1e-2, (name, "the training changes nothing")
    is_adam = isinstance(model.optimizer, keras.optimizers.Adam)
    assert difference <= 4 * drift + (ROUNDED_ADAM if is_adam else 0), (name, difference, drift)
    if is_adam:
        exact, _, _ = train(build, given["weights"], given, exact=True)
        difference = apart(exact.get_weights(), [array(w) for w in ours["weights"]])
        assert difference <= 4 * drift, (name, "with an exact Adam", difference, drift)
    # What is shown of an epoch: the same names in the same order, and the same numbers.
    assert list(ours["history"]) == list(history), (name, list(ours["history"]), list(history))
    for key, values in history.items():
        slack = 4 * max(np.abs(np.array(values) - other[key]).max() for _, other, _ in others) + 1e-6
        worst = np.abs(np.array(values) - ours["history"][key]).max()
        assert worst <= slack, (name, key, worst, slack)
    assert list(ours["evaluation"]) == list(logs), (name, list(ours["evaluation"]), list(logs))
    assert all(abs(ours["evaluation"][key] - value) < 1e-4 for key, value in logs.items()), (name, ours["evaluation"], logs)
    x = given["x"] if len(given["x"]) > 1 else given["x"][0]
    predicted = model.predict(x, verbose=0)
    predicted = predicted if isinstance(predicted, list) else [predicted]
    spread = apart(predicted, [array(p) for p in ours["predictions"]])
    assert spread < 1e-4, (name, spread)
    print(f"  {name}: 30 steps, weights apart by {difference:.1e} (one ulp drifts by {drift:.1e}), {len(history)} curves equal")
