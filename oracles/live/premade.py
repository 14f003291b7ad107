"""TensorFlow's premade estimators and ours on census rows: from one initial checkpoint, in turns, and evaluated by both.

usage: premade.py EXAMPLE_PROGRAM EMPTY_FOLDER

For each premade estimator: 50 steps of both from the checkpoint that TensorFlow has made (weights within 1e-4 of each variable's largest with raw
columns, within 1e-5 with standardised ones: TensorFlow differs from itself by 1e-5 on raw ones when it sums in another order); then TensorFlow 10
steps, ours 10, TensorFlow 10, against 30 of TensorFlow's; then the metrics of one checkpoint, evaluated by both; then evaluations
during training. The summaries of the first step are alike too. Several heads, every optimizer (in turns, on rows some of which have no ids) and
shared embeddings follow. At last the census itself, with the area under the curve of both.
"""

import glob
import os
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
PROGRAM, FOLDER = sys.argv[1:]
BATCH, N_BATCHES, SEED = 64, 10, 5
COLUMNS = "age workclass fnlwgt education educational-num marital-status occupation relationship race gender capital-gain capital-loss hours-per-week native-country income".split()
# As in benches/census.rs.
NUMBERS = {"age": (38.58, 13.64), "educational-num": (10.08, 2.57), "capital-gain": (1077.65, 7385.18), "capital-loss": (87.30, 402.95), "hours-per-week": (40.44, 12.35)}
STRINGS = {"workclass": 100, "education": 100, "marital-status": 100, "occupation": 1000, "relationship": 100, "race": 100, "gender": 100, "native-country": 1000}
INCOME = ["<=50K", ">50K"]
RACES = ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]
fc = tf.feature_column


def made_rows(n, seed):
    """Rows that look like the census."""
    rng = np.random.default_rng(seed)
    terms = {
        "workclass": ["Private", "State-gov", "Self-emp-inc", "?", "Federal-gov"],
        "education": ["Bachelors", "HS-grad", "11th", "Masters", "Doctorate", "Some-college"],
        "marital-status": ["Never-married", "Divorced", "Married-civ-spouse"],
        "occupation": ["Sales", "Tech-support", "Adm-clerical", "Exec-managerial", "?", "Craft-repair"],
        "relationship": ["Husband", "Wife", "Own-child", "Unmarried"],
        "race": RACES,
        "gender": ["Male", "Female"],
        "native-country": ["United-States", "Mexico", "Germany", "?", "India"],
    }
    rows = {name: rng.choice(values, n) for name, values in terms.items()}
    rows["age"] = rng.integers(17, 90, n)
    rows["fnlwgt"] = rng.integers(10_000, 500_000, n)
    rows["educational-num"] = rng.integers(1, 17, n)
    rows["capital-gain"] = np.where(rng.random(n) < 0.1, rng.integers(100, 99_999, n), 0)
    rows["capital-loss"] = np.where(rng.random(n) < 0.1, rng.integers(100, 4_000, n), 0)
    rows["hours-per-week"] = rng.integers(1, 99, n)
    score = rows["educational-num"] * 3 + rows["age"] + (rows["occupation"] == "Sales") * 20 + rng.normal(size=n) * 10
    rows["income"] = np.where(score > 90, ">50K", "<=50K")
    return pd.DataFrame(rows)[COLUMNS]


def columns(standardised):
    hashed = {name: fc.categorical_column_with_hash_bucket(name, n) for name, n in STRINGS.items()}
    age = fc.bucketized_column(fc.numeric_column("age"), [18, 25, 30, 35, 40, 45, 50, 55, 60, 65])
    crosses = [fc.crossed_column(["education", "occupation"], 10000), fc.crossed_column([age, "education", "occupation"], 100000)]
    scaled = lambda mean, stddev: (lambda x: (tf.cast(x, tf.float32) - mean) / stddev) if standardised else None
    numbers = [fc.numeric_column(name, normalizer_fn=scaled(*by)) for name, by in NUMBERS.items()]
    return list(hashed.values()) + [age] + crosses, numbers, [fc.embedding_column(c, 8) for c in hashed.values()]


