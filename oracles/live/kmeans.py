"""TensorFlow's KMeans and ours: one folder in turns, and our export in stock TensorFlow.

    kmeans.py KMEANS_EXCHANGE FOLDER

For both distances, in full batches and mini-batches: TensorFlow 10 steps, ours 10, TensorFlow 10 end within 1e-5 of the
largest center of 30 steps of TensorFlow. TensorFlow then loads an export of ours and answers as its own estimator does in that folder.
Iterations of several mini-batches are left out: TensorFlow may read centers before or after it replaces them, and once ended 6 % away
from itself.
"""

import os
import pathlib
import subprocess
import sys

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
N, BATCH, CLUSTERS, SEED = 640, 64, 5, 3
NAMES = ["c", "a", "b", "d"]
ONE = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
TOLERANCE = 1e-5


def made_rows():
    rng = np.random.default_rng(SEED)
    places = rng.normal(size=(CLUSTERS, len(NAMES))) * 3
    return (places[rng.integers(0, CLUSTERS, N)] + rng.normal(size=(N, len(NAMES)))).astype(np.float32)


rows = made_rows()
features = {name: rows[:, i:i + 1] for i, name in enumerate(NAMES)}
# The centers have the features in the order of their names.
ordered = np.concatenate([features[name] for name in sorted(NAMES)], axis=1)
path = FOLDER / "rows.csv"
with open(path, "w") as file:
    file.write(",".join(NAMES) + "\n")
    file.writelines(",".join(repr(float(value)) for value in row) + "\n" for row in rows)


def estimator(settings, folder):
    distance, batches = settings.split(",")
    more = {"use_mini_batch": False} if batches == "full" else {"mini_batch_steps_per_iteration": int(batches)}
    config = tf.estimator.RunConfig(tf_random_seed=SEED, session_config=ONE)
    return tf.compat.v1.estimator.experimental.KMeans(
        CLUSTERS, str(folder), initial_clusters=ordered[:CLUSTERS], distance_metric=distance, config=config, **more)


def theirs(settings, folder, max_steps):
    batch = N if settings.endswith("full") else BATCH
    data = lambda: tf.data.Dataset.from_tensor_slices(features).repeat().batch(batch)
    estimator(settings, folder).train(data, max_steps=max_steps)


def ours(settings, folder, max_steps):
    batch = N if settings.endswith("full") else BATCH
    subprocess.run([PROGRAM, "train", settings, str(folder), str(path), str(batch), str(max_steps)], check=True)


def centers(folder):
    return tf.train.load_variable(str(folder), "clusters")


worst = 0.0
for settings in [f"{distance},{batches}" for distance in ["squared_euclidean", "cosine"] for batches in ["full", "1"]]:
    whole, turns = FOLDER / f"{settings}-whole", FOLDER / f"{settings}-turns"
    # Ten batches are the whole input, so every turn begins with the first row.
    theirs(settings, whole, 30)
    for step, train in [(10, theirs), (20, ours), (30, theirs)]:
        train(settings, turns, step)
    apart = np.abs(centers(turns) - centers(whole)).max() / np.abs(centers(whole)).max()
    assert apart < TOLERANCE, f"{settings}: in turns the centers are {apart} apart"
    worst = max(worst, apart)

    exported = subprocess.run([PROGRAM, "export", settings, str(turns), str(path), str(FOLDER / f"{settings}-export")], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip()
    loaded = tf.saved_model.load(exported)
    assert sorted(loaded.signatures) == ["all_distances", "cluster_index", "serving_default"], list(loaded.signatures)
    asked = {name: tf.constant(value[:, 0]) for name, value in features.items()}
    predicted = list(estimator(settings, turns).predict(lambda: tf.data.Dataset.from_tensor_slices(features).batch(N)))
    index, distances = (np.array([row[key] for row in predicted]) for key in ["cluster_index", "all_distances"])
    for key in ["cluster_index", "serving_default"]:
        assert (loaded.signatures[key](**asked)["output"].numpy() == index).all(), f"{settings}: {key}"
    apart = np.abs(loaded.signatures["all_distances"](**asked)["output"].numpy() - distances).max() / np.abs(distances).max()
    assert apart < TOLERANCE, f"{settings}: distances are {apart} apart"
    worst = max(worst, apart)
print(f"k-means in turns and exported, 4 settings: at most {worst:.1e} apart")
