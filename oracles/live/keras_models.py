"""Models of ours train as tf.keras does: from the same weights, on the same batches, with the same tables and histories.

    keras_models.py PROGRAM FOLDER        (PROGRAM: keras_exchange; FOLDER: an empty folder to exchange files in)

The first model is trained with every optimizer of Keras' newer generation that we have, the others with two of them; with OPTIMIZERS=all, all with
all, which takes half an hour. TensorFlow itself trains it again from weights that are
moved by one ulp. Each of our tensors may be apart from the first ones by 4 times what those of these trainings are.
"""

import io
import json
import os
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


STEPS = ROWS // BATCH * EPOCHS

# What float32 makes of the correction of the bias in Adam, AdamW, Adamax and Nadam: sqrt(1 - 0.999^t) is off by up to 1.3e-5. A step is about
# as long as the learning rate.
ROUNDED = 2e-5
CORRECTED = (keras.optimizers.Adam, keras.optimizers.AdamW, keras.optimizers.Adamax, keras.optimizers.Nadam)


class ExactAdam(keras.optimizers.Adam):
    """Adam whose correction of the bias is computed in double precision, as ours is. tf.keras computes it in float32."""

    def update_step(self, gradient, variable):
        step = tf.cast(self.iterations + 1, tf.float64)
        # As in tf.keras, the powers are those of the rounded numbers.
        one, two = (tf.cast(tf.constant(beta, tf.float32), tf.float64) for beta in (self.beta_1, self.beta_2))
        rate = tf.cast(self.learning_rate, tf.float64) * tf.sqrt(1 - tf.pow(two, step)) / (1 - tf.pow(one, step))
        key = self._index_dict[self._var_key(variable)]
        m, v = self._momentums[key], self._velocities[key]
        m.assign_add((gradient - m) * (1 - self.beta_1))
        v.assign_add((tf.square(gradient) - v) * (1 - self.beta_2))
        variable.assign_sub(m * tf.cast(rate, tf.float32) / (tf.sqrt(v) + self.epsilon))


O = keras.optimizers
OPTIMIZERS = {
    "sgd": lambda: O.SGD(0.05),
    "momentum": lambda: O.SGD(0.01, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda: O.Adam(0.01),
    "exact": lambda: ExactAdam(0.01),
    "adamw": lambda: O.AdamW(0.01),
    "adamax": lambda: O.Adamax(0.01),
    "nadam": lambda: O.Nadam(0.01),
    "rmsprop": lambda: O.RMSprop(0.005),
    "adagrad": lambda: O.Adagrad(0.05),
    "adadelta": lambda: O.Adadelta(1.0),
    "ftrl": lambda: O.Ftrl(0.1),
    "lion": lambda: O.Lion(0.002),
    "adafactor": lambda: O.Adafactor(0.1),
    "clipped": lambda: O.SGD(0.1, global_clipnorm=0.1),
    "average": lambda: O.SGD(0.05, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=7),
}


def mlp(optimizer):
    model = keras.Sequential([
        layers.Dense(16, activation="relu", kernel_regularizer=keras.regularizers.L2(0.01), input_shape=(8,)),
        layers.Dense(3, activation="softmax"),
    ])
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], run_eagerly=eagerly(optimizer))
    return model


def cnn(optimizer):
    model = keras.Sequential([
        # Batch norm takes a bias away: its gradient would be rounding alone, which Adam makes large.
        layers.Conv2D(6, 3, padding="same", use_bias=False, input_shape=(8, 8, 2)),
        layers.BatchNormalization(),
        layers.Activation("relu"),
        layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dense(4),
    ])
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["acc"], run_eagerly=eagerly(optimizer))
    return model


def lstm(optimizer):
    steps = keras.Input((None, 3), name="steps")
    model = keras.Model(steps, layers.Dense(1, activation="sigmoid")(layers.LSTM(5)(steps)))
    model.compile(optimizer, "binary_crossentropy", metrics=["accuracy", "AUC"], run_eagerly=eagerly(optimizer))
    return model


