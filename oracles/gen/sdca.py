"""Writes oracles/fixtures/sdca.jsonl (the best linear models of scikit-learn), sdca_steps.jsonl (steps of TensorFlow's LinearSDCA) and the
checkpoints sdca_tf_classifier and sdca_tf_regressor.

scikit-learn 1.9.1, TensorFlow 2.15.1, seed 7. The two are in environments of their own, so each file has its run:

    python oracles/gen/sdca.py scikit_learn
    python oracles/gen/sdca.py tensorflow

Cases of sdca.jsonl:

    data     rows of a known data set: numbers `x`, a category `bin` of `n_bins`, a label of each kind (`class`, `number`, `count`), `weight`
    optimum  the least objective that scikit-learn finds for a data set, a loss, L1 and L2: the sum of all losses, with weights if it is
             `weighted`, plus l1 |w| + l2 / 2 |w|^2 of all weights and the bias. `w` has the weights of x, of the bins, and the bias.
             Logistic and hinge losses are liblinear's; with L1, they are those of SAGA and of ElasticNet

Cases of sdca_steps.jsonl:

    train    rows one by one, so that no thread and no shuffle changes the order; all weights after each step
    pairs    one step of two rows. TensorFlow shuffles a batch with a seed of its own, so there are two results; the weights after each
    folder   the checkpoint sdca_tf_KIND of step `step`; all weights at that step and after each further one. Its table begins with 16
             places in place of 131,072, which makes the file small
    error    what TensorFlow says of settings it refuses: the class of the exception
"""

import os
import shutil
import sys
import tempfile

import numpy as np

from fixture import FOLDER, Fixture

SEED = 7
random = np.random.default_rng(SEED)
fixture = Fixture(seed=SEED)


def scikit_learn():
    import sklearn
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
    from sklearn.linear_model import ElasticNet, LogisticRegression, PoissonRegressor, Ridge
    from sklearn.svm import LinearSVC

    def objective(loss, z, y, weight, w, l1, l2):
        s = 2 * y - 1
        losses = {
            "logistic_loss": lambda: np.logaddexp(0, z) - y * z,
            "squared_loss": lambda: (z - y) ** 2 / 2,
            "hinge_loss": lambda: np.maximum(0, 1 - s * z),
            "poisson_loss": lambda: np.exp(z) - y * z,
        }[loss]()
        return float((weight * losses).sum() + l1 * np.abs(w).sum() + l2 / 2 * (w**2).sum())

    def fitted(loss, a, y, weight, l1, l2):
        """The weights of the columns of a, the last of which is 1."""
        options = dict(fit_intercept=False, tol=1e-12, max_iter=1_000_000)
        share, both, n = l1 / (l1 + l2), l1 + l2, len(y)
        if loss == "logistic_loss" and l1 == 0:
            model = LogisticRegression(C=1 / l2, solver="liblinear", **{**options, "max_iter": 10_000})
        elif loss == "logistic_loss":
            model = LogisticRegression(C=1 / both, l1_ratio=share, solver="saga", **options)
        elif loss == "hinge_loss":
            model = LinearSVC(C=1 / l2, loss="hinge", random_state=SEED, **{**options, "tol": 1e-9, "max_iter": 1_000_000})
        elif loss == "squared_loss" and l1 == 0:
            model = Ridge(alpha=l2, fit_intercept=False, solver="cholesky")
        elif loss == "squared_loss":
            # Its mean is over the sum of the weights.
            model = ElasticNet(alpha=both / weight.sum(), l1_ratio=share, **options)
        else:
            model = PoissonRegressor(alpha=l2 / weight.sum(), **{**options, "max_iter": 100_000})
        model.fit(a, y, sample_weight=weight)
        return np.ravel(model.coef_)

    sets = {"breast_cancer": (load_breast_cancer, 200, 8), "diabetes": (load_diabetes, 150, 6), "wine": (load_wine, 178, 7)}
    for name, (load, n_rows, n_columns) in sets.items():
        x, y = load(return_X_y=True)
        rows = random.permutation(len(x))[:n_rows]
        x, y = x[rows], y[rows]
        x = (x - x.mean(0)) / x.std(0)
        number = (x[:, -1] + 0.3 * y / max(1, y.std())).astype(np.float32)
        counts = random.poisson(np.exp(0.5 * x[:, 0] - 0.4 * x[:, 1] + 0.3)).astype(np.float32)
        classes = (y > np.median(y) if name == "diabetes" else y == 1).astype(np.float32)
        n_bins = 4
        bins = np.digitize(x[:, n_columns], np.quantile(x[:, n_columns], [0.25, 0.5, 0.75]))
        weight = np.round(random.uniform(0.25, 3, n_rows), 2).astype(np.float32)
        x = x[:, :n_columns].astype(np.float32)
        fixture.case("data", name=name, x=x, bin=bins.astype(np.int64), n_bins=n_bins, number=number, count=counts, weight=weight,
                     **{"class": classes})
        a = np.hstack([x.astype(np.float64), np.eye(n_bins)[bins], np.ones((n_rows, 1))])
        labels = {"logistic_loss": classes, "hinge_loss": classes, "squared_loss": number, "poisson_loss": counts}
        for loss, label in labels.items():
            label = label.astype(np.float64)
            settings = [(0, 1, False), (0, 10, True)] + ([(2, 1.5, False)] if loss in ["logistic_loss", "squared_loss"] else [])
            for l1, l2, weighted in settings:
                of_rows = weight.astype(np.float64) if weighted else np.ones(n_rows)
                w = fitted(loss, a, label, of_rows, l1, l2)
                fixture.case("optimum", data=name, loss=loss, l1=float(l1), l2=float(l2), weighted=weighted, w=w,
                             objective=objective(loss, a @ w, label, of_rows, w, l1, l2))
    fixture.write("sdca", sklearn)


