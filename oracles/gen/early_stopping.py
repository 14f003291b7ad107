"""Writes oracles/fixtures/early_stopping.jsonl: when Keras' and the Estimator's early stopping end a training.

TensorFlow 2.15.1, Python 3.11, seed 11.  Run: python oracles/gen/early_stopping.py
Cases:

    keras    tf.keras.callbacks.EarlyStopping in a `mode` on `values`, one an epoch: the epoch at which it `stops`, and the `best` value
    event    files of events in the order of their names, each a list of [step, [[tag, value], ...]]; `cut` bytes are missing at the end of
             the last one. `stops` is what the predicate of tf.estimator.experimental.stop_if_<kind>_hook says: true, false, or
             "error" where the metric is missing
"""

import math
import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import Fixture

random = np.random.default_rng(11)
tf.get_logger().setLevel("ERROR")
fixture = Fixture(seed=11)


class Model:
    stop_training = False


def keras_case(values, mode, patience, min_delta, baseline, start):
    stopping = tf.keras.callbacks.EarlyStopping(
        "m", mode=mode, patience=patience, min_delta=min_delta, baseline=baseline, start_from_epoch=start)
    stopping.model = Model()
    stopping.on_train_begin()
    stops = None
    for epoch, value in enumerate(values):
        stopping.on_epoch_end(epoch, {"m": value})
        if stopping.model.stop_training:
            stops = epoch
            break
    fixture.case("keras", mode=mode, patience=patience, min_delta=min_delta, baseline=baseline, start=start, values=values,
                 stops=stops, best=float(stopping.best))


def keras_cases():
    for _ in range(150):
        n = int(random.integers(3, 14))
        trend = random.choice([-0.1, 0.0, 0.1])
        values = [round(float(v), 2) for v in random.normal(size=n) * 0.3 + trend * np.arange(n)]
        if random.random() < 0.2:
            # Not the first: it may not end a training there, by a rule of its own.
            values[int(random.integers(1, n))] = float(random.choice([math.nan, math.inf, -math.inf]))
        keras_case(
            values, str(random.choice(["min", "max"])), int(random.integers(1, 5)), float(random.choice([0.0, 0.0, 0.1, 0.25])),
            float(np.round(random.normal() * 0.5, 1)) if random.random() < 0.4 else None, int(random.choice([0, 0, 1, 3])))


def event_files(folder, files, cut):
    for i, events in enumerate(files):
        path = f"{folder}/events.out.tfevents.{1000 + i}.host"
        with tf.io.TFRecordWriter(path) as writer:
            writer.write(tf.compat.v1.Event(file_version="brain.Event:2").SerializeToString())
            for step, tags in events:
                event = tf.compat.v1.Event(step=step)
                for tag, value in tags.items():
                    event.summary.value.add(tag=tag, simple_value=value)
                writer.write(event.SerializeToString())
    if cut:
        os.truncate(path, os.path.getsize(path) - cut)


def event_case(files, kind, limit, min_steps, metric="loss", cut=0):
    experimental = tf.estimator.experimental
    make = {
        "higher": experimental.stop_if_higher_hook, "lower": experimental.stop_if_lower_hook,
        "no_increase": experimental.stop_if_no_increase_hook, "no_decrease": experimental.stop_if_no_decrease_hook}[kind]
    with tempfile.TemporaryDirectory() as folder:
        estimator = tf.estimator.Estimator(lambda features, labels, mode: None, folder)
        event_files(folder, files, cut)
        hook = make(estimator, metric, limit, eval_dir=folder, min_steps=min_steps)
        try:
            stops = hook._should_stop_fn()
        except KeyError:
            stops = "error"
    files = [[[step, list(tags.items())] for step, tags in file] for file in files]
    fixture.case("event", kind=kind, metric=metric, limit=limit, min_steps=min_steps, cut=cut, files=files, stops=stops)


def event_cases():
    # Cases 111 and 112.
    losses = [[[10 * (i + 1), {"loss": loss}] for i, loss in enumerate([1.0, 0.9, 0.95, 0.92, 0.91])]]
    for limit, min_steps in [(20, 0), (30, 0), (31, 0), (20, 30)]:
        event_case(losses, "no_decrease", limit, min_steps)
    for kind, limit in [
        ("no_increase", 40), ("no_increase", 41), ("higher", 0.99), ("higher", 1.0), ("lower", 0.9001), ("lower", 0.9)]:
        event_case(losses, kind, limit, 0)
    event_case(losses, "lower", 0.5, 0, metric="los")
    event_case(losses, "no_decrease", 31, 0, cut=5)
    event_case([], "lower", 0.5, 0)
    for _ in range(120):
        files = []
        for _ in range(int(random.integers(1, 4))):
            steps = np.cumsum(random.integers(1, 30, int(random.integers(1, 7))))
            value = lambda: round(float(random.normal()), 1)
            files.append([[int(step), {"loss": value(), "auc": value()}] for step in steps])
            if random.random() < 0.3:
                # Of steps that have it already: an event may hold some of the metrics.
                files[-1].append([int(random.choice(steps)), {"auc": value()}])
            if random.random() < 0.1:
                files[-1].append([int(steps[-1]) + 5, {"auc": value()}])
            if random.random() < 0.2:
                files[-1][-1][1]["auc"] = float(random.choice([math.inf, -math.inf, math.nan]))
        kind = str(random.choice(["higher", "lower", "no_increase", "no_decrease"]))
        limit = int(random.integers(5, 60)) if kind.startswith("no") else value()
        event_case(
            files, kind, limit, int(random.choice([0, 0, 10, 30])), str(random.choice(["loss", "auc"])), int(random.choice([0, 0, 0, 7])))


if __name__ == "__main__":
    keras_cases()
    event_cases()
    fixture.write("early_stopping", tf, np)
