"""TensorFlow's RNNClassifier and ours: one folder in turns, metrics, and our export in stock TensorFlow.

    rnn.py RNN_EXCHANGE FOLDER

For one cell, a Keras layer, stacked cells with context, and labels of steps: TensorFlow 10 steps, ours 10, TensorFlow 10 end within
1e-5 of each variable's largest value of 30 steps of TensorFlow. Both report the same metrics of that folder. TensorFlow then loads an
export of ours and answers tf.Examples as its own estimator does.
"""

import pathlib
import subprocess
import sys

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
PROGRAM, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
N, BATCH, SEED = 320, 32, 5
WORDS = ["ant", "bee", "cat", "dog", "eel", "fox"]
ONE = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
TOLERANCE = 1e-5
fc = tf.feature_column
SEQUENCE = [fc.embedding_column(fc.sequence_categorical_column_with_vocabulary_list("word", WORDS), 4), fc.sequence_numeric_column("price")]
CONTEXT = [fc.numeric_column("age"), fc.embedding_column(fc.categorical_column_with_identity("group", 3), 2)]
MODELS = {
    "simple": {"units": [8]},
    "lstm_layer": {"units": 8, "cell_type": "lstm", "n_classes": 3, "optimizer": "Adam"},
    "gru_stacked": {"units": [8, 6], "cell_type": "gru", "context_feature_columns": CONTEXT},
    "steps": {"units": [8, 6], "cell_type": "lstm", "return_sequences": True},
    "steps_context": {"units": 8, "cell_type": "gru", "context_feature_columns": CONTEXT, "n_classes": 3, "return_sequences": True,
                      "sequence_mask": "there"},
}


def made_rows(n_classes):
    """Serialized tf.Examples: some sequences are empty."""
    rng, rows = np.random.default_rng(SEED), []
    for length in rng.integers(0, 9, N):
        words = rng.integers(0, len(WORDS), length)
        floats = lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values))
        ints = lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        feature = {
            "word": tf.train.Feature(bytes_list=tf.train.BytesList(value=[WORDS[word].encode() for word in words])),
            "price": floats(rng.normal(size=length)),
            "age": floats([rng.normal()]),
            "group": ints([rng.integers(0, 3)]),
            "class": ints([words.sum() % n_classes]),
            "tag": ints(np.cumsum(words) % n_classes),
        }
        rows.append(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
    path = FOLDER / f"rows{n_classes}.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(row)
    return str(path), rows


def input_fn(name, path, batch, repeat=False):
    steps = name.startswith("steps")
    spec = fc.make_parse_example_spec(SEQUENCE + CONTEXT)
    spec["tag" if steps else "class"] = tf.io.VarLenFeature(tf.int64) if steps else tf.io.FixedLenFeature([1], tf.int64)

    def parse(rows):
        features = tf.io.parse_example(rows, spec)
        return features, features.pop("tag" if steps else "class")

    def make():
        data = tf.data.TFRecordDataset(path)
        return (data.repeat() if repeat else data).batch(batch).map(parse)

    return make


def estimator(name, folder):
    # Keras draws the seeds of its initializers from a generator of its own.
    tf.keras.utils.set_random_seed(SEED)
    config = tf.estimator.RunConfig(tf_random_seed=SEED, session_config=ONE)
    return tf.estimator.experimental.RNNClassifier(SEQUENCE, model_dir=str(folder), config=config, **MODELS[name])


def theirs(name, folder, path, max_steps):
    estimator(name, folder).train(input_fn(name, path, BATCH, repeat=True), max_steps=max_steps)


def ours(name, folder, path, max_steps):
    subprocess.run([PROGRAM, "train", name, str(folder), path, str(BATCH), str(max_steps)], check=True)


def variables(folder):
    reader = tf.train.load_checkpoint(str(folder))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if not name.startswith("_")}


worst, n_metrics = 0.0, 0
for name in MODELS:
    n_classes = MODELS[name].get("n_classes", 2)
    path, rows = made_rows(n_classes)
    whole, turns = FOLDER / f"{name}-whole", FOLDER / f"{name}-turns"
    # Ten batches are the whole input, so every turn begins with the first row.
    theirs(name, whole, path, 30)
    for step, train in [(10, theirs), (20, ours), (30, theirs)]:
        train(name, turns, path, step)
    expected, found = variables(whole), variables(turns)
    assert expected.keys() == found.keys(), (name, sorted(expected.keys() ^ found.keys()))
    for key, value in expected.items():
        apart = float(np.abs(found[key] - value).max() / max(np.abs(value).max(), 1e-3))
        assert apart < TOLERANCE, f"{name}: in turns {key} is {apart} apart"
        worst = max(worst, apart)

    metrics = estimator(name, turns).evaluate(input_fn(name, path, 1000))
    lines = subprocess.run([PROGRAM, "evaluate", name, str(turns), path], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    mine = {key: float(value) for key, value in (line.split(" = ") for line in lines)}
    metrics.pop("global_step")
    assert mine.keys() == metrics.keys(), (name, mine.keys() ^ metrics.keys())
    for key, value in metrics.items():
        assert abs(mine[key] - value) < 1e-5 * max(1, abs(value)), (name, key, mine[key], value)
    n_metrics += len(metrics)

    exported = subprocess.run([PROGRAM, "export", name, str(turns), str(FOLDER / f"{name}-export")], check=True, stdout=subprocess.PIPE,
                              text=True).stdout.strip()
    loaded = tf.saved_model.load(exported)
    assert {"predict", "serving_default", "classification"} <= set(loaded.signatures), (name, list(loaded.signatures))
    answers = loaded.signatures["predict"](examples=tf.constant(rows))
    predicted = list(estimator(name, turns).predict(input_fn(name, path, N)))
    for key in predicted[0]:
        value = np.array([row[key] for row in predicted])
        if value.dtype == np.float32:
            apart = np.abs(answers[key].numpy() - value).max()
            assert apart < TOLERANCE, f"{name}: {key} is {apart} apart"
            worst = max(worst, float(apart))
        elif key != "class_ids" and key != "classes":
            assert (answers[key].numpy() == value).all(), f"{name}: {key}"
print(f"recurrent models in turns and exported, {len(MODELS)} models, {n_metrics} metrics: at most {worst:.1e} apart")
