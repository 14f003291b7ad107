"""Writes oracles/fixtures/experiment.jsonl: what schedules of contrib's Experiment call, and what learn_runner chooses.

TensorFlow 1.15.5, Python 3.7, no randomness. Make an environment outside of the repository:

    python3.7 -m venv DIR && DIR/bin/pip install tensorflow==1.15.5 'protobuf<3.21'
    DIR/bin/python oracles/gen/experiment.py

Cases:

    schedule    the settings of an Experiment (`save`: its configuration saves checkpoints; `saver`: a hook does), the `schedules` that were run one after the other in one model folder, and the `events`:
                train (the steps before and after, `steps`, `max_steps`), evaluate (its name, the step of the checkpoint, the number of
                batches, `steps`), export (the strategy, the step of the evaluation, the step of the checkpoint that was named) and
                sleep. Events between train and trained happened during the training
    role        a `tf_config`, and the default `schedule` or the `error`
    refused     the options of learn_runner.run, and the `error`
    delay       how long worker `task` waits: `secs`, or until global `step`
    log         as schedule, and the `lines` that Experiment and ValidationMonitor log, with their levels: folders are DIR, numbers N
"""

import json
import logging
import os
import re
import shutil
import tempfile
import types

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import warnings

warnings.simplefilter("ignore")
import tensorflow as tf

tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.FATAL)
from tensorflow.contrib.learn.python.learn import experiment as experiment_lib
from tensorflow.contrib.learn.python.learn import learn_runner
from tensorflow.contrib.learn.python.learn import monitors as monitors_lib

from fixture import Fixture

fixture = Fixture()
events = []
N_EVAL_BATCHES = 5


def model_fn(features, labels, mode):
    w = tf.compat.v1.get_variable("w", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(features["x"] * w - labels))
    step = tf.compat.v1.train.get_or_create_global_step()
    train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def rows(n):
    data = tf.data.Dataset.from_tensors(({"x": [1.0, 2.0]}, [3.0, 6.0]))
    return data.repeat(n)


def step_of(path):
    return None if path is None else int(os.path.basename(path).rsplit("-", 1)[1])


class Count(tf.estimator.SessionRunHook):
    """Counts the batches of an evaluation."""

    n = 0

    def after_create_session(self, session, coord):
        self.n = 0

    def after_run(self, run_context, run_values):
        self.n += 1


class Clock:
    """The time, without waiting."""

    def __init__(self):
        import time

        self.time = time.time
        self.slept = []

    def sleep(self, secs):
        self.slept.append(secs)


def recorded(folder, config):
    """An estimator that writes down what is called. Whole methods, because a subclass may not override them."""
    estimator = tf.estimator.Estimator(model_fn, model_dir=folder, config=config)
    train, evaluate = estimator.train, estimator.evaluate

    def newest():
        return step_of(tf.train.latest_checkpoint(folder)) or 0

    def recorded_train(input_fn, hooks=None, steps=None, max_steps=None, saving_listeners=None):
        events.append({"what": "train", "from": newest(), "steps": steps, "max_steps": max_steps})
        result = train(input_fn, hooks=hooks, steps=steps, max_steps=max_steps, saving_listeners=saving_listeners)
        events.append({"what": "trained", "to": newest()})
        return result

    def recorded_evaluate(input_fn, steps=None, hooks=None, checkpoint_path=None, name=None):
        count = Count()
        result = evaluate(input_fn, steps=steps, hooks=list(hooks or []) + [count], checkpoint_path=checkpoint_path, name=name)
        events.append({"what": "evaluate", "name": name, "at": int(result["global_step"]), "batches": count.n, "steps": steps,
                       "checkpoint": step_of(checkpoint_path)})
        return result

    estimator.train, estimator.evaluate = recorded_train, recorded_evaluate
    return estimator


def strategy(name):
    def export_fn(estimator, export_dir_base, checkpoint_path=None, eval_result=None):
        path = os.path.relpath(os.fsdecode(export_dir_base), estimator.model_dir)
        events.append({"what": "export", "name": name, "path": path, "at": int(eval_result["global_step"]), "checkpoint": step_of(checkpoint_path)})
        return path

    return tf.contrib.learn.ExportStrategy(name, export_fn)


