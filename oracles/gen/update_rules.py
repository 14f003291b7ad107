"""Writes oracles/fixtures/update_rules.jsonl: what TensorFlow's optimizers and schedules do to a small table.

Run as `python oracles/gen/update_rules.py` in an environment with tensorflow 2.15. Cases:

    table       `w`, the table before the first step
    dense       a `gradient` of all rows, one case a step
    sparse      a gradient: `rows` and their `values`, one case a step; rows may repeat, and there may be none
    rule        a rule with its `settings`, the kind of its `gradients`, and the state `after` some steps: `w` and the `slots`
    schedule    a schedule with its `settings`, and its `rates` at some steps
"""

import numpy as np
import tensorflow as tf

from fixture import Fixture

ROWS, COLUMNS, STEPS, SEED = 5, 3, 20, 14
RECORDED = (1, 3, 20)
legacy = tf.keras.optimizers.legacy


newer = tf.keras.optimizers

# Where optimizers of Keras' newer generation, which have no get_slot, keep what we call by the names of the legacy ones.
NEWER_SLOTS = {
    "SGD": {"momentum": "momentums"},
    "Adagrad": {"accumulator": "_accumulators"},
    "Adam": {"m": "_momentums", "v": "_velocities", "vhat": "_velocity_hats"},
    "AdamW": {"m": "_momentums", "v": "_velocities", "vhat": "_velocity_hats"},
    "Ftrl": {"accumulator": "_accumulators", "linear": "_linears"},
    "RMSprop": {"rms": "_velocities", "momentum": "_momentums", "mg": "_average_gradients"},
    "Adadelta": {"accum_grad": "_accumulated_grads", "accum_var": "_accumulated_delta_vars"},
    "Adamax": {"m": "_m", "v": "_u"},
    "Nadam": {"m": "_momentums", "v": "_velocities"},
    "Lion": {"m": "momentums"},
}


def slot_of(optimizer, variable, name):
    if name == "average":
        return optimizer._model_variables_moving_average[0]
    if isinstance(optimizer, newer.Optimizer):
        return getattr(optimizer, NEWER_SLOTS[optimizer.name][name])[0]
    return optimizer.get_slot(variable, name)


def adagrad_v1(epsilon, **settings):
    assert epsilon == 0, "TensorFlow 1 knows no other"
    return tf.compat.v1.train.AdagradOptimizer(**settings)


def momentum_v1(nesterov=False, **settings):
    return tf.compat.v1.train.MomentumOptimizer(use_nesterov=nesterov, **settings)


def rmsprop_v1(rho=0.9, **settings):
    return tf.compat.v1.train.RMSPropOptimizer(decay=rho, **settings)