def masked(optimizer):
    model = keras.Sequential([
        keras.Input((6,), dtype="int64", name="words"),
        layers.Embedding(9, 4, mask_zero=True),
        layers.LSTM(5, return_sequences=True),
        layers.Dense(6, activation="tanh"),
        layers.Dense(3, activation="softmax"),
    ])
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], run_eagerly=eagerly(optimizer))
    return model


def two_inputs(optimizer):
    a, b = keras.Input((4,), name="a"), keras.Input((6,), name="b")
    x, y = layers.Dense(5, activation="tanh")(a), layers.Dense(5, activation="relu")(b)
    both = layers.Concatenate()([x, y])
    model = keras.Model([a, b], [layers.Dense(1, name="score")(both), layers.Dense(3, activation="softmax", name="klass")(both)])
    model.compile(optimizer, {"score": "mse", "klass": "sparse_categorical_crossentropy"}, loss_weights={"klass": 0.5, "score": 1.0},
                  metrics={"score": "mae", "klass": "accuracy"}, run_eagerly=eagerly(optimizer))
    return model


def attention(optimizer):
    steps = keras.Input((6, 4), name="steps")
    seen = layers.MultiHeadAttention(2, 3)(steps, steps)
    model = keras.Model(steps, layers.Dense(3, activation="softmax")(layers.GlobalAveragePooling1D()(seen)))
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"], run_eagerly=eagerly(optimizer))
    return model


def eagerly(optimizer):
    """In a compiled step, Nadam of tf.keras 2.15 gives NaN."""
    return isinstance(optimizer, keras.optimizers.Nadam)


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
    "attention": (attention, [numbers(6, 4)], [classes(3)]),
    "two_inputs": (two_inputs, [numbers(4), numbers(6)], [numbers(1), classes(3)]),
}


def optimizers_of(name):
    return list(OPTIMIZERS) if name == "mlp" or os.environ.get("OPTIMIZERS") == "all" else ["sgd", "exact"]


def plain(array):
    return {"sizes": array.shape, "dtype": str(array.dtype), "values": array.ravel().tolist()}


def array(found):
    return np.array(found["values"], np.float32).reshape(found["sizes"])


def made(build, optimizer):
    keras.backend.clear_session()
    keras.utils.set_random_seed(1)
    return build(OPTIMIZERS[optimizer]())


class Training:
    """A model that is trained again and again: to compile its functions takes longer than all its steps."""

    def __init__(self, build, optimizer, data):
        self.model, self.data = made(build, optimizer), data
        self.model.optimizer.build(self.model.trainable_variables)
        self.state = [variable.numpy() for variable in self.model.optimizer.variables]

    def run(self, weights):
        """The trained weights and the history."""
        for variable, value in zip(self.model.optimizer.variables, self.state, strict=True):
            variable.assign(value)
        self.model.set_weights(weights)
        data = self.data
        history = self.model.fit(one(data["x"]), one(data["y"]), sample_weight=data["w"], batch_size=BATCH, epochs=EPOCHS, shuffle=False,
                                 verbose=0, validation_data=(one(data["val_x"]), one(data["val_y"])))
        return self.model.get_weights(), history.history


def one(arrays):
    return arrays if len(arrays) > 1 else arrays[0]


def furthest(one, other):
    """The largest difference in each tensor."""
    return [np.abs(a - b).max() for a, b in zip(one, other, strict=True)]


def any_way(weights):
    return np.nextafter(weights, np.where(rng.random(weights.shape) < 0.5, np.float32(np.inf), np.float32(-np.inf)))


# One ulp up, and one ulp up or down for each weight: twice, and more often where only few optimizers are tried.
MOVES = [lambda weights: np.nextafter(weights, np.float32(np.inf)), any_way, any_way]
MORE_MOVES = MOVES + [any_way] * 4