def schedule(name, schedules, save=2, saver=None, exports=0, case="schedule", **settings):
    """Runs schedules: names, or names with arguments. `saver` is the period of a CheckpointSaverHook among the monitors."""
    folder = tempfile.mkdtemp()
    config = tf.contrib.learn.RunConfig(model_dir=folder, save_checkpoints_secs=None, save_checkpoints_steps=save, keep_checkpoint_max=None)
    clock = Clock()
    experiment_lib.time = clock
    events.clear()
    estimator = recorded(folder, config)
    monitors = {} if saver is None else {"train_monitors": [tf.estimator.CheckpointSaverHook(folder, save_steps=saver)]}
    experiment = tf.contrib.learn.Experiment(
        estimator, lambda: rows(None), lambda: rows(N_EVAL_BATCHES), **monitors,
        export_strategies=[strategy(f"strategy_{i}") for i in range(exports)], **settings)
    results = []
    for entry in schedules:
        method, arguments = (entry, {}) if isinstance(entry, str) else entry
        arguments = dict(arguments)
        if arguments.pop("rounds", None) is not None:
            left = [entry[1]["rounds"]]

            def goes_on(eval_results, checkpoint_path, left=left):
                left[0] -= 1
                return left[0] >= 0

            arguments["continuous_eval_predicate_fn"] = goes_on
        n = len(clock.slept)
        result = getattr(experiment, method)(**arguments)
        for secs in clock.slept[n:]:
            events.append({"what": "sleep", "about": round(secs)})
        results.append({"metrics_step": metrics_step(result)})
    listed = [[entry, {}] if isinstance(entry, str) else list(entry) for entry in schedules]
    given = {"train_steps": None, "eval_steps": 100, **settings}
    fixture.case(case, name=name, save=save, saver=saver, exports=exports, settings=given,
                 schedules=[{"method": m, "arguments": a} for m, a in listed], events=[dict(e) for e in events], results=results)
    shutil.rmtree(folder)


def metrics_step(result):
    """The step of the evaluation that a schedule returned; TensorFlow's results are a dict, a pair or nothing."""
    if isinstance(result, tuple):
        result = result[0]
    return int(result["global_step"]) if isinstance(result, dict) else None


NOW = {"check_interval_secs": 0}
schedule("train", ["train"], train_steps=6)
schedule("train again", ["train", "train"], train_steps=6)
schedule("train after a delay", [("train", {"delay_secs": 7})], train_steps=2)
schedule("evaluate", ["train", "evaluate", ("evaluate", {"delay_secs": 0, "name": "other"})], train_steps=3, eval_steps=3)
schedule("evaluate all", ["train", "evaluate"], train_steps=3, eval_steps=None, eval_delay_secs=4)
schedule("evaluate by default", ["train", ("evaluate", {"delay_secs": 0})], train_steps=1, exports=1)
for every in [0, 1, 2, 3, 4, 7]:
    for save in [2, 3]:
        schedule(f"train_and_evaluate every {every}, save {save}", ["train_and_evaluate"], save=save, train_steps=8, eval_steps=None,
                 min_eval_frequency=every, **NOW)
schedule("train_and_evaluate by default", ["train_and_evaluate"], train_steps=6)
schedule("train_and_evaluate seldom checks", ["train_and_evaluate"], train_steps=6, check_interval_secs=1000)
schedule("train_and_evaluate again", ["train_and_evaluate", "train_and_evaluate"], train_steps=4, exports=1, **NOW)
schedule("train_and_evaluate after train", [("train", {"delay_secs": 0}), "train_and_evaluate"], train_steps=6, exports=2, **NOW)
schedule("train_and_evaluate without checkpoints", ["train_and_evaluate"], save=None, train_steps=3, **NOW)
schedule("checkpoint_and_export", ["train_and_evaluate"], train_steps=5, exports=2, checkpoint_and_export=True)
schedule("checkpoint_and_export again", ["train_and_evaluate", "train_and_evaluate"], train_steps=4, exports=1, checkpoint_and_export=True)
schedule("checkpoint_and_export without checkpoints", ["train_and_evaluate"], save=None, train_steps=3, checkpoint_and_export=True, **NOW)
for saver in [2, 3]:
    for both in [False, True]:
        schedule(f"train_and_evaluate by a saver every {saver}{', checkpoint_and_export' if both else ''}", ["train_and_evaluate"], save=None, saver=saver,
                 train_steps=7, exports=1, min_eval_frequency=1, checkpoint_and_export=both, **NOW)
