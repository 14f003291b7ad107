"""Writes oracles/fixtures/keras_files/compiled_*: compiled models that Keras has trained and saved, and keras_compiled_keras2.jsonl,
keras_compiled_keras3.jsonl or keras_compiled_keras3_15.jsonl beside them with how Keras goes on from there.

Run as `python oracles/gen/keras_compiled.py` in an environment with tensorflow 2.15 (whose Keras is 2.15), and in ones with keras 3.6 and
keras 3.15 and jax or tensorflow, as `KERAS_BACKEND=jax python oracles/gen/keras_compiled.py`. A case has the name of its file, batches of inputs `x:<batch>`, labels
`y:<batch>:<output>` and for some weights of rows `w:<batch>`. Keras opens the file and trains on the batches in turn: it has the learning
rate before (`rate`), the logs of each batch (`logs:<batch>`), and the weights after all of them (`after:<number>`).
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

from fixture import Fixture, generation

IS_3 = keras.__version__.startswith("3.")
SEED = 61
N_BEFORE, N_AFTER = 3, 3
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L, O, Input = keras.layers, keras.optimizers, keras.Input
S = O.schedules
folder = pathlib.Path(__file__).parent.parent / "fixtures" / "keras_files"
version = generation(keras)
# Of Keras 3.15 some models, whose forms 3.6 has too.
SOME = ["momentum", "adam", "adafactor", "nadam", "schedule", "weighted", "lists", "own_loss"]


def floats(*sizes):
    return random.uniform(-1, 1, sizes).astype(np.float32)


def small():
    """A layer that is frozen, and batch norm, whose statistics no optimizer changes."""
    frozen = L.Dense(3, trainable=False, name="frozen")
    layers = [Input((2,), name="x"), frozen, L.Dense(2, activation="tanh", name="b"), L.BatchNormalization(name="norm"), L.Dense(1, name="a")]
    return keras.Sequential(layers, name="small")


def branches():
    start = Input((2,), name="x")
    x = L.Dense(2, activation="tanh", name="shared")(start)
    return keras.Model(start, [L.Dense(1, name="left")(x), L.Dense(2, activation="softmax", name="right")(x)], name="branches")


def batch(made, is_weighted):
    """Inputs, labels by output, and weights of rows."""
    x = floats(4, 2)
    y = [floats(4, 1)] if len(made.outputs) == 1 else [floats(4, 1), random.integers(0, 2, (4, 1)).astype(np.int64)]
    return x, y, floats(4) + 1.5 if is_weighted else None


def step(made, given):
    x, y, w = given
    made.reset_metrics()
    logs = made.train_on_batch(x, y[0] if len(y) == 1 else y, sample_weight=w, return_dict=True)
    return {name: np.float32(value) for name, value in logs.items()}


def rate(optimizer):
    """The learning rate of the next step."""
    if IS_3:
        return float(optimizer.learning_rate)
    if isinstance(optimizer, O.legacy.Nadam):
        return float(optimizer.learning_rate)  # its `decay` is that of the momentum
    if isinstance(optimizer, O.legacy.Optimizer):
        return float(optimizer._decayed_lr("float32"))
    own = optimizer._learning_rate
    return float(own(optimizer.iterations) if callable(own) else own)


def save(name, made, *suffixes, is_weighted=False, n_before=N_BEFORE, goes_on=True):
    if version == "keras3_15" and name not in SOME:
        return
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), np.float32) for w in made.get_weights()])
    for i in range(n_before):
        step(made, batch(made, is_weighted))
        if name == "rate" and i == 0:
            if IS_3:
                made.optimizer.learning_rate = 0.03
            else:
                made.optimizer.learning_rate.assign(0.03)
    given = [batch(made, is_weighted) for _ in range(N_AFTER)]
    for suffix in suffixes:
        file = f"compiled_{name}_{version}{suffix}"
        made.save(folder / file)
        fixture.case(name, file=file, is_weighted=is_weighted, goes_on=goes_on)
        if not goes_on:
            continue
        # Keras 3 does not find the loss `mse` of its own legacy file; the state is that of the other one.
        opened = file.replace(".h5", ".keras") if IS_3 else file
        again = keras.models.load_model(folder / opened)
        fixture.put("rate", rate(again.optimizer))
        for i, one in enumerate(given):
            fixture.put(f"x:{i}", one[0])
            for j, labels in enumerate(one[1]):
                fixture.put(f"y:{i}:{j}", labels)
            if is_weighted:
                fixture.put(f"w:{i}", one[2])
            logs = step(again, one)
            fixture.put(f"names:{i}", list(logs))
            fixture.put(f"logs:{i}", np.array(list(logs.values()), np.float32))
        for i, value in enumerate(again.get_weights()):
            fixture.put(f"after:{i}", value)


def compiled(optimizer, **more):
    made = small()
    made.compile(optimizer, **{"loss": "mse", **more})
    return made


BOTH = (".keras", ".h5")
# Keras 3 gives some variables of an optimizer the same name, and cannot write them to `.h5`.
ALIKE = (".keras",) if IS_3 else BOTH
save("momentum", compiled(O.SGD(0.1, momentum=0.9, nesterov=True)), *BOTH)
save("sgd", compiled(O.SGD(0.1, clipnorm=0.5)), *BOTH)
save("adam", compiled(O.Adam(0.01), metrics=["mae", keras.metrics.RootMeanSquaredError(name="root")]), *BOTH)
save("rate", compiled(O.Adam(0.01)), ".keras")
save("amsgrad", compiled(O.Adam(0.01, amsgrad=True, use_ema=True, ema_momentum=0.7)), ".keras")
save("adamw", compiled(O.AdamW(0.01, weight_decay=0.1), loss=keras.losses.Huber(delta=0.3)), *BOTH)
save("rmsprop", compiled(O.RMSprop(0.01, momentum=0.5, centered=True)), *BOTH)
save("adagrad", compiled(O.Adagrad(0.1)), *ALIKE)
save("adadelta", compiled(O.Adadelta(1.0)), ".keras")
save("adamax", compiled(O.Adamax(0.01)), ".keras")
save("ftrl", compiled(O.Ftrl(0.1)), ".keras")
save("lion", compiled(O.Lion(0.01)), ".keras")
save("adafactor", compiled(O.Adafactor(0.1)), ".keras")
if IS_3:
    # tf.keras 2.15 forgets the product of momentums when it saves.
    save("nadam", compiled(O.Nadam(0.01)), ".keras")
save("schedule", compiled(O.Adam(S.ExponentialDecay(0.1, 2, 0.5))), *BOTH)
save("cosine", compiled(O.SGD(S.CosineDecay(0.01, 10, warmup_target=0.2, warmup_steps=4), momentum=0.5)), ".keras")
save("named", compiled("rmsprop"), ".keras")
save("untrained", compiled(O.Adam(0.02)), *BOTH, n_before=0)
save("weighted", compiled(O.Adam(0.01), metrics=["mae"], weighted_metrics=["mse"]), *BOTH, is_weighted=True)
for name, loss, metrics in [
    ("lists", ["mse", keras.losses.SparseCategoricalCrossentropy()], [["mae"], ["accuracy", "sparse_categorical_crossentropy"]]),
    ("tables", {"left": "mae", "right": "sparse_categorical_crossentropy"}, {"right": [keras.metrics.SparseCategoricalAccuracy()]}),
]:
    made = branches()
    weights = [0.5, 2.0] if name == "lists" else {"left": 0.5, "right": 2.0}
    made.compile(O.Adam(0.05), loss=loss, loss_weights=weights, metrics=metrics)
    save(name, made, *(BOTH if name == "lists" else BOTH[:1]))
if not IS_3:
    made = branches()
    made.compile(O.SGD(0.1), loss={"left": "mse", "right": "sparse_categorical_crossentropy"}, metrics=["accuracy"])
    save("every", made, ".keras", ".h5")
    legacy = O.legacy
    save("legacy_adam", compiled(legacy.Adam(0.01, amsgrad=True)), ".h5")
    save("legacy_sgd", compiled(legacy.SGD(0.1, momentum=0.5, decay=0.1)), ".h5")
    save("legacy_rmsprop", compiled(legacy.RMSprop(0.01, momentum=0.5, centered=True)), ".h5")
    save("legacy_nadam", compiled(legacy.Nadam(0.01)), ".h5")
    save("legacy_ftrl", compiled(legacy.Ftrl(0.1)), ".h5")
    save("legacy_adadelta", compiled(legacy.Adadelta(1.0)), ".h5")
    # Keras 2 does not write the state of a legacy optimizer to this form, and begins anew.
    save("legacy_anew", compiled(legacy.Adam(0.01)), ".keras")


def own_loss(y_true, y_pred):
    return keras.losses.mean_squared_error(y_true, y_pred)


def own_metric(y_true, y_pred):
    return keras.losses.mean_absolute_error(y_true, y_pred)


save("own_loss", compiled(O.SGD(0.1), loss=own_loss), *BOTH, goes_on=False)
save("own_metric", compiled(O.SGD(0.1), metrics=[own_metric]), ".keras", goes_on=False)
fixture.write(f"keras_compiled_{version}", keras, program="keras_compiled")