def estimator(name, folder, save_steps=None):
    wide, numbers, embeddings = columns(not name.endswith("_raw"))
    # One thread and one seed: TensorFlow then gives the same numbers every time, and with raw columns how they are rounded counts.
    one = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    config = tf.estimator.RunConfig(tf_random_seed=SEED, session_config=one, keep_checkpoint_max=None)
    if save_steps:
        config = config.replace(save_checkpoints_steps=save_steps)
    E = tf.estimator
    return {
        "baseline": lambda: E.BaselineClassifier(folder, label_vocabulary=INCOME, config=config),
        "linear": lambda: E.LinearClassifier(wide, folder, label_vocabulary=INCOME, config=config),
        "linear_numbers": lambda: E.LinearRegressor(numbers, folder, weight_column="educational-num", optimizer=lambda: K.SGD(0.0001), config=config),
        "baseline_numbers": lambda: E.BaselineRegressor(folder, config=config),
        "dnn_numbers": lambda: E.DNNRegressor([20], numbers + embeddings, folder, config=config),
        "combined_numbers": lambda: E.DNNLinearCombinedRegressor(folder, wide, "Ftrl", numbers + embeddings, "Adagrad", [20], config=config),
        "dnn": lambda: E.DNNClassifier([100, 50], numbers + embeddings, folder, label_vocabulary=INCOME, config=config),
        "dnn_races": lambda: E.DNNClassifier([20], numbers + embeddings, folder, n_classes=5, label_vocabulary=RACES, batch_norm=True, optimizer="Adam", activation_fn=tf.nn.tanh, config=config),
        "combined": lambda: E.DNNLinearCombinedClassifier(folder, wide, "Ftrl", numbers + embeddings, "Adagrad", [100, 50], label_vocabulary=INCOME, config=config),
        "heads_2": lambda: E.DNNLinearCombinedEstimator(heads(2), folder, categories(), "Ftrl", numbers + gappy(), "Adagrad", [20], config=config),
        "heads_3": lambda: E.LinearEstimator(heads(3), categories() + numbers, folder, config=config),
        "shared": lambda: E.DNNEstimator(E.RegressionHead(), [10], shared(), folder, config=config),
        "shared_frozen": lambda: E.DNNEstimator(E.RegressionHead(), [10], shared(), folder, config=config),
        "shared_trained": lambda: E.DNNEstimator(TrainsAll(), [10], shared(), folder, config=config),
        **{f"optimizer_{key}": lambda key=key: E.DNNClassifier([10], numbers[:1] + gappy(), folder, label_vocabulary=INCOME, optimizer=OPTIMIZERS[key], config=config) for key in OPTIMIZERS},
    }[name.removesuffix("_raw")]()


K = tf.keras.optimizers.legacy
# Those that TensorFlow's premades know by name, then objects.
OPTIMIZERS = {
    "Adagrad": "Adagrad",
    "Adam": "Adam",
    "Ftrl": "Ftrl",
    "RMSProp": "RMSProp",
    "SGD": "SGD",
    "momentum": lambda: K.SGD(0.01, momentum=0.9),
    "nesterov": lambda: K.SGD(0.01, momentum=0.9, nesterov=True),
    "centered": lambda: K.RMSprop(0.002, momentum=0.5, centered=True),
    "amsgrad": lambda: K.Adam(0.002, amsgrad=True),
    "regularized": lambda: K.Ftrl(0.05, l1_regularization_strength=0.001, l2_regularization_strength=0.01),
    "Adadelta": lambda: K.Adadelta(0.5),
    "Adamax": lambda: K.Adamax(0.002),
    "Nadam": lambda: K.Nadam(0.002),
}
GAPPY = ["workclass", "occupation"]


def categories():
    """Columns that some rows have no ids of. No row names the first term: only rows without ids could touch its weights."""
    return [fc.categorical_column_with_vocabulary_list(name, TERMS) for name in GAPPY]


def gappy():
    return [fc.embedding_column(column, 4) for column in categories()]


def shared():
    # TensorFlow makes shared embeddings only where no code runs eagerly.
    with tf.Graph().as_default():
        return fc.shared_embeddings(categories(), 4, shared_embedding_collection_name="words")


class TrainsAll(tf.estimator.RegressionHead):
    """A head that trains every variable. Premades name the ones to be trained, and forget shared embeddings."""

    def create_estimator_spec(self, *arguments, **named):
        named["trainable_variables"] = tf.compat.v1.trainable_variables()
        return super().create_estimator_spec(*arguments, **named)


def heads(n):
    H = tf.estimator
    income, races = H.BinaryClassHead(name="income", label_vocabulary=INCOME), H.MultiClassHead(5, name="race", label_vocabulary=RACES)
    return H.MultiHead([income, H.RegressionHead(name=HOURS), races][:n], [1.0, 0.5, 2.0][:n])