cases, data = [], {}
for name, (build, x, y) in CASES.items():
    given = data[name] = {"x": [f(ROWS) for f in x], "y": [f(ROWS) for f in y], "val_x": [f(23) for f in x], "val_y": [f(23) for f in y],
                          "w": rng.choice([0.0, 0.5, 1.0, 2.0], ROWS).astype(np.float32)}
    given["weights"] = made(build, "sgd").get_weights()
    for optimizer in optimizers_of(name):
        make = OPTIMIZERS[optimizer]
        document = json.dumps(O.serialize(O.Adam(0.01) if optimizer == "exact" else make()))
        cases.append({"name": name, "optimizer": document, "epochs": EPOCHS, "batch_size": BATCH, "sample_weight": plain(given["w"]),
                      **{key: [plain(a) for a in given[key]] for key in ("x", "y", "val_x", "val_y", "weights")}})
(folder / "cases.json").write_text(json.dumps(cases))
subprocess.run([program, folder], check=True)
results = iter(json.loads((folder / "results.json").read_text()))


def check(name, build, optimizer, given, ours):
    place = f"{name} with {optimizer}"
    training = Training(build, optimizer, given)
    model = training.model
    theirs, history = training.run(given["weights"])
    logs = model.evaluate(one(given["x"]), one(given["y"]), batch_size=7, verbose=0, return_dict=True)
    predicted = model.predict(one(given["x"]), verbose=0)
    predicted = predicted if isinstance(predicted, list) else [predicted]
    moves = MOVES if name == "mlp" else MORE_MOVES
    others = [training.run([move(w) for w in given["weights"]]) for move in moves]
    if optimizer == "sgd":
        text = io.StringIO()
        model.summary(print_fn=lambda line: print(line, file=text))
        assert ours["summary"] == text.getvalue().rstrip("\n"), f"{place}:\n{ours['summary']}\n{text.getvalue()}"
        assert ours["layers"] == [layer.name for layer in model.layers], (place, ours["layers"])
        assert ours["weight_names"] == [w.name.removesuffix(":0") for w in model.weights], (place, ours["weight_names"])
    found = [array(w) for w in ours["weights"]]
    assert max(furthest(theirs, given["weights"])) > 1e-2, (place, "the training changes nothing")
    # Sums in another order are ulps apart, also where TensorFlow's own are not: a tensor that began with zeros, or that batch norm measures.
    ulps = [2 * np.spacing(np.abs(w).max()) for w in theirs]
    drifts = [max(drift) for drift in zip(ulps, *(furthest(theirs, other) for other, _ in others), strict=True)]
    slack = ROUNDED * STEPS * float(model.optimizer.learning_rate) if isinstance(model.optimizer, CORRECTED) and optimizer != "exact" else 0
    worst = 0
    for weight, difference, drift, ulp in zip(model.weights, furthest(theirs, found), drifts, ulps, strict=True):
        # Moving statistics are apart by up to half an ulp more in each step, whatever the optimizer: 0.99 and 0.01 do not add up to 1 in f32.
        moving = STEPS * ulp / 4 if "/moving_" in weight.name else 0
        assert difference <= 4 * drift + slack + moving, (place, weight.name, difference, drift)
        worst = max(worst, difference / drift)
    # What is shown of an epoch: the same names in the same order, and the same numbers.
    assert list(ours["history"]) == list(history), (place, list(ours["history"]), list(history))
    for key, values in history.items():
        loose = 4 * max(np.abs(np.array(values) - other[key]).max() for _, other in others) + 1e-6 + 10 * slack
        apart = np.abs(np.array(values) - ours["history"][key]).max()
        assert apart <= loose, (place, key, apart, loose)
    assert list(ours["evaluation"]) == list(logs), (place, list(ours["evaluation"]), list(logs))
    assert all(abs(ours["evaluation"][key] - value) < 1e-4 for key, value in logs.items()), (place, ours["evaluation"], logs)
    assert max(furthest(predicted, [array(p) for p in ours["predictions"]])) < 1e-4, place
    return worst


failures = []
for name, (build, _, _) in CASES.items():
    shown = []
    for optimizer in optimizers_of(name):
        try:
            shown.append(f"{optimizer} {check(name, build, optimizer, data[name], next(results)):.1f}")
        except AssertionError as failure:
            failures.append(str(failure))
    print(f"  {name}: {STEPS} steps; the worst tensor in drifts of one ulp: {', '.join(shown)}", flush=True)
assert not failures, "\n".join(failures)
