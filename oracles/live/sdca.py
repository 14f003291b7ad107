"""TensorFlow's LinearSDCA and ours: one folder in turns, and our export in stock TensorFlow.

    sdca.py SDCA_EXCHANGE FOLDER

Classifiers and regressors with weights, with the table of examples in one part and in three, with L1 regularization and without. Rows
come one by one, because TensorFlow shuffles a batch with a seed of its own. TensorFlow 40 steps, ours 40, TensorFlow 40 end within 1e-5 of
the largest weight of 120 steps of TensorFlow. TensorFlow then loads an export of ours and answers as its own estimator does in that folder.
"""

import pathlib
import subprocess
import sys

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
N, SEED, TOLERANCE = 40, 3, 1e-5
column = tf.feature_column

rng = np.random.default_rng(SEED)
features = {
    # Ids of many lengths: short and long ones are hashed in different ways.
    "id": np.array([f"row {i} " + "x" * (7 * i) for i in range(N)]),
    "a": rng.normal(size=N).astype(np.float32),
    "b": rng.normal(size=N).astype(np.float32),
    "city": rng.choice(["Bern", "Lima", "Oslo", "Kyoto"], N),
    "weight": rng.uniform(0.5, 2, N).astype(np.float32),
}
score = features["a"] - 0.5 * features["b"] + (features["city"] == "Lima")
labels = {"classifier": (score > 0.2).astype(np.int64), "regressor": (score + 0.1 * rng.normal(size=N)).astype(np.float32)}
for kind, y in labels.items():
    with open(FOLDER / f"{kind}.csv", "w") as file:
        file.write(",".join([*features, "y"]) + "\n")
        rows = zip(*[[value if isinstance(value, str) else repr(value) for value in values.tolist()] for values in [*features.values(), y]])
        file.writelines(",".join(row) + "\n" for row in rows)


def estimator(settings, folder):
    kind, shards, l1 = settings.split(",")
    make = tf.estimator.LinearClassifier if kind == "classifier" else tf.estimator.LinearRegressor
    columns = [column.numeric_column("a"), column.numeric_column("b"), column.categorical_column_with_hash_bucket("city", 5)]
    sdca = tf.estimator.experimental.LinearSDCA("id", num_table_shards=int(shards), symmetric_l1_regularization=float(l1))
    config = tf.estimator.RunConfig(tf_random_seed=SEED)
    return make(columns, str(folder), optimizer=sdca, weight_column="weight", config=config)


def theirs(settings, folder, max_steps):
    data = lambda: tf.data.Dataset.from_tensor_slices((features, labels[settings.split(",")[0]])).repeat().batch(1)
    estimator(settings, folder).train(data, max_steps=max_steps)


def ours(settings, folder, max_steps):
    path = FOLDER / f"{settings.split(',')[0]}.csv"
    subprocess.run([PROGRAM, "train", settings, str(folder), str(path), str(max_steps)], check=True)


def weights(folder):
    names = ["a/weights", "b/weights", "city/weights", "bias_weights"]
    return np.concatenate([tf.train.load_variable(str(folder), f"linear/linear_model/{name}").ravel() for name in names])


worst = 0.0
for settings in ["classifier,1,0", "classifier,3,0.5", "regressor,1,0.5", "regressor,3,0"]:
    whole, turns = FOLDER / f"{settings}-whole", FOLDER / f"{settings}-turns"
    # As many steps as rows, so every turn begins with the first row.
    theirs(settings, whole, 3 * N)
    for step, train in [(N, theirs), (2 * N, ours), (3 * N, theirs)]:
        train(settings, turns, step)
    apart = np.abs(weights(turns) - weights(whole)).max() / np.abs(weights(whole)).max()
    assert apart < TOLERANCE, f"{settings}: in turns the weights are {apart} apart"
    worst = max(worst, apart)

    path = FOLDER / f"{settings.split(',')[0]}.csv"
    exported = subprocess.run([PROGRAM, "export", settings, str(turns), str(path), str(FOLDER / f"{settings}-export")], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip()
    loaded = tf.saved_model.load(exported)
    asked = {name: tf.constant(features[name]) for name in ["a", "b", "city"]}
    predicted = list(estimator(settings, turns).predict(lambda: tf.data.Dataset.from_tensor_slices(features).batch(N)))
    key = "logits" if settings.startswith("classifier") else "predictions"
    expected = np.array([row[key] for row in predicted])
    apart = np.abs(loaded.signatures["predict"](**asked)[key].numpy() - expected).max() / np.abs(expected).max()
    assert apart < TOLERANCE, f"{settings}: {key} are {apart} apart"
    worst = max(worst, apart)
print(f"LinearSDCA in turns and exported, 4 settings: at most {worst:.1e} apart")