# name, what makes the optimizer, rule, slots, settings (the rate under "rate")
CASES = [
    ("sgd", legacy.SGD, "SGD", [], dict(rate=0.05)),
    ("sgd_momentum", legacy.SGD, "SGD", ["momentum"], dict(rate=0.05, momentum=0.9)),
    ("sgd_nesterov", legacy.SGD, "SGD", ["momentum"], dict(rate=0.05, momentum=0.9, nesterov=True)),
    ("momentum_v1", momentum_v1, "Momentum", ["momentum"], dict(rate=0.05, momentum=0.9)),
    ("momentum_v1_nesterov", momentum_v1, "Momentum", ["momentum"], dict(rate=0.05, momentum=0.9, nesterov=True)),
    ("adagrad", legacy.Adagrad, "Adagrad", ["accumulator"], dict(rate=0.05)),
    ("adagrad_settings", legacy.Adagrad, "Adagrad", ["accumulator"],
     dict(rate=0.3, initial_accumulator_value=0.5, epsilon=0.01)),
    ("adagrad_v1", adagrad_v1, "Adagrad", ["accumulator"], dict(rate=0.05, epsilon=0.0)),
    ("adam", legacy.Adam, "Adam", ["m", "v"], dict(rate=0.01)),
    ("adam_settings", legacy.Adam, "Adam", ["m", "v"], dict(rate=0.05, beta_1=0.8, beta_2=0.95, epsilon=1e-3)),
    ("adam_amsgrad", legacy.Adam, "Adam", ["m", "v", "vhat"], dict(rate=0.01, beta_2=0.9, amsgrad=True)),
    ("adamw", newer.AdamW, "AdamW", ["m", "v"], dict(rate=0.01, weight_decay=0.004)),
    ("adamw_amsgrad", newer.AdamW, "AdamW", ["m", "v", "vhat"], dict(rate=0.01, weight_decay=0.3, beta_2=0.9, amsgrad=True)),
    ("ftrl", legacy.Ftrl, "Ftrl", ["accumulator", "linear"], dict(rate=0.2)),
    ("ftrl_l1_l2", legacy.Ftrl, "Ftrl", ["accumulator", "linear"],
     dict(rate=0.2, l1_regularization_strength=0.3, l2_regularization_strength=0.1)),
    ("ftrl_shrinkage", legacy.Ftrl, "Ftrl", ["accumulator", "linear"],
     dict(rate=0.2, l1_regularization_strength=0.01, l2_shrinkage_regularization_strength=0.1, beta=0.5)),
    ("ftrl_power", legacy.Ftrl, "Ftrl", ["accumulator", "linear"],
     dict(rate=0.2, learning_rate_power=-0.7, initial_accumulator_value=0.4)),
    ("ftrl_fixed_rate", legacy.Ftrl, "Ftrl", ["accumulator", "linear"], dict(rate=0.2, learning_rate_power=0.0)),
    ("rmsprop", legacy.RMSprop, "RMSprop", ["rms"], dict(rate=0.01)),
    ("rmsprop_centered", legacy.RMSprop, "RMSprop", ["rms", "mg"], dict(rate=0.01, rho=0.8, centered=True)),
    ("rmsprop_momentum", legacy.RMSprop, "RMSprop", ["rms", "momentum"], dict(rate=0.01, momentum=0.8, epsilon=1e-3)),
    ("rmsprop_momentum_centered", legacy.RMSprop, "RMSprop", ["rms", "momentum", "mg"],
     dict(rate=0.01, momentum=0.8, centered=True)),
    ("rmsprop_v1", rmsprop_v1, "RMSProp", ["rms", "momentum"], dict(rate=0.05)),
    ("rmsprop_v1_centered", rmsprop_v1, "RMSProp", ["rms", "momentum", "mg"],
     dict(rate=0.05, momentum=0.5, rho=0.8, centered=True)),
    ("adadelta", legacy.Adadelta, "Adadelta", ["accum_grad", "accum_var"], dict(rate=1.0)),
    ("adadelta_settings", legacy.Adadelta, "Adadelta", ["accum_grad", "accum_var"], dict(rate=0.5, rho=0.8, epsilon=1e-2)),
    ("adamax", legacy.Adamax, "Adamax", ["m", "v"], dict(rate=0.01)),
    ("adamax_settings", legacy.Adamax, "Adamax", ["m", "v"], dict(rate=0.1, beta_1=0.7, beta_2=0.9, epsilon=1e-2)),
    ("nadam", legacy.Nadam, "Nadam", ["m", "v"], dict(rate=0.01)),
    ("nadam_settings", legacy.Nadam, "Nadam", ["m", "v"],
     dict(rate=0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-3, schedule_decay=0.5)),
    ("newer_sgd", newer.SGD, "SGD", [], dict(rate=0.05)),
    ("newer_sgd_momentum", newer.SGD, "SGD", ["momentum"], dict(rate=0.05, momentum=0.9)),
    ("newer_sgd_nesterov", newer.SGD, "SGD", ["momentum"], dict(rate=0.05, momentum=0.9, nesterov=True)),
    ("newer_adagrad", newer.Adagrad, "Adagrad", ["accumulator"], dict(rate=0.05)),
    ("newer_adagrad_settings", newer.Adagrad, "Adagrad", ["accumulator"],
     dict(rate=0.3, initial_accumulator_value=0.5, epsilon=0.01)),
    ("newer_adam", newer.Adam, "Adam", ["m", "v"], dict(rate=0.01)),
    ("newer_adam_settings", newer.Adam, "Adam", ["m", "v"], dict(rate=0.05, beta_1=0.8, beta_2=0.95, epsilon=1e-3)),
    ("newer_adam_amsgrad", newer.Adam, "Adam", ["m", "v", "vhat"], dict(rate=0.01, beta_2=0.9, amsgrad=True)),
    ("newer_ftrl", newer.Ftrl, "Ftrl", ["accumulator", "linear"], dict(rate=0.2)),
    ("newer_ftrl_settings", newer.Ftrl, "Ftrl", ["accumulator", "linear"],
     dict(rate=0.2, l1_regularization_strength=0.01, l2_regularization_strength=0.1, l2_shrinkage_regularization_strength=0.1,
          beta=0.5, learning_rate_power=-0.7)),
    ("newer_rmsprop", newer.RMSprop, "RMSprop", ["rms"], dict(rate=0.01, epsilon=1e-3)),
    ("newer_rmsprop_centered", newer.RMSprop, "RMSprop", ["rms", "mg"], dict(rate=0.01, rho=0.8, centered=True)),
    ("newer_rmsprop_momentum", newer.RMSprop, "RMSprop", ["rms", "momentum"], dict(rate=0.01, momentum=0.8, epsilon=1e-3)),
    ("newer_rmsprop_momentum_centered", newer.RMSprop, "RMSprop", ["rms", "momentum", "mg"],
     dict(rate=0.01, momentum=0.8, centered=True)),
    ("newer_adadelta", newer.Adadelta, "Adadelta", ["accum_grad", "accum_var"], dict(rate=0.5, rho=0.8, epsilon=1e-2)),
    ("newer_adamax", newer.Adamax, "Adamax", ["m", "v"], dict(rate=0.01)),
    ("newer_adamax_settings", newer.Adamax, "Adamax", ["m", "v"], dict(rate=0.1, beta_1=0.7, beta_2=0.9, epsilon=1e-2)),
    ("newer_nadam", newer.Nadam, "Nadam", ["m", "v"], dict(rate=0.01)),
    ("newer_nadam_settings", newer.Nadam, "Nadam", ["m", "v"], dict(rate=0.02, beta_1=0.8, beta_2=0.95, epsilon=1e-3)),
    ("newer_lion", newer.Lion, "Lion", ["m"], dict(rate=0.01)),
    ("newer_lion_settings", newer.Lion, "Lion", ["m"], dict(rate=0.02, beta_1=0.7, beta_2=0.8)),
    ("newer_sgd_decay", newer.SGD, "SGD", ["momentum"], dict(rate=0.05, momentum=0.9, weight_decay=0.1)),
    ("newer_adagrad_decay", newer.Adagrad, "Adagrad", ["accumulator"], dict(rate=0.05, weight_decay=0.1)),
    ("newer_sgd_ema", newer.SGD, "SGD", ["average"], dict(rate=0.05, use_ema=True, ema_momentum=0.8)),
    ("newer_adam_ema", newer.Adam, "Adam", ["m", "v", "average"],
     dict(rate=0.05, use_ema=True, ema_momentum=0.6, ema_overwrite_frequency=3, weight_decay=0.1)),
    ("newer_nadam_ema", newer.Nadam, "Nadam", ["m", "v", "average"],
     dict(rate=0.05, use_ema=True, ema_momentum=0.9, ema_overwrite_frequency=1)),
]

