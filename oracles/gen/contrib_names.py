"""Writes oracles/fixtures/contrib_names.jsonl: names of TensorFlow 1.15 that version 2 has no more, in the format of tf_names.

TensorFlow 1.15.5, Python 3.7, as for experiment.py. Listed are Experiment, learn_runner, export strategies, optimize_loss and its
clipping, HParams, and what makes datasets of features.
"""

import inspect
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import warnings

warnings.simplefilter("ignore")
import tensorflow as tf
from tensorflow.contrib.layers.python.layers import optimizers
from tensorflow.contrib.learn.python.learn import learn_runner
from tensorflow.python.util import tf_decorator

from fixture import Fixture

fixture = Fixture()


def put(name, value):
    taken = []
    if callable(value):
        function = value.__init__ if inspect.isclass(value) else value
        try:
            parameters = inspect.signature(tf_decorator.unwrap(function)[1]).parameters.values()
            taken = [p.name for p in parameters if p.name not in ("self", "cls") and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        except (TypeError, ValueError):
            pass
    fixture.case("name", name=name, arguments=taken, defaults={})


def members(name, owner, leave_out=()):
    put(name, owner)
    for member in sorted(n for n in dir(owner) if not n.startswith("_") and n not in leave_out):
        put(f"{name}.{member}", getattr(owner, member))


members("contrib.learn.Experiment", tf.contrib.learn.Experiment)
members("contrib.learn.ExportStrategy", tf.contrib.learn.ExportStrategy, {"count", "index"})
put("contrib.learn.make_export_strategy", tf.contrib.learn.make_export_strategy)
put("contrib.learn.learn_runner.run", learn_runner.run)
put("contrib.learn.learn_runner.tune", learn_runner.tune)
put("contrib.layers.optimize_loss", tf.contrib.layers.optimize_loss)
put("contrib.layers.adaptive_clipping_fn", optimizers.adaptive_clipping_fn)
members("contrib.training.HParams", tf.contrib.training.HParams)
put("data.experimental.make_batched_features_dataset", tf.data.experimental.make_batched_features_dataset)
put("data.experimental.make_csv_dataset", tf.data.experimental.make_csv_dataset)
fixture.write("contrib_names", tf)