HOURS = "hours-per-week"
TERMS = ["Nobody", "Private", "State-gov", "Self-emp-inc", "?", "Federal-gov", "Sales", "Tech-support", "Adm-clerical", "Exec-managerial", "Craft-repair"]
LABELS = {"heads_2": ["income", HOURS], "heads_3": ["income", HOURS, "race"], "shared": HOURS, "shared_frozen": HOURS, "shared_trained": HOURS, "linear_numbers": "capital-loss", "dnn_races": "race", "baseline_numbers": HOURS, "dnn_numbers": HOURS, "combined_numbers": HOURS}


def input_fn(rows, name, batch, repeat):
    def make():
        label = LABELS.get(name.removesuffix("_raw"), "income")
        features = {key: values.to_numpy() for key, values in rows.items()}
        # TF: the original's baseline takes one feature (defect 16.1).
        if name.startswith("baseline"):
            features = {"age": features["age"]}
        is_number = lambda label: label == HOURS or name.endswith("_numbers")
        of = lambda label: rows[label].to_numpy().astype(np.float32) if is_number(label) else rows[label].to_numpy()
        # TF: several heads want columns of labels.
        labels = {one: of(one)[:, np.newaxis] for one in label} if isinstance(label, list) else of(label)
        data = tf.data.Dataset.from_tensor_slices((features, labels))
        return (data.repeat() if repeat else data).batch(batch)

    return make


def tensorflow(name, folder, max_steps, rows=None, save_steps=None):
    estimator(name, folder, save_steps).train(input_fn(ROWS if rows is None else rows, name, BATCH, True), max_steps=max_steps)


def ours(name, folder, max_steps, path=None, batch=BATCH):
    """Trains, and returns what was warned of."""
    done = subprocess.run([PROGRAM, "train", name, folder, path or PATH, str(batch), str(max_steps)], capture_output=True, text=True)
    assert done.returncode == 0, (name, done.stderr)
    return done.stderr


def our_metrics(name, folder, path):
    lines = subprocess.run([PROGRAM, "evaluate", name, folder, path], check=True, capture_output=True, text=True).stdout.splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


def copy_of(folder, step, to):
    """A model folder that stands at a step of another."""
    os.makedirs(to)
    for path in glob.glob(f"{folder}/model.ckpt-{step}.*"):
        shutil.copy(path, to)
    tf.compat.v1.train.update_checkpoint_state(to, f"{to}/model.ckpt-{step}")
    return to


def values(folder, step):
    reader = tf.train.load_checkpoint(f"{folder}/model.ckpt-{step}")
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map() if not name.startswith("_")}


def summaries(folder):
    """What was written of the first step: kind, and number or moments, by tag."""
    found = {}
    for path in sorted(glob.glob(f"{folder}/events.out.tfevents.*")):
        for event in tf.compat.v1.train.summary_iterator(path):
            for value in event.summary.value if event.step == 1 else []:
                kind, h = value.WhichOneof("value"), value.histo
                numbers = [value.simple_value] if kind == "simple_value" else [h.num, h.min, h.max, h.sum, h.sum_squares]
                found.setdefault(value.tag, (kind, np.float64(numbers)))
    return found


def same_summaries(name, theirs, mine):
    theirs, mine = summaries(theirs), summaries(mine)
    assert list(theirs) == list(mine), (name, list(theirs), list(mine))
    for tag, (kind, numbers) in theirs.items():
        scale = np.abs(numbers).max(initial=1)
        assert mine[tag][0] == kind and np.abs(mine[tag][1] - numbers).max() <= 1e-5 * scale, (name, tag, numbers, mine[tag])
    return len(theirs)


def largest_difference(one, other, limit, what):
    assert one.keys() == other.keys(), (what, sorted(one.keys() ^ other.keys()))
    worst = ("", 0.0)
    for key in one:
        scale = np.abs(one[key]).max(initial=0)
        difference = float(np.abs(one[key] - other[key]).max(initial=0) / (scale if scale > 0 else 1))
        worst = max(worst, (key, difference), key=lambda pair: pair[1])
    assert worst[1] <= limit, (what, worst)
    return worst[1]


def evaluated(folder):
    """The metrics of every evaluation, by step."""
    found = {}
    for path in sorted(glob.glob(f"{folder}/eval/*tfevents*")):
        for event in tf.compat.v1.train.summary_iterator(path):
            for value in event.summary.value:
                if value.HasField("simple_value"):
                    found.setdefault(event.step, {})[value.tag] = value.simple_value
    return found