schedules = tf.keras.optimizers.schedules
SCHEDULES = [
    ("exponential", schedules.ExponentialDecay, dict(initial_learning_rate=0.1, decay_steps=10, decay_rate=0.7)),
    ("exponential", schedules.ExponentialDecay,
     dict(initial_learning_rate=0.1, decay_steps=10, decay_rate=0.7, staircase=True)),
    ("inverse_time", schedules.InverseTimeDecay, dict(initial_learning_rate=0.1, decay_steps=10, decay_rate=0.7)),
    ("inverse_time", schedules.InverseTimeDecay,
     dict(initial_learning_rate=0.1, decay_steps=10, decay_rate=0.7, staircase=True)),
    ("polynomial", schedules.PolynomialDecay,
     dict(initial_learning_rate=0.1, decay_steps=20, end_learning_rate=0.01, power=1.0)),
    ("polynomial", schedules.PolynomialDecay,
     dict(initial_learning_rate=0.1, decay_steps=20, end_learning_rate=0.01, power=0.5)),
    ("polynomial", schedules.PolynomialDecay,
     dict(initial_learning_rate=0.1, decay_steps=20, end_learning_rate=0.01, power=2.0, cycle=True)),
    ("cosine", schedules.CosineDecay, dict(initial_learning_rate=0.1, decay_steps=30)),
    ("cosine", schedules.CosineDecay, dict(initial_learning_rate=0.1, decay_steps=30, alpha=0.2)),
    ("cosine", schedules.CosineDecay,
     dict(initial_learning_rate=0.02, decay_steps=30, alpha=0.2, warmup_target=0.1, warmup_steps=8)),
    ("cosine_restarts", schedules.CosineDecayRestarts, dict(initial_learning_rate=0.1, first_decay_steps=10)),
    ("cosine_restarts", schedules.CosineDecayRestarts,
     dict(initial_learning_rate=0.1, first_decay_steps=10, t_mul=1.0, m_mul=0.8, alpha=0.1)),
    ("cosine_restarts", schedules.CosineDecayRestarts,
     dict(initial_learning_rate=0.1, first_decay_steps=7, t_mul=1.5, m_mul=0.8, alpha=0.1)),
    ("piecewise", schedules.PiecewiseConstantDecay, dict(boundaries=[5, 20], values=[0.1, 0.01, 0.003])),
]
SCHEDULE_STEPS = [0, 1, 4, 5, 6, 7, 8, 9, 10, 11, 19, 20, 21, 29, 30, 31, 40, 55, 99, 100, 1000]


