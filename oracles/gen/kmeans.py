"""Writes oracles/fixtures/kmeans.jsonl and the checkpoint oracles/fixtures/kmeans_tf: TensorFlow's KMeans on small inputs.

TensorFlow 2.15.1, Python 3.11, seed 7.  Run: python oracles/gen/kmeans.py
Cases:

    train    `points`, read over and over in batches of `batch` rows, from the centers `initial`. `steps` holds the loss of each step and
             all variables after it. Then the `score` of all points, and `cluster_index`, `all_distances` and `transform` of each.
             `features` are the names and widths of the features that the columns of the points are spread over, `columns` the features
             that numeric columns read
    folder   the checkpoint kmeans_tf of step 2, `names` and dtypes of its variables, and the centers two steps later
    error    what TensorFlow says of settings it refuses: the class of the exception
"""

import os
import pathlib
import shutil
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

from fixture import FOLDER, Fixture

SEED = 7
tf.get_logger().setLevel("ERROR")
random = np.random.default_rng(SEED)
fixture = Fixture(seed=SEED)
KMeans = tf.compat.v1.estimator.experimental.KMeans
# One thread: the order of its sums is then always the same.
ONE = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)


class Losses(tf.compat.v1.train.SessionRunHook):
    """The loss of each step."""

    def __init__(self):
        self.all = []

    def begin(self):
        graph = tf.compat.v1.get_default_graph()
        self.loss = next(op for op in graph.get_operations() if op.type == "ScalarSummary" and op.name.startswith("loss/raw")).inputs[1]

    def before_run(self, context):
        return tf.compat.v1.train.SessionRunArgs(self.loss)

    def after_run(self, context, values):
        self.all.append(np.float32(values.results))


def split(points, features):
    """The columns of the points as features of these names and widths."""
    parts = np.split(points, np.cumsum([width for _, width in features])[:-1], axis=1)
    return {name: part for (name, _), part in zip(features, parts)}


def variables(prefix):
    reader = tf.train.load_checkpoint(prefix)
    return {name: reader.get_tensor(name) for name in sorted(reader.get_variable_to_shape_map())}


def train(what, points, initial, batch, n_steps, features=None, columns=None, **settings):
    points, initial = np.asarray(points, np.float32), np.asarray(initial, np.float32)
    given = split(points, features) if features else points
    folder = tempfile.mkdtemp()
    config = tf.estimator.RunConfig(tf_random_seed=SEED, session_config=ONE, save_checkpoints_steps=1, keep_checkpoint_max=None)
    if columns:
        settings["feature_columns"] = [tf.feature_column.numeric_column(name, (given[name].shape[1],)) for name in columns]
    kmeans = KMeans(len(initial), folder, initial_clusters=initial, config=config, **settings)
    losses = Losses()
    kmeans.train(lambda: tf.data.Dataset.from_tensor_slices(given).repeat().batch(batch), steps=n_steps, hooks=[losses])
    every = lambda: tf.data.Dataset.from_tensor_slices(given).batch(len(points))
    steps = []
    for step in range(1, n_steps + 1):
        after = variables(os.path.join(folder, f"model.ckpt-{step}"))
        steps.append({"loss": losses.all[step - 1], "variables": {name: np.asarray(value) for name, value in after.items()}})
    settings.pop("feature_columns", None)
    evaluated = kmeans.evaluate(every)
    predicted = list(kmeans.predict(every))
    fixture.case(
        "train", what=what, points=points, initial=initial, batch=batch, features=features or [], columns=columns or [],
        distance=settings.get("distance_metric", "squared_euclidean"), mini_batch=settings.get("use_mini_batch", True),
        steps_per_iteration=settings.get("mini_batch_steps_per_iteration", 1), steps=steps, score=kmeans.score(every),
        evaluated={key: float(value) for key, value in evaluated.items()},
        cluster_index=np.array([row["cluster_index"] for row in predicted]),
        all_distances=np.array([row["all_distances"] for row in predicted]),
        transform=np.array(list(kmeans.transform(every))), centers=kmeans.cluster_centers())
    shutil.rmtree(folder)


def blobs(n, width, k, spread=0.5):
    """Points around k places, and one point of each as the first centers."""
    places = random.normal(size=(k, width)) * 4
    points = places[np.arange(n) % k] + random.normal(size=(n, width)) * spread
    return points.astype(np.float32), points[:k].astype(np.float32)


square = [[0, 0], [0, 1], [10, 10], [10, 11]]
train("case 118, full batch", square, [[0, 0], [10, 10]], 4, 2, use_mini_batch=False)
train("case 118, mini-batches", square, [[0, 0], [10, 10]], 4, 2)
for distance in ["squared_euclidean", "cosine"]:
    for width, k in [(3, 4), (8, 5), (1, 2)]:
        points, initial = blobs(23, width, k)
        train("full batch", points, initial, 23, 3, distance_metric=distance, use_mini_batch=False)
        train("mini-batches", points, initial, 6, 6, distance_metric=distance)
        train("slow mini-batches", points, initial, 5, 8, distance_metric=distance, mini_batch_steps_per_iteration=3)
points, initial = blobs(20, 4, 3)
initial[1] = 100
train("a cluster without rows, full batch", points, initial, 20, 2, use_mini_batch=False)
train("a cluster without rows, mini-batches", points, initial, 8, 3)
train("a cluster without rows, slow mini-batches", points, initial, 8, 5, mini_batch_steps_per_iteration=2)
points, initial = blobs(12, 5, 3)
# Features are read in the order of their names.
train("named features", points, np.roll(initial, 3, 1), 12, 2, features=[["b", 2], ["a", 3]])
train("columns", points, initial[:, :2], 12, 2, features=[["b", 2], ["a", 3]], columns=["b"])

# A folder that goes on here.
points, initial = blobs(16, 3, 3)
folder = tempfile.mkdtemp()
kmeans = KMeans(3, folder, initial_clusters=initial, config=tf.estimator.RunConfig(tf_random_seed=SEED, session_config=ONE))
rows = lambda: tf.data.Dataset.from_tensor_slices(points).repeat().batch(5)
kmeans.train(rows, steps=2)
for path in pathlib.Path(folder).glob("model.ckpt-2.*"):
    if path.suffix != ".meta":
        shutil.copy(path, FOLDER / path.name.replace("model.ckpt-2", "kmeans_tf"))
before = variables(os.path.join(folder, "model.ckpt-2"))
kmeans.train(rows, steps=2)
fixture.case("folder", points=points, batch=5, names={name: str(np.asarray(value).dtype) for name, value in before.items()},
             before=before["clusters"], after=kmeans.cluster_centers())
shutil.rmtree(folder)

for what, settings in {"initial_clusters": {"initial_clusters": "nearest"}, "distance_metric": {"distance_metric": "manhattan"}}.items():
    try:
        KMeans(2, **settings)
        raise SystemExit(f"{what} was accepted")
    except ValueError as error:
        fixture.case("error", what=what, kind=type(error).__name__)
fixture.write("kmeans", tf)
