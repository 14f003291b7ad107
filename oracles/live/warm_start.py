"""TensorFlow's WarmStartSettings and ours, from the same checkpoints: all variables are equal before the first step, bit for bit.

usage: warm_start.py EXAMPLE_PROGRAM EMPTY_FOLDER

With random vocabularies: a wide and deep model whose column of words has another name, other terms in another order, other out-of-vocabulary buckets, and
reads only part of the old vocabulary; the same with the slots of its optimizers; a network whose classes have changed (columns instead of rows); and a model that
takes everything, the number of steps included. At last TensorFlow begins from a checkpoint of ours.
"""

import os
import random
import subprocess
import sys

import numpy as np
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
PROGRAM, FOLDER = sys.argv[1:]
E, fc = tf.estimator, tf.feature_column
ALL_TERMS = [f"term{i}" for i in range(40)]
SLOTS = {"dnn": {"accumulator": 0.1}, "linear": {"accumulator": 0.1, "linear": 0.0}}
OPTIMIZERS = {"dnn": "Adagrad", "linear": "Ftrl"}


def vocabulary(name, terms):
    path = os.path.join(FOLDER, name)
    with open(path, "w") as file:
        file.write("".join(term + "\n" for term in terms))
    return path


def filled(value):
    """A constant initializer; TensorFlow's own cannot take the size that only the run tells."""
    return lambda shape, **_: tf.fill(shape, np.float32(value))


def words_model(key, path, size, n_oov, folder, warm_start=None):
    column = fc.categorical_column_with_vocabulary_file(key, path, size, num_oov_buckets=n_oov)
    config = E.RunConfig(tf_random_seed=1)
    return E.DNNLinearCombinedClassifier(folder, [column], "Ftrl", [fc.embedding_column(column, 3)], "Adagrad", [4], config=config, warm_start_from=warm_start)


def classes_model(n_classes, folder, warm_start=None):
    return E.DNNClassifier([4], [fc.numeric_column("x", 2)], folder, n_classes=n_classes, config=E.RunConfig(tf_random_seed=1), warm_start_from=warm_start)


def train(model, features, labels, steps):
    model.train(lambda: tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(8), steps=steps)


def words(n, key, seed):
    rng = np.random.default_rng(seed)
    return {key: rng.choice(ALL_TERMS, n)}, rng.integers(0, 2, n)


def ours(*arguments):
    subprocess.run([PROGRAM, *map(str, arguments)], check=True)