def gradients(rng):
    dense = [rng.normal(size=(ROWS, COLUMNS)).astype(np.float32) for _ in range(STEPS)]
    dense[4][:] = 0
    dense[9][:, 2] *= 1e-3
    sparse = []
    for step in range(STEPS):
        rows = rng.integers(0, ROWS - 1, size=4)  # the last row has no gradient at all,
        if step == 10:
            rows[:2] = ROWS - 1  # but for one step
        if step == 6:
            rows = rows[:0]
        sparse.append((rows, rng.normal(size=(len(rows), COLUMNS)).astype(np.float32)))
    return dense, sparse


def write_case(fixture, kind, grads, w0, name, make, rule, slots, settings):
    options = {("learning_rate" if key == "rate" else key): value for key, value in settings.items()}
    optimizer = make(**options)
    after = []
    w = tf.Variable(w0)
    for step, gradient in enumerate(grads, 1):
        if isinstance(gradient, tuple):
            rows, values = gradient
            gradient = tf.IndexedSlices(tf.constant(values), tf.constant(rows, tf.int64), tf.constant(w0.shape))
        optimizer.apply_gradients([(gradient, w)])
        if step in RECORDED:
            now = {slot: slot_of(optimizer, w, slot).numpy() for slot in slots}
            after.append({"step": step, "w": w.numpy(), "slots": now})
    fixture.case("rule", name=f"{name}_{kind}", rule=rule, newer=isinstance(optimizer, newer.Optimizer), gradients=kind,
                 settings=settings, after=after)


def in_float64(value):
    """TensorFlow computes a rate in the type of the arguments, and would read a Python float as float32."""
    if isinstance(value, list):
        return [in_float64(item) for item in value]
    return tf.constant(value, tf.float64) if isinstance(value, float) else value


def write_schedule(fixture, name, make, settings):
    schedule = make(**{key: in_float64(value) for key, value in settings.items()})
    rates = [[step, float(schedule(tf.constant(step, tf.int64)).numpy())] for step in SCHEDULE_STEPS]
    fixture.case("schedule", name=name, settings=settings, rates=rates)


def main():
    rng = np.random.default_rng(SEED)
    w0 = rng.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    dense, sparse = gradients(rng)
    fixture = Fixture(SEED)
    fixture.case("table", w=w0)
    for gradient in dense:
        fixture.case("dense", gradient=gradient)
    for rows, values in sparse:
        fixture.case("sparse", rows=rows, values=values)
    for case in CASES:
        write_case(fixture, "dense", dense, w0, *case)
        write_case(fixture, "sparse", sparse, w0, *case)
    for schedule in SCHEDULES:
        write_schedule(fixture, *schedule)
    fixture.write("update_rules", tf, np)


if __name__ == "__main__":
    main()