def train_and_evaluate():
    """Both evaluate at the same steps, with the same metrics."""
    for throttle, steps in ((0, [4, 8, 10]), (600, [4, 10])):
        for name in ("linear", "dnn"):
            at = lambda part: os.path.join(FOLDER, f"{name}_{throttle}", part)
            train = tf.estimator.TrainSpec(input_fn(ROWS, name, BATCH, True), max_steps=10)
            evaluate = tf.estimator.EvalSpec(input_fn(ROWS, name, 1000, False), steps=None, throttle_secs=throttle)
            tf.estimator.train_and_evaluate(estimator(name, at("tf"), 4), train, evaluate)
            arguments = ["train_and_evaluate", name, copy_of(at("tf"), 0, at("ours")), PATH, str(BATCH), "10", "4", str(throttle)]
            subprocess.run([PROGRAM, *arguments], check=True)
            theirs, found = evaluated(at("tf")), evaluated(at("ours"))
            assert sorted(theirs) == sorted(found) == steps, (name, sorted(theirs), sorted(found))
            for step in steps:
                assert found[step].keys() == theirs[step].keys(), (name, sorted(found[step].keys() ^ theirs[step].keys()))
                for key, value in theirs[step].items():
                    assert abs(found[step][key] - value) <= 1e-5 * max(1, abs(value)), (name, step, key, found[step][key], value)
    print(f"  train_and_evaluate: linear and dnn, the same steps and {len(theirs[10])} metrics each")


def optimizers():
    """Each optimizer in turns, on rows some of which have no ids: after them, no number differs from TensorFlow alone."""
    worst = 0.0
    for key in OPTIMIZERS:
        name = f"optimizer_{key}"
        at = lambda part: os.path.join(FOLDER, name, part)
        tensorflow(name, at("tf"), 30, GAPS, save_steps=10)
        turns = copy_of(at("tf"), 10, at("turns"))
        assert "start from their initial values" not in ours(name, turns, 20, GAPS_PATH)
        tensorflow(name, turns, 30, GAPS)
        # Those that divide by the size of gradients blow up how they are rounded where they are nearly zero.
        limit = 1e-4 if key in ("Adam", "amsgrad", "Adamax", "Nadam", "centered", "RMSProp") else 1e-5
        worst = max(worst, largest_difference(values(at("tf"), 30), values(turns, 30), limit, name))
        # A row without ids: TensorFlow looks up id 0 with a gradient of 0, which its Ftrl makes a weight of 0. Ours leaves it alone.
        ours(name, copy_of(at("tf"), 0, at("ours")), 10, GAPS_PATH)
        for column in GAPPY:
            vectors = f"dnn/input_from_feature_columns/input_layer/{column}_embedding/embedding_weights"
            before, theirs, mine = values(at("tf"), 0)[vectors][0], values(at("tf"), 10)[vectors][0], values(at("ours"), 10)[vectors][0]
            assert (mine == before).all(), (name, column, mine, before)
            assert (theirs == (0 if key in ("Ftrl", "regularized") else before)).all(), (name, column, theirs, before)
    print(f"  {len(OPTIMIZERS)} optimizers with rows without ids: TensorFlow, ours, TensorFlow {worst:.1e}; id 0 changed by TensorFlow's Ftrl alone")


def shared_embeddings():
    """TensorFlow's premades do not train them, and keep no slots of them."""
    at = lambda part: os.path.join(FOLDER, "shared", part)
    slot, table = "training/Adagrad/words/accumulator", "words"
    tensorflow("shared_trained", at("trained"), 30, GAPS)
    # From the same weights; TensorFlow writes the checkpoint of step 0 again, now without the slot.
    copy_of(at("trained"), 0, at("tf"))
    tensorflow("shared", at("tf"), 30, GAPS, save_steps=10)
    first, trained = values(at("tf"), 0), values(at("trained"), 30)
    assert slot in trained and slot not in first and slot not in values(at("tf"), 10)
    assert (first[table] == values(at("tf"), 30)[table]).all() and (first[table] != trained[table]).any()
    # Ours trains them: as TensorFlow does where its head is told to.
    said = ours("shared", copy_of(at("tf"), 0, at("ours")), 30, GAPS_PATH)
    assert slot in said and "start from their initial values" in said, said
    a = largest_difference(trained, values(at("ours"), 30), 1e-5, "shared")
    # Ours does not where the columns are told not to.
    frozen = copy_of(at("tf"), 10, at("frozen"))
    assert "start from their initial values" not in ours("shared_frozen", frozen, 20, GAPS_PATH)
    tensorflow("shared", frozen, 30, GAPS)
    b = largest_difference(values(at("tf"), 30), values(frozen, 30), 1e-5, "shared_frozen")
    # In turns.
    turns = copy_of(at("tf"), 10, at("turns"))
    assert slot in ours("shared", turns, 20, GAPS_PATH)
    tensorflow("shared", turns, 30, GAPS)
    tables = [values(turns, step)[table] for step in (10, 20, 30)]
    assert (tables[0] != tables[1]).any() and (tables[1] == tables[2]).all()
    print(f"  shared embeddings: trained {a:.1e}; left alone, TensorFlow, ours, TensorFlow {b:.1e}; its folder goes on here and back there")