schedule("local_run", ["local_run"], train_steps=4, **NOW)
schedule("local_run every 2", ["local_run"], train_steps=6, local_eval_frequency=2, **NOW)
schedule("continuous_train_and_eval", ["continuous_train_and_eval"], train_steps=20, eval_steps=2)
schedule("continuous_train_and_eval past the end", ["continuous_train_and_eval"], train_steps=7, train_steps_per_iteration=3, exports=1)
schedule("continuous_train_and_eval with a predicate", [("continuous_train_and_eval", {"rounds": 2})], train_steps=100,
         train_steps_per_iteration=2)
schedule("continuous_train_and_eval for no round", [("continuous_train_and_eval", {"rounds": 0})], train_steps=100)
schedule("test", ["test"], train_steps=100, exports=1)
schedule("test twice", ["test", "test"], train_steps=100)
schedule("continuous_eval", ["train", "continuous_eval"], train_steps=4, exports=1)
schedule("continuous_eval with a name", ["train", ("continuous_eval", {"delay_secs": 0, "throttle_delay_secs": 0, "name": "mine"})], train_steps=4)
schedule("continuous_eval again", ["train", ("continuous_eval", {"evaluate_checkpoint_only_once": False, "rounds": 1})], train_steps=4)
schedule("continuous_eval without a checkpoint", [("continuous_eval", {"delay_secs": 0, "throttle_delay_secs": 3, "rounds": 2})], train_steps=4)
schedule("continuous_eval_on_train_data", ["train", "continuous_eval_on_train_data"], train_steps=4, eval_steps=3, exports=1)

# Log lines of Experiment and its monitor alone. Those of the Estimator are in log_lines.py.
lines = []


class Collect(logging.Handler):
    def emit(self, record):
        # Not at WARN, of which most are deprecations.
        is_theirs = os.path.basename(record.pathname) in ("experiment.py", "monitors.py")
        if is_theirs and record.levelno in (logging.DEBUG, logging.INFO):
            line = re.sub(r"/\S*(?=/model\.ckpt)|(?<= in )/\S*", "DIR", record.getMessage())
            lines.append(f"{record.levelname}: " + re.sub(r"(?<![\w'])-?\d+(\.\d+)?(e[-+]?\d+)?", "N", line))


def log(name, schedules, **settings):
    logger = logging.getLogger("tensorflow")
    handlers, logger.handlers = logger.handlers, [Collect()]
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.DEBUG)
    schedule(name, schedules, case="log", **settings)
    fixture.put("lines", list(lines))
    lines.clear()
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.FATAL)
    logger.handlers = handlers


log("train_and_evaluate", ["train_and_evaluate"], train_steps=6, eval_steps=None, min_eval_frequency=1, **NOW)
log("train_and_evaluate every 3", ["train_and_evaluate"], train_steps=6, eval_steps=None, min_eval_frequency=3, **NOW)
log("train_and_evaluate seldom checks", ["train_and_evaluate"], train_steps=6, check_interval_secs=1000)
log("checkpoint_and_export", ["train_and_evaluate"], train_steps=3, checkpoint_and_export=True)
log("delays", [("train", {"delay_secs": 7}), "evaluate", "continuous_eval"], train_steps=2)
log("continuous_train_and_eval", ["continuous_train_and_eval"], train_steps=4, train_steps_per_iteration=2)

