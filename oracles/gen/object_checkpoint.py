"""Writes oracles/fixtures/bundle_tf_objects: a checkpoint of objects, as Keras writes it.

Run as `python oracles/gen/object_checkpoint.py` in an environment with tensorflow 2.15.1; there is no randomness. A model of two layers, `dense` and `dense_1`, whose
variables count from 0, with an optimizer that has done one step.
"""

import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
model = tf.keras.Sequential([tf.keras.layers.Dense(3, name="dense"), tf.keras.layers.Dense(2, name="dense_1")])
model.build((None, 4))
adam = tf.keras.optimizers.legacy.Adam()
adam.apply_gradients((tf.zeros_like(v), v) for v in model.trainable_variables)
for i, variable in enumerate(model.variables):
    variable.assign(100 * i + np.arange(np.prod(variable.shape), dtype=np.float32).reshape(variable.shape))
prefix = str(FIXTURES / "bundle_tf_objects")
tf.train.Checkpoint(model=model, optimizer=adam).write(prefix)
for name, shape in tf.train.list_variables(prefix):
    print(name, shape)