def tensorflow():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    column, experimental = tf.feature_column, tf.estimator.experimental
    n_rows, n_steps, n_bins = 6, 15, 3
    names = ["linear/linear_model/bin/weights", "linear/linear_model/x/weights", "linear/linear_model/bias_weights"]

    def rows_of(kind):
        x = random.normal(size=(n_rows, 2)).astype(np.float32)
        bins = random.integers(0, n_bins, n_rows)
        weight = random.uniform(0.5, 2, n_rows).astype(np.float32)
        y = (random.integers(0, 2, n_rows) if kind == "classifier" else random.normal(size=n_rows)).astype(np.float32)
        return dict(ids=np.array([f"row {i}" for i in range(n_rows)]), x=x, bin=bins, weight=weight, y=y)

    def trained(folder, kind, weighted, rows, batch, n_steps, **settings):
        """Trains from the first row on. Returns the names of all entries of the last checkpoint."""
        features = {"id": rows["ids"], **{name: rows[name] for name in ["x", "bin", "weight"]}}
        data = lambda: tf.data.Dataset.from_tensor_slices((features, rows["y"])).repeat().batch(batch)
        config = tf.estimator.RunConfig(tf_random_seed=SEED, save_checkpoints_steps=1, keep_checkpoint_max=None)
        make = tf.estimator.LinearClassifier if kind == "classifier" else tf.estimator.LinearRegressor
        columns = [column.numeric_column("x", (2,)), column.categorical_column_with_identity("bin", n_bins)]
        model = make(columns, folder, optimizer=experimental.LinearSDCA("id", **settings), config=config,
                     weight_column="weight" if weighted else None)
        model.train(data, steps=n_steps)
        return sorted(tf.train.load_checkpoint(folder).get_variable_to_shape_map())

    def weights(folder, step):
        reader = tf.train.load_checkpoint(os.path.join(folder, f"model.ckpt-{step}"))
        return np.concatenate([reader.get_tensor(name).ravel() for name in names])

    def train(kind, weighted, **settings):
        folder, rows = tempfile.mkdtemp(), rows_of(kind)
        entries = trained(folder, kind, weighted, rows, 1, n_steps, **settings)
        steps = np.array([weights(folder, step) for step in range(1, n_steps + 1)])
        shutil.rmtree(folder)
        fixture.case("train", kind=kind, weighted=weighted, **rows, n_bins=n_bins, steps=steps, entries=entries, names=names, **settings)

    for kind in ["classifier", "regressor"]:
        for weighted in [False, True]:
            train(kind, weighted)
            train(kind, weighted, symmetric_l1_regularization=0.2, symmetric_l2_regularization=2.5)
            train(kind, weighted, num_loss_partitions=3, symmetric_l2_regularization=1.5)

    def pairs(kind, **settings):
        rows, found = {name: values[:2] for name, values in rows_of(kind).items()}, []
        while len(found) < 2:
            folder = tempfile.mkdtemp()
            trained(folder, kind, False, rows, 2, 1, **settings)
            after = weights(folder, 1)
            if not any(np.allclose(after, other, atol=1e-5) for other in found):
                found.append(after)
            shutil.rmtree(folder)
        found = np.array(sorted(found, key=list))
        fixture.case("pairs", kind=kind, weighted=False, **rows, n_bins=n_bins, found=found, **settings)

    for kind in ["classifier", "regressor"]:
        pairs(kind)
        pairs(kind, num_loss_partitions=4, symmetric_l1_regularization=0.1)

    def folder_of(kind, step, **settings):
        folder, rows = tempfile.mkdtemp(), rows_of(kind)
        for n in [step, n_steps - step]:
            entries = trained(folder, kind, True, rows, 1, n, **settings)
        for part in ["index", "data-00000-of-00001"]:
            shutil.copyfile(os.path.join(folder, f"model.ckpt-{step}.{part}"), FOLDER / f"sdca_tf_{kind}.{part}")
        steps = np.array([weights(folder, n) for n in range(step, n_steps + 1)])
        shutil.rmtree(folder)
        fixture.case("folder", kind=kind, weighted=True, **rows, n_bins=n_bins, step=step, steps=steps, entries=entries, **settings)

    from tensorflow_estimator.python.estimator.canned.linear_optimizer.python.utils import sharded_mutable_dense_hashtable as tables

    table = tables._MutableDenseHashTable
    begun = table.__init__
    table.__init__ = lambda self, *args, **kwargs: begun(self, *args, **{**kwargs, "initial_num_buckets": 16})
    folder_of("classifier", 4, num_table_shards=2, symmetric_l1_regularization=0.1, symmetric_l2_regularization=1.5)
    folder_of("regressor", 9)

    def refused(what, make):
        try:
            model = make()
            ids = np.array(["a", "b"])
            model.train(lambda: tf.data.Dataset.from_tensor_slices(({"id": ids, "x": [1.0, 2.0]}, [0, 1])).batch(2), steps=1)
            raise SystemExit(f"{what} was accepted")
        except ValueError as error:
            fixture.case("error", what=what, kind=type(error).__name__)

    x = [column.numeric_column("x")]
    sdca = lambda **settings: experimental.LinearSDCA("id", **settings)
    refused("three classes", lambda: tf.estimator.LinearClassifier(x, n_classes=3, optimizer=sdca()))
    refused("two labels", lambda: tf.estimator.LinearRegressor(x, label_dimension=2, optimizer=sdca()))
    refused("combiner", lambda: tf.estimator.LinearClassifier(x, optimizer=sdca(), sparse_combiner="mean"))
    refused("l2", lambda: tf.estimator.LinearClassifier(x, optimizer=sdca(symmetric_l2_regularization=0.0)))
    refused("l1", lambda: tf.estimator.LinearClassifier(x, optimizer=sdca(symmetric_l1_regularization=-1.0)))
    fixture.write("sdca_steps", tf, program="sdca")


{"scikit_learn": scikit_learn, "tensorflow": tensorflow}[sys.argv[1]]()