def values(folder, step=0):
    reader = tf.train.load_checkpoint(os.path.join(folder, f"model.ckpt-{step}"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if not name.startswith("_")}


def assert_equal(theirs, mine, what):
    assert theirs.keys() == mine.keys(), (what, sorted(theirs.keys() ^ mine.keys()))
    for name, value in theirs.items():
        assert value.dtype == mine[name].dtype and value.shape == mine[name].shape, (what, name)
        assert value.tobytes() == mine[name].tobytes(), (what, name, value, mine[name])


def tables(key):
    return {"dnn": f"dnn/input_from_feature_columns/input_layer/{key}_embedding/embedding_weights", "linear": f"linear/linear_model/{key}/weights"}


def slots(part, variable):
    return {f"training/{OPTIMIZERS[part]}/{variable}/{slot}": initial for slot, initial in SLOTS[part].items()}


def infos(key, info):
    """VocabInfo of the tables, and of their slots, which TensorFlow wants to be told of one by one."""
    variables = {name: info(0.25) for name in tables(key).values()}
    of_slots = {slot: info(initial) for part, name in tables(key).items() for slot, initial in slots(part, name).items()}
    return variables, of_slots


def names(key, old_key):
    both = {}
    for part, name in tables(key).items():
        old = tables(old_key)[part]
        both[name] = old
        both.update({slot: slot.replace(name, old) for slot in slots(part, name)})
    return both


def check_words(seed):
    rng = random.Random(seed)
    old_terms, new_terms = rng.sample(ALL_TERMS, rng.randint(8, 30)), rng.sample(ALL_TERMS, rng.randint(8, 30))
    n_old, n_oov = len(old_terms), rng.randint(0, 3)
    old_size = -1 if seed % 2 else n_old // 2
    new_size = rng.randint(5, len(new_terms))
    old_path, new_path = vocabulary(f"old{seed}.txt", old_terms), vocabulary(f"new{seed}.txt", new_terms)
    at = lambda part: os.path.join(FOLDER, f"words{seed}", part)
    train(words_model("word", old_path, n_old, 2, at("first")), *words(64, "word", seed), 20)
    info = lambda initial: E.VocabInfo(new_path, new_size, n_oov, old_path, old_size, filled(initial))
    variables, of_slots = infos("term", info)
    renamed = names("term", "word")
    for with_slots in (False, True):
        settings = E.WarmStartSettings(
            at("first"),
            # The optimizers' learning rates are no part of it.
            ["dnn", "linear", "training/Adagrad/dnn", "training/Ftrl/linear"] if with_slots else ".*",
            variables | of_slots if with_slots else variables,
            renamed if with_slots else {name: renamed[name] for name in variables},
        )
        theirs, mine = at(f"theirs{with_slots}"), at(f"ours{with_slots}")
        train(words_model("term", new_path, new_size, n_oov, theirs, settings), *words(8, "term", seed), 1)
        ours("words", "term", new_path, new_size, n_oov, old_path, old_size, "word", int(with_slots), at("first"), mine)
        found = values(theirs)
        assert_equal(found, values(mine), (seed, with_slots))
        kept = len(set(new_terms[:new_size]) & set(old_terms if old_size < 0 else old_terms[:old_size]))
        weights = found[tables("term")["linear"]]
        assert len(weights) == new_size + n_oov and (weights == 0.25).all(axis=1).sum() == len(weights) - kept
    print(f"  words {seed}: {n_old} old terms ({'all' if old_size < 0 else old_size} count), {new_size} new ones, {n_oov} buckets: {kept} rows kept, slots too")
    return at("first"), old_path, at(f"ours{False}"), new_path, new_size, n_oov


def check_all(first, old_path):
    theirs, mine = os.path.join(FOLDER, "all", "tf"), os.path.join(FOLDER, "all", "ours")
    train(words_model("word", old_path, None, 2, theirs, E.WarmStartSettings(first, [".*"])), *words(8, "word", 1), 1)
    ours("all", "word", old_path, 2, first, mine)
    found = values(theirs, 20)
    assert_equal(found, values(mine, 20), "all")
    assert_equal(values(first, 20), found, "all of the old ones")
    print(f"  everything: {len(found)} variables, the step among them")


def check_classes(seed):
    rng = random.Random(seed)
    classes = [f"class{i}" for i in range(9)]
    old, new = rng.sample(classes, rng.randint(3, 8)), rng.sample(classes, rng.randint(3, 8))
    old_path, new_path = vocabulary(f"old_classes{seed}.txt", old), vocabulary(f"new_classes{seed}.txt", new)
    at = lambda part: os.path.join(FOLDER, f"classes{seed}", part)
    x = np.random.default_rng(seed).normal(size=(16, 2)).astype(np.float32)
    train(classes_model(len(old), at("first")), {"x": x}, np.arange(16) % len(old), 20)
    info = E.VocabInfo(new_path, len(new), 0, old_path, -1, filled(-0.5), axis=1)
    settings = E.WarmStartSettings(at("first"), "dnn/(hidden|.*kernel)", {"dnn/logits/kernel": info})
    train(classes_model(len(new), at("theirs"), settings), {"x": x}, np.arange(16) % len(new), 1)
    ours("classes", new_path, old_path, at("first"), at("ours"))
    assert_equal(values(at("theirs")), values(at("ours")), ("classes", seed))
    print(f"  classes {seed}: {len(old)} old ones, {len(new)} new ones")


first, old_path, mine, new_path, new_size, n_oov = check_words(1)
check_words(2)
check_all(first, old_path)
check_classes(3)
check_classes(5)
again = os.path.join(FOLDER, "again")
train(words_model("term", new_path, new_size, n_oov, again, mine), *words(8, "term", 1), 1)
trainable = lambda found: {name: value for name, value in found.items() if name.startswith(("dnn", "linear"))}
assert_equal(trainable(values(again)), trainable(values(mine, 1)), "from ours")
print("  TensorFlow from a checkpoint of ours")
