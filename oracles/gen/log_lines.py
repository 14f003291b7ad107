"""Writes oracles/fixtures/log_lines.jsonl: the lines that TensorFlow 2.15 logs while an Estimator works, with `N` for numbers.

    python oracles/gen/log_lines.py

Cases, each in a model folder of its own:

    premade     a LinearClassifier: 250 steps of training, 20 batches of evaluation, one prediction
    model_fn    the same with a model function of one metric
    together    train_and_evaluate: 250 steps, a checkpoint each 100 steps, an evaluation of 3 batches for each
    again       `premade`, trained for 10 more steps
    done        `premade`, asked to train up to a step that it has passed

`lines` has the forms in order: folders are DIR, times TIME, numbers N. Repeated lines stay.
"""

import logging
import os
import re
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
import tensorflow as tf

from fixture import Fixture

fixture = Fixture()
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
lines = []


class Collect(logging.Handler):
    def emit(self, record):
        if record.levelno == logging.INFO:
            lines.append(record.getMessage())


logger = tf.get_logger()
logger.handlers = [Collect()]
logger.propagate = False
folder = tempfile.mkdtemp()


def form(line):
    line = line.replace(folder, "DIR")
    line = re.sub(r"\d{4}-\d\d-\d\d[T-]\d\d:\d\d:\d\d", "TIME", line)
    return re.sub(r"(?<![\w'])-?\d+(\.\d+)?(e[-+]?\d+)?", "N", line)


def rows(n, size=4):
    data = tf.data.Dataset.from_tensors(({"x": [[1.0], [2.0], [3.0], [4.0]][:size]}, [[0], [0], [1], [1]][:size]))
    return data.repeat(n)


def model_fn(features, labels, mode):
    layer = tf.compat.v1.layers.Dense(2)
    logits = layer(features["x"])
    classes = tf.argmax(logits, axis=1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"class": classes})
    labels = tf.squeeze(labels, 1)
    loss = tf.compat.v1.losses.sparse_softmax_cross_entropy(labels, logits)
    metrics = {"accuracy": tf.compat.v1.metrics.accuracy(labels, classes)}
    step = tf.compat.v1.train.get_global_step()
    train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def taken(name):
    fixture.case(name, lines=[form(line) for line in lines])
    lines.clear()


def classifier(name, **config):
    config = tf.estimator.RunConfig(tf_random_seed=1, **config)
    columns = [tf.feature_column.numeric_column("x")]
    return tf.estimator.LinearClassifier(columns, model_dir=f"{folder}/{name}", config=config)


def use(estimator):
    estimator.train(lambda: rows(None), steps=250)
    estimator.evaluate(lambda: rows(20))
    next(iter(estimator.predict(lambda: rows(1))))


estimator = classifier("premade")
use(estimator)
taken("premade")
use(tf.estimator.Estimator(model_fn, model_dir=f"{folder}/model_fn"))
taken("model_fn")
together = classifier("together", save_checkpoints_steps=100)
train = tf.estimator.TrainSpec(lambda: rows(None), max_steps=250)
tf.estimator.train_and_evaluate(together, train, tf.estimator.EvalSpec(lambda: rows(3), throttle_secs=0, start_delay_secs=0))
taken("together")
estimator.train(lambda: rows(None), steps=10)
taken("again")
estimator.train(lambda: rows(None), max_steps=100)
taken("done")
shutil.rmtree(folder)
fixture.write("log_lines", tf)
