"""Writes oracles/fixtures/keras_files/custom_*: models with a layer of the user's own, and keras_custom_keras2.jsonl or
keras_custom_keras3.jsonl beside them with what the models compute.

Run as `python oracles/gen/keras_custom.py` in an environment with tensorflow 2.15 (whose Keras is 2.15), and in one with keras 3 and
jax, as `KERAS_BACKEND=jax python oracles/gen/keras_custom.py`. A case has the name of its file, the input `in:0` and the result `out:0`.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np

from fixture import Fixture

IS_3 = keras.__version__.startswith("3.")
SEED = 43
random = np.random.default_rng(SEED)
fixture = Fixture(SEED)
folder = pathlib.Path(__file__).parent.parent / "fixtures" / "keras_files"
version = "keras3" if IS_3 else "keras2"


def floats(*sizes):
    return random.uniform(-1, 1, sizes).astype(np.float32)


@keras.saving.register_keras_serializable("mine")
class ScaleBy(keras.layers.Layer):
    """x * scale * factor, with a trained scale for each number of a row."""

    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=(shape[-1],), initializer="ones")
        super().build(shape)

    def call(self, x):
        return x * self.scale * self.factor

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


layers = [keras.Input((3,)), keras.layers.Dense(4), ScaleBy(2.5), ScaleBy(-1.0), keras.layers.Dense(2)]
made = keras.Sequential(layers)
made.set_weights([floats(*w.shape) for w in made.get_weights()])
x = floats(5, 3)
y = np.asarray(made.predict(x, verbose=0))
for file in [f"custom_{version}.keras"] + ([] if IS_3 else ["custom_keras2.h5"]):
    made.save(folder / file)
    fixture.case("custom", file=file)
    fixture.put("in:0", x)
    fixture.put("out:0", y)
fixture.write(f"keras_custom_{version}", keras, program="keras_custom")
