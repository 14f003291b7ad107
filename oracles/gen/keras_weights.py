"""Writes oracles/fixtures/keras_files/: weights that are loaded by name, and layers that were adapted, and keras_weights_keras2.jsonl or
keras_weights_keras3.jsonl beside them with what the models compute.

Run as `python oracles/gen/keras_weights.py` in an environment with tensorflow 2.15 (whose Keras is 2.15), and in one with keras 3 and
jax, as `KERAS_BACKEND=jax python oracles/gen/keras_weights.py`. A case has the name of its file, the text of `to_json`, the input `in:0`
and the result `out:0`. Cases `by_name` also have all weights before and after (`before:<number>`, `after:<number>`).
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

from fixture import Fixture

IS_3 = keras.__version__.startswith("3.")
SEED = 37
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
L, Input, Model, Sequential = keras.layers, keras.Input, keras.Model, keras.Sequential
folder = pathlib.Path(__file__).parent.parent / "fixtures" / "keras_files"
version = "keras3" if IS_3 else "keras2"


def floats(*sizes):
    return random.uniform(-1, 1, sizes).astype(np.float32)


def scatter(made):
    made.set_weights([np.asarray(random.uniform(0.1, 1, w.shape), np.float32) for w in made.get_weights()])


def adapted():
    """A normalization of images by channel, whose mean, variance and count are weights."""
    norm = L.Normalization(axis=3)
    x = start = Input((3, 4, 2), name="x")
    made = Model(start, L.Dense(1)(L.Flatten()(norm(L.Rescaling([0.5, 2.0], offset=[1.0, -1.0])(x)))), name="adapted")
    made.layers[-1].set_weights([floats(24, 1), floats(1)])
    norm.adapt(floats(7, 3, 4, 2) * 3 + 1)
    x = floats(2, 3, 4, 2)
    y = np.asarray(made.predict(x, verbose=0))
    for file in [f"adapted_{version}.keras"] + ([] if IS_3 else ["adapted_keras2.h5"]):
        made.save(folder / file)
        fixture.case("adapted", file=file, json=made.to_json())
        fixture.put("in:0", x)
        fixture.put("out:0", y)


def by_name():
    """Layers of the same names in another order, one with other shapes, one that the file does not have, one without a bias."""
    old = Sequential([Input((3,)), L.Dense(4, name="first"), L.BatchNormalization(name="norm"), L.Dense(4, name="last"), L.Dense(2, name="extra")])
    scatter(old)
    file = "by_name_keras2.h5"
    old.save_weights(folder / file)
    for skip, between, last in [
        (False, 4, L.Dense(5, name="new")),
        (True, 4, L.Dense(5, name="last")),
        (True, 4, L.Dense(4, name="last", use_bias=False)),
        # The kernel does not fit, the bias does.
        (True, 6, L.Dense(4, name="last")),
    ]:
        made = Sequential([Input((3,)), L.Dense(4, name="first"), L.Dense(between, name="between"), L.BatchNormalization(name="norm"), last])
        scatter(made)
        fixture.case("by_name", file=file, skip=skip, json=made.to_json())
        for i, weight in enumerate(made.get_weights()):
            fixture.put(f"before:{i}", weight)
        made.load_weights(folder / file, by_name=True, skip_mismatch=skip)
        for i, weight in enumerate(made.get_weights()):
            fixture.put(f"after:{i}", weight)
        x = floats(2, 3)
        fixture.put("in:0", x)
        fixture.put("out:0", np.asarray(made.predict(x, verbose=0)))


adapted()
if not IS_3:
    by_name()
fixture.write(f"keras_weights_{version}", keras, program="keras_weights")
