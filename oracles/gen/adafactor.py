"""Writes oracles/fixtures/adafactor.jsonl: what tf.keras' Adafactor does to variables of every rank.

Run as `python oracles/gen/adafactor.py` in an environment with tensorflow 2.15. Cases:

    variables   `names` of the variables, and each one's first value
    dense       a gradient of each variable, one case a step
    sparse      for the variable `table` alone: `rows` and their `values`, one case a step; rows may repeat, and there may be none
    rule        `settings` as get_config spells them, the kind of its `gradients`, and the values `after` some steps: of each variable and of its
                slots (`table/r`)
"""

import json

import numpy as np
import tensorflow as tf

from fixture import Fixture

STEPS, SEED = 20, 21
RECORDED = (1, 3, 20)
SHAPES = {"single": (), "bias": (4,), "table": (5, 3), "column": (6, 1), "cube": (2, 4, 3), "kernel": (3, 2, 2, 4)}
Adafactor = tf.keras.optimizers.Adafactor
warm = tf.keras.optimizers.schedules.PiecewiseConstantDecay([3, 11], [0.1, 0.5, 0.02])

CASES = [
    ("defaults", dict()),
    ("large", dict(learning_rate=0.5)),
    ("not_relative", dict(learning_rate=0.5, relative_step=False)),
    ("settings", dict(learning_rate=0.1, beta_2_decay=-0.5, epsilon_1=1e-4, epsilon_2=0.3, clip_threshold=0.7)),
    ("schedule", dict(learning_rate=warm)),
    ("decay", dict(learning_rate=0.1, weight_decay=0.1)),
    ("average", dict(learning_rate=0.1, weight_decay=0.05, use_ema=True, ema_momentum=0.6, ema_overwrite_frequency=3)),
    ("clipvalue", dict(learning_rate=0.1, clipvalue=0.4)),
    ("clipnorm", dict(learning_rate=0.1, clipnorm=0.5)),
    ("global_clipnorm", dict(learning_rate=0.1, global_clipnorm=0.5)),
]


def slots_of(optimizer, name, i, variable):
    """The slots of a variable. tf.keras has numbers in place of the factors of a variable of fewer than two axes."""
    found = {"v": optimizer._v[i]}
    if len(variable.shape) >= 2:
        found |= {"r": optimizer._r[i], "c": optimizer._c[i]}
    if optimizer.use_ema:
        found["average"] = optimizer._model_variables_moving_average[i]
    return {f"{name}/{slot}": np.asarray(value.numpy()) for slot, value in found.items()}


def write_case(fixture, kind, gradients, values, name, settings):
    optimizer = Adafactor(**settings)
    variables = {name: tf.Variable(value) for name, value in values.items() if kind == "dense" or name == "table"}
    after = []
    for step, given in enumerate(gradients, 1):
        if kind == "sparse":
            rows, numbers = given
            given = {"table": tf.IndexedSlices(tf.constant(numbers), tf.constant(rows, tf.int64), tf.constant(SHAPES["table"]))}
        optimizer.apply_gradients([(given[name], variable) for name, variable in variables.items()])
        if step in RECORDED:
            now = {name: np.asarray(variable.numpy()) for name, variable in variables.items()}
            for i, (of, variable) in enumerate(variables.items()):
                now |= slots_of(optimizer, of, i, variable)
            after.append({"step": step, "values": now})
    document = json.dumps(tf.keras.optimizers.serialize(optimizer))
    fixture.case("rule", name=f"{name}_{kind}", document=document, gradients=kind, after=after)


def main():
    rng = np.random.default_rng(SEED)
    normal = lambda shape: np.asarray(rng.normal(size=shape), np.float32)
    values = {name: normal(shape) * scale for (name, shape), scale in zip(SHAPES.items(), [1, 0.01, 1, 3, 1e-4, 1])}
    values = {name: np.asarray(value, np.float32) for name, value in values.items()}
    dense = [{name: normal(shape) for name, shape in SHAPES.items()} for _ in range(STEPS)]
    for gradient in dense[4].values():
        gradient[...] = 0
    dense[9]["table"][:, 2] *= 1e-3
    sparse = []
    for step in range(STEPS):
        rows = rng.integers(0, 4, size=0 if step == 6 else 4)  # the last row has no gradient
        sparse.append((rows, normal((len(rows), 3))))
    fixture = Fixture(SEED)
    fixture.case("variables", names=list(values), **values)
    for gradient in dense:
        fixture.case("dense", **gradient)
    for rows, numbers in sparse:
        fixture.case("sparse", rows=rows, values=numbers)
    for case in CASES:
        write_case(fixture, "dense", dense, values, *case)
        write_case(fixture, "sparse", sparse, values, *case)
    fixture.write("adafactor", tf, np)


if __name__ == "__main__":
    main()
