"""Writes oracles/fixtures/iterator_initializer.jsonl: when an IteratorInitializerHook, as in old programs, initializes its iterator.

TensorFlow 1.15.5, Python 3.7, as for experiment.py; no randomness. The input is x = 0 1 2 ... 9 in batches of 3; the input of a training
repeats without end unless the case says `ends`. Cases:

    program     the `calls` that were made one after the other in one model folder, whether the hooks were `passed`, and the `events` of
                each call: input (the input function was called), initialize (the global step that the initializer read from its session)
                and batch (its x), each with its `mode`. A call with an `error` has the class and the first line of it. The calls are
                train (`steps`), evaluate, predict, train_and_evaluate (of an Estimator) and experiment (train_and_evaluate of a
                contrib Experiment). Checkpoints are saved every 2 steps
"""

import os
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import warnings

warnings.simplefilter("ignore")
import numpy as np
import tensorflow as tf

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.FATAL)

from fixture import Fixture

fixture = Fixture()
events = []
ROWS = np.arange(10, dtype=np.float32)


class IteratorInitializerHook(tf.estimator.SessionRunHook):
    def __init__(self):
        self.iterator_initializer_func = None

    def after_create_session(self, session, coord):
        self.iterator_initializer_func(session)


class Batches(tf.estimator.SessionRunHook):
    def __init__(self, mode):
        self.mode = mode

    def before_run(self, run_context):
        return tf.estimator.SessionRunArgs(run_context.session.graph.get_tensor_by_name("rows:0"))

    def after_run(self, run_context, run_values):
        events.append({"what": "batch", "mode": self.mode, "x": run_values.results})


def get_inputs(mode, ends):
    hook = IteratorInitializerHook()

    def inputs():
        events.append({"what": "input", "mode": mode})
        x = tf.compat.v1.placeholder(ROWS.dtype, ROWS.shape)
        y = tf.compat.v1.placeholder(ROWS.dtype, ROWS.shape)
        dataset = tf.data.Dataset.from_tensor_slices(({"x": x}, y))
        if not ends:
            dataset = dataset.repeat(None)
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset.batch(3))

        def initialize(session):
            step = int(session.run(tf.compat.v1.train.get_global_step(session.graph)))
            events.append({"what": "initialize", "mode": mode, "step": step})
            session.run(iterator.initializer, feed_dict={x: ROWS, y: 3 * ROWS})

        hook.iterator_initializer_func = initialize
        return iterator.get_next()

    return inputs, hook


def model_fn(features, labels, mode):
    w = tf.compat.v1.get_variable("w", [], initializer=tf.zeros_initializer())
    x = tf.identity(features["x"], name="rows")
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions={"y": x * w})
    loss = tf.reduce_mean(tf.square(x * w - labels))
    train_op = tf.compat.v1.train.GradientDescentOptimizer(0.001).minimize(loss, tf.compat.v1.train.get_or_create_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def program(name, calls, ends=False, passed=True):
    folder = tempfile.mkdtemp()
    config = tf.contrib.learn.RunConfig(model_dir=folder, save_checkpoints_secs=None, save_checkpoints_steps=2)
    recorded = []
    for call in calls:
        method, steps = call
        events.clear()
        estimator = tf.estimator.Estimator(model_fn, config=config)
        inputs = {mode: get_inputs(mode, ends if mode == "train" else True) for mode in ["train", "eval", "infer"]}
        hooks = {mode: ([hook] if passed else []) + [Batches(mode)] for mode, (_, hook) in inputs.items()}
        error = None
        try:
            if method == "train":
                estimator.train(inputs["train"][0], hooks=hooks["train"], steps=steps)
            elif method == "evaluate":
                estimator.evaluate(inputs["eval"][0], hooks=hooks["eval"])
            elif method == "predict":
                list(estimator.predict(inputs["infer"][0], hooks=hooks["infer"]))
            elif method == "train_and_evaluate":
                train = tf.estimator.TrainSpec(inputs["train"][0], max_steps=steps, hooks=hooks["train"])
                evaluate = tf.estimator.EvalSpec(inputs["eval"][0], steps=None, hooks=hooks["eval"], throttle_secs=0)
                tf.estimator.train_and_evaluate(estimator, train, evaluate)
            else:
                tf.contrib.learn.Experiment(
                    estimator, inputs["train"][0], inputs["eval"][0], train_steps=steps, min_eval_frequency=2, eval_steps=None,
                    train_monitors=hooks["train"], eval_hooks=hooks["eval"], check_interval_secs=0).train_and_evaluate()
        except tf.errors.OpError as e:
            error = f"{type(e).__name__}: {str(e).splitlines()[0]}"
        recorded.append({"method": method, "steps": steps, "error": error, "events": [dict(event) for event in events]})
    fixture.case("program", name=name, ends=ends, passed=passed, calls=recorded)
    shutil.rmtree(folder)


program("train", [("train", 2), ("train", 3)])
program("train to the end", [("train", None), ("train", None)], ends=True)
program("evaluate and predict", [("train", 2), ("evaluate", None), ("predict", None), ("evaluate", None)])
program("before any training", [("evaluate", None), ("predict", None)])
program("train_and_evaluate", [("train_and_evaluate", 6)])
program("experiment", [("experiment", 6)])
for method in ["train", "evaluate", "predict", "train_and_evaluate", "experiment"]:
    program(f"{method} without the hook", [(method, 2 if "train" in method or method == "experiment" else None)], passed=False)
fixture.write("iterator_initializer", tf)