# Delays of workers.
for task in [0, 1, 2, 5, 11, 12, 13, 40]:
    cluster = {"master": ["m:1"], "worker": [f"w:{i}" for i in range(41)], "ps": ["p:1"]}
    os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": task}, "environment": "local"})
    waits = []
    for by_step in [False, True]:
        clock = Clock()
        experiment_lib.time = clock
        folder = tempfile.mkdtemp()
        estimator = tf.estimator.Estimator(model_fn, config=tf.contrib.learn.RunConfig(model_dir=folder))
        seen = []
        estimator.train = lambda hooks, seen=seen, **_: seen.extend(hooks)
        tf.contrib.learn.Experiment(estimator, None, None, delay_workers_by_global_step=by_step).train()
        waits.append(seen[0]._wait_until_step if by_step else sum(clock.slept))
        shutil.rmtree(folder)
    fixture.case("delay", task=task, secs=float(waits[0]), step=int(waits[1]))


# Roles.
FULL = {"master": ["m:1"], "worker": ["w:1", "w:2"], "ps": ["p:1"]}
ROLES = [{}] + [{"cluster": FULL, "task": {"type": kind, "index": 0}, "environment": "cloud"} for kind in ["master", "worker", "ps"]]
ROLES += [{"cluster": FULL, "task": {"type": "worker", "index": 1}, "environment": "cloud"}]
ROLES += [{"cluster": {"worker": ["w:1"]}, "task": {"type": "worker", "index": 0}, "environment": "cloud"}]
ROLES += [{"cluster": {"master": ["m:1"]}, "task": {"type": "master", "index": 0}, "environment": "cloud"}]
ROLES += [{"cluster": {"chief": ["c:1"], "worker": ["w:1"]}, "task": {"type": kind, "index": 0}, "environment": "cloud"} for kind in ["chief", "worker"]]
ROLES += [{"cluster": {"chief": ["c:1"], "worker": ["w:1"], "evaluator": ["e:1"]}, "task": {"type": "evaluator", "index": 0}, "environment": "cloud"}]
for role in ROLES:
    os.environ["TF_CONFIG"] = json.dumps(role)
    outcome = {}
    try:
        outcome["schedule"] = learn_runner._get_default_schedule(tf.contrib.learn.RunConfig(model_dir="there"))
    except Exception as error:
        outcome["error"] = str(error)
    fixture.case("role", tf_config=json.dumps(role), **outcome)
del os.environ["TF_CONFIG"]


# Mistakes.
def experiment_fn(run_config=None, hparams=None, output_dir=None):
    config = run_config or tf.contrib.learn.RunConfig(model_dir=output_dir)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    return tf.contrib.learn.Experiment(estimator, lambda: rows(None), lambda: rows(1), train_steps=1)


def refused(name, fn=experiment_fn, **options):
    try:
        learn_runner.run(fn, **options)
        error = None
    except Exception as e:
        error = str(e)
    fixture.case("refused", name=name, error=error)


there = tempfile.mkdtemp()
config = tf.contrib.learn.RunConfig(model_dir=there)
params = tf.contrib.training.HParams(a=1)
refused("both", output_dir=there, run_config=config)
refused("neither")
refused("empty output_dir", output_dir="")
refused("hparams with output_dir", output_dir=there, hparams=params)
refused("no model_dir", run_config=tf.contrib.learn.RunConfig())
refused("unknown schedule", run_config=config, schedule="train_and_evaluated")
refused("property as schedule", run_config=config, schedule="train_steps")
refused("other model_dir", fn=lambda run_config, hparams: experiment_fn(run_config.replace(model_dir=there + "_other")), run_config=config)
refused("other checkpoints", fn=lambda run_config, hparams: experiment_fn(run_config.replace(save_checkpoints_steps=7, save_checkpoints_secs=None)),
        run_config=config, schedule="train")
for name, settings in [("train_steps_per_iteration", {"train_steps_per_iteration": 2.5}), ("export_strategies", {"export_strategies": [5]}),
                       ("eval_metrics", {"eval_metrics": {}})]:
    try:
        tf.contrib.learn.Experiment(tf.estimator.Estimator(model_fn, config=config), None, None, **settings)
        error = None
    except Exception as e:
        error = str(e)
    fixture.case("refused", name=name, error=error)
shutil.rmtree(there)
fixture.write("experiment", tf)
