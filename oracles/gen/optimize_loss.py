"""Writes oracles/fixtures/optimize_loss.jsonl: steps of contrib.layers.optimize_loss with its options.

TensorFlow 1.15.5, Python 3.7, as for experiment.py. The data are sines, no randomness but the noise's. Cases:

    steps       the `optimizer` by name, its `rate` and the options; then the feeds `x` [4,3] and `y` [4] of each step, and after each
                step the variables w [3] (from 0.5), b [] (from -0.25), table [4,2] (from 0.1), the global step, and the scalar
                summaries, which are those before the step's update. The model is y = x w + b + sum(table[ids]), ids = 0 2 2 1, its loss
                the mean of squares. `histograms` are the tags of histograms
    noise       of n numbers of noise with a `scale`: `mean`, `std` and the `largest` distance from 0
    refused     a mistake and its `error`
"""

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import warnings

warnings.simplefilter("ignore")
import numpy as np
import tensorflow as tf

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.FATAL)
from tensorflow.contrib.layers.python.layers import optimizers

from fixture import Fixture

fixture = Fixture(seed=7)
optimize_loss = tf.contrib.layers.optimize_loss
adaptive_clipping_fn = optimizers.adaptive_clipping_fn
N_STEPS = 5


def feeds(step):
    x = np.sin(np.arange(12, dtype=np.float32) * 1.7 + step).reshape(4, 3).astype(np.float32)
    # One batch with a far larger loss than the others, so that clipping has something to do.
    y = np.cos(np.arange(4, dtype=np.float32) * 0.9 + step).astype(np.float32) * (20.0 if step == 3 else 1.0)
    return x, y.astype(np.float32)


def model():
    x, y = tf.compat.v1.placeholder(tf.float32, [4, 3]), tf.compat.v1.placeholder(tf.float32, [4])
    w = tf.compat.v1.get_variable("w", [3], initializer=tf.constant_initializer(0.5))
    b = tf.compat.v1.get_variable("b", [], initializer=tf.constant_initializer(-0.25))
    table = tf.compat.v1.get_variable("table", [4, 2], initializer=tf.constant_initializer(0.1))
    rows = tf.gather(table, tf.constant([0, 2, 2, 1], tf.int64))
    out = tf.reduce_sum(x * w, 1) + b + tf.reduce_sum(rows, 1)
    return x, y, w, b, table, tf.reduce_mean(tf.square(out - y))


def steps(case, optimizer="SGD", rate=0.1, adaptive=None, decay=None, variables=None, **options):
    with tf.Graph().as_default():
        step = tf.compat.v1.train.create_global_step()
        x, y, w, b, table, loss = model()
        given = dict(options)
        if adaptive is not None:
            arguments = dict(adaptive)
            quick = arguments.pop("quick", False)
            given["clip_gradients"] = adaptive_clipping_fn(global_step=step if quick else None, **arguments)
        if decay is not None:
            given["learning_rate_decay_fn"] = lambda lr, s: tf.compat.v1.train.exponential_decay(lr, s, decay["steps"], decay["rate"], decay["staircase"])
        if variables is not None:
            given["variables"] = [{"w": w, "b": b, "table": table}[v] for v in variables]
        train = optimize_loss(loss, step, rate, optimizer, **given)
        merged = tf.compat.v1.summary.merge_all()
        fixture.case("steps", name=case, optimizer=optimizer, rate=rate, adaptive=adaptive, decay=decay, variables=variables,
                     options={k: v for k, v in options.items()})
        found, histograms = [], set()
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            for i in range(N_STEPS):
                fx, fy = feeds(i)
                scalars = {}
                fetched = session.run([train] + ([merged] if merged is not None else []), {x: fx, y: fy})
                if merged is not None:
                    for value in tf.compat.v1.Summary.FromString(fetched[1]).value:
                        if value.HasField("histo"):
                            histograms.add(value.tag)
                        else:
                            scalars[value.tag] = float(value.simple_value)
                vw, vb, vt, vs = session.run([w, b, table, step])
                found.append({"x": fx, "y": fy, "w": vw, "b": vb, "table": vt, "global_step": int(vs), "scalars": scalars})
        fixture.put("steps", found)
        fixture.put("histograms", sorted(histograms))


for optimizer in ["Adagrad", "Adam", "Ftrl", "Momentum", "RMSProp", "SGD"]:
    steps(f"by name: {optimizer}", optimizer)
    steps(f"by name: {optimizer}, a decay", optimizer, decay={"steps": 2, "rate": 0.5, "staircase": False})
steps("clip 0.5", clip_gradients=0.5)
steps("clip 100", clip_gradients=100.0)
steps("clip with Adam", "Adam", clip_gradients=0.5)
steps("multipliers", gradient_multipliers={"w:0": 2.0, "b:0": 0.0})
steps("multipliers and clip", gradient_multipliers={"table:0": 10.0}, clip_gradients=1.0)
steps("staircase", decay={"steps": 2, "rate": 0.1, "staircase": True})
steps("all", "Adam", decay={"steps": 3, "rate": 0.7, "staircase": False}, gradient_multipliers={"w:0": 0.5}, clip_gradients=0.3)
steps("adaptive", adaptive={})
steps("adaptive, quick", adaptive={"quick": True})
steps("adaptive, narrow", adaptive={"std_factor": 0.1, "decay": 0.5, "quick": True, "report_summary": True})
steps("adaptive, static", adaptive={"static_max_norm": 0.5, "quick": True})
steps("adaptive, static and narrow", "Adam", adaptive={"std_factor": 0.5, "static_max_norm": 0.05, "decay": 0.8, "epsilon": 1e-3})
steps("summaries: all", clip_gradients=0.5, decay={"steps": 2, "rate": 0.5, "staircase": False},
      summaries=["learning_rate", "loss", "gradients", "gradient_norm", "global_gradient_norm"])
steps("summaries: none", summaries=[])
steps("summaries: norms", summaries=["gradient_norm"])
steps("a name", name="Mine", summaries=["loss"])
steps("some variables", "Adam", variables=["w"])
steps("without counting", "SGD", increment_global_step=False)

for scale in [0.5, 3.0]:
    with tf.Graph().as_default():
        tf.compat.v1.set_random_seed(fixture.seed)
        step = tf.compat.v1.train.create_global_step()
        w = tf.compat.v1.get_variable("w", [200, 100], initializer=tf.zeros_initializer())
        train = optimize_loss(tf.reduce_sum(w) * 0.0, step, 1.0, "SGD", gradient_noise_scale=scale)
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            session.run(train)
            noise = session.run(w).astype(np.float64)
    fixture.case("noise", scale=scale, n=noise.size, mean=float(noise.mean()), std=float(noise.std()), largest=float(np.abs(noise).max()))


def refused(name, **changed):
    with tf.Graph().as_default():
        step = tf.compat.v1.train.create_global_step()
        *_, loss = model()
        arguments = {"global_step": step, "learning_rate": 0.1, "optimizer": "SGD", **changed}
        try:
            optimize_loss(loss, **arguments)
            error = None
        except Exception as e:
            error = str(e)
    fixture.case("refused", name=name, error=error)


refused("optimizer", optimizer="Sgd")
refused("rate", learning_rate=-0.1)
refused("summary", summaries=["losses"])
with tf.Graph().as_default():
    *_, loss = model()
    try:
        optimize_loss(loss, None, 0.1, "SGD", learning_rate_decay_fn=lambda lr, s: lr)
        error = None
    except Exception as e:
        error = str(e)
    fixture.case("refused", name="decay without step", error=error)
fixture.write("optimize_loss", tf)