def census():
    """TensorFlow's own configuration on the census itself: the area under the curve of both after the same steps."""
    name, steps, paths = "combined_raw", 500, {}
    for split in ("train", "test"):
        paths[split] = os.path.join(FOLDER, f"{split}.csv")
        subprocess.run([PROGRAM, "rows", split, paths[split]], check=True)
    train, test = (pd.read_csv(paths[split]) for split in ("train", "test"))
    theirs, mine = os.path.join(FOLDER, "census", "tf"), os.path.join(FOLDER, "census", "ours")
    model = estimator(name, theirs)
    model.train(input_fn(train, name, 256, True), max_steps=steps)
    ours(name, copy_of(theirs, 0, mine), steps, paths["train"], 256)
    a, b = model.evaluate(input_fn(test, name, 1000, False))["auc"], our_metrics(name, mine, paths["test"])["auc"]
    assert abs(a - b) <= 0.003, (a, b)
    print(f"  census, {steps} steps: auc {a:.5f} TensorFlow, {b:.5f} ours")


ROWS = made_rows(BATCH * N_BATCHES, 5)
PATH = os.path.join(FOLDER, "rows.csv")
ROWS.to_csv(PATH, index=False)
# Some rows have no ids of one column or both, among them whole batches.
GAPS, GAPS_PATH = ROWS.copy(), os.path.join(FOLDER, "gaps.csv")
GAPS.loc[np.arange(len(GAPS)) % 3 == 0, "occupation"] = ""
GAPS.loc[(np.arange(len(GAPS)) % 4 == 0) | (np.arange(len(GAPS)) // BATCH == 2), "workclass"] = ""
GAPS.to_csv(GAPS_PATH, index=False)
for name in ["baseline", "baseline_numbers", "linear", "linear_numbers", "dnn", "dnn_numbers", "dnn_races", "combined", "combined_numbers", "heads_2", "heads_3", "dnn_raw", "combined_raw"]:
    # Adam divides by the size of gradients: where they are nearly zero, what is left is how they were rounded.
    limit = 1e-4 if name.endswith("_raw") or name == "dnn_races" else 1e-5
    at = lambda part: os.path.join(FOLDER, name, part)
    tensorflow(name, at("tf"), 10)
    tensorflow(name, at("tf"), 50)
    ours(name, copy_of(at("tf"), 0, at("ours")), 50)
    a = largest_difference(values(at("tf"), 50), values(at("ours"), 50), limit, name)
    n_summaries = same_summaries(name, at("tf"), at("ours"))
    turns, alone = copy_of(at("tf"), 10, at("turns")), copy_of(at("tf"), 10, at("alone"))
    ours(name, turns, 20)
    tensorflow(name, turns, 30)
    tensorflow(name, alone, 30)
    b = largest_difference(values(alone, 30), values(turns, 30), limit, name)
    theirs = estimator(name, at("ours")).evaluate(input_fn(ROWS, name, 1000, False))
    assert theirs.pop("global_step") == 50
    found = our_metrics(name, at("ours"), PATH)
    assert found.keys() == theirs.keys(), (name, sorted(found.keys() ^ theirs.keys()))
    for key, value in theirs.items():
        assert abs(found[key] - value) <= 1e-5 * max(1, abs(value)), (name, key, found[key], value)
    print(f"  {name}: 50 steps {a:.1e}; TensorFlow, ours, TensorFlow {b:.1e}; {len(theirs)} metrics and {n_summaries} summaries alike")
optimizers()
shared_embeddings()
train_and_evaluate()
census()
